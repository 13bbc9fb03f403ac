"""Two queries in a chain, killed again and again: every row is in the last table once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tests.race.processes import REPOSITORY
from tests.race.stream_chain import POINTS

_AT_ANY_TIME = "at any time"
_SECONDS = 900
"""More than enough: only a test that fails takes so long."""


class Chain:
    """The tables of one chain, and the rows that went in."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rows = folder, 0
        for name in ("a", "b"):
            self.table(name).append(pa.table({"id": pa.array([], pa.int64())}))

    def table(self, name: str) -> Table:
        return Table(str(self.folder / name))

    def land(self, rows: int, commits: int = 3) -> None:
        for _ in range(commits):
            count = max(1, rows // commits)
            self.table("a").append(pa.table({"id": range(self.rows, self.rows + count)}))
            self.rows += count

    def check(self) -> None:
        """Compare the tables with the input rows."""
        for name in ("b", "c"):
            actual = Counter(self.table(name).to_arrow()["id"].to_pylist())
            assert [item for item, times in actual.items() if times > 1] == [], f"doubled in {name}"
            assert sorted(actual) == list(range(self.rows)), f"lost in {name}"
            assert self.table(name).check() == []
            reported_batches = [
                (item["operationParameters"]["queryId"], int(item["operationParameters"]["epochId"]))
                for item in reversed(self.table(name).history())
                if item["operation"] == "STREAMING UPDATE"
            ]
            assert [number for _, number in reported_batches] == list(range(len(reported_batches)))
            assert len({query for query, _ in reported_batches}) == 1


class Chains:
    """Chains that run in one process, each killed at a point of its own."""

    def __init__(self, folder: Path, seed: int, count: int) -> None:
        self.folder, self.random, self.kills = folder, random.Random(seed), Counter[str]()
        self.chains = [Chain(folder / str(number)) for number in range(count)]
        self.processes = 0

    def killed(self, points: Sequence[str], most_times: int = 4) -> None:
        """Run, and die when each chain has come to its point, up to so many times."""
        left = {number: point for number, point in enumerate(points) if point != _AT_ANY_TIME}
        done = set()
        with self._running(points, most_times, in_turn=False) as process:
            while left:
                word, _, number = self._line(process).partition(" ")
                assert word in ("halted", "done"), word
                left.pop(int(number), None)
                if word == "done":
                    done.add(int(number))
            if _AT_ANY_TIME in points:
                time.sleep(self.random.uniform(0, 2))
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate(timeout=_SECONDS)
        done |= {int(line.partition(" ")[2]) for line in output.splitlines() if line.startswith("done")}
        self.processes += 1
        self.kills.update(point for number, point in enumerate(points) if number not in done)

    def finish(self) -> None:
        """Run all to their ends, and compare the tables with the input rows."""
        with self._running([None] * len(self.chains), 1, in_turn=True) as process:
            output, errors = process.communicate(timeout=_SECONDS + sum(chain.rows for chain in self.chains) / 100)
        assert sorted(output.split("\n")) == ["", *(f"done {number}" for number in range(len(self.chains)))], errors
        for chain in self.chains:
            chain.check()

    @contextmanager
    def _running(self, points: Sequence[str | None], most_times: int, *, in_turn: bool) -> Iterator[subprocess.Popen[str]]:
        chains = [
            {"folder": str(chain.folder), "point": point, "times": self.random.randint(1, most_times)}
            for chain, point in zip(self.chains, points, strict=True)
        ]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.race.stream_chain"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Of a process group of its own, so that its JVM dies with it.
            start_new_session=True,
        )
        # A hanging process is killed, and its output ends there.
        watch = threading.Timer(_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        try:
            if not in_turn:
                watch.start()
            assert process.stdin is not None
            # Scratch files of Spark, which nobody takes away who is killed, go with the test's folder.
            task = {"chains": chains, "in_turn": in_turn, "scratch": str(self.folder / "scratch")}
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            assert self._line(process) == "ready"
            yield process
        finally:
            watch.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _line(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.endswith("\n"), process.communicate()[1]
        return line.removesuffix("\n")


@pytest.mark.own_jvm
@pytest.mark.long
def test_chains_that_are_killed_between_any_two_logs_have_every_row_once(tmp_path: Path) -> None:
    points = list(POINTS)
    chains = Chains(tmp_path, seed=1, count=len(points))
    for chain in chains.chains:
        chain.land(30, commits=2)
    chains.killed(points, most_times=2)
    assert chains.kills == dict.fromkeys(points, 1)
    chains.finish()


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_two_hundred_kills_of_a_hundred_thousand_rows(tmp_path: Path) -> None:
    kills, rows = (int(os.environ.get(f"TAHOE_STREAM_{name}", usual)) for name, usual in (("KILLS", 200), ("ROWS", 100_000)))
    points = [*POINTS, _AT_ANY_TIME]
    chains = Chains(tmp_path, seed=int(os.environ.get("TAHOE_STREAM_SEED", "2")), count=len(points))
    for run in count():
        here = [points[(number + run) % len(points)] for number in range(len(points))]
        for chain, point in zip(chains.chains, here, strict=True):
            # Who has no point needs enough to do until the others have come to theirs.
            chain.land(-(-rows // kills), commits=12 if point == _AT_ANY_TIME else 3)
        chains.killed(here)
        reported = (
            f"{sum(chain.rows for chain in chains.chains)} rows, {chains.processes} processes killed {dict(chains.kills)}\n"
        )
        sys.stderr.write(reported)
        if sum(chains.kills.values()) >= kills:
            break
        assert run < kills, reported
        if run % 3 == 0:
            # A stream that reads the table sees nothing of it.
            chains.chains[run % len(points)].table("b").optimize()
    chains.finish()
