"""Two queries in a chain, killed again and again: every row is in the last table once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.table import Table
from tests.race.processes import REPOSITORY
from tests.race.stream_chain import POINTS

_AT_ANY_TIME = "at any time"
_SECONDS = 120


class Chain:
    """The tables of a chain, and what has become of its processes."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.rows, self.kills = 0, Counter[str]()
        Table(str(folder / "a")).append(pa.table({"id": pa.array([], pa.int64())}))
        Table(str(folder / "b")).append(pa.table({"id": pa.array([], pa.int64())}))

    def table(self, name: str) -> Table:
        return Table(str(self.folder / name))

    def land(self, rows: int, commits: int = 3) -> None:
        for _ in range(commits):
            count = max(1, rows // commits)
            self.table("a").append(pa.table({"id": range(self.rows, self.rows + count)}))
            self.rows += count

    def killed(self, point: str) -> None:
        """Run, and die at a point."""
        random_time = point == _AT_ANY_TIME
        with self._process(None if random_time else point, "killed") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()
            if random_time:
                time.sleep(self.random.uniform(0, 4))
                os.killpg(process.pid, signal.SIGKILL)
            told, errors = process.communicate(timeout=_SECONDS)
        done = told == "done\n"
        assert done or process.returncode == -signal.SIGKILL, errors
        self.kills[point] += not done

    def finish(self) -> None:
        """Run to the end, and hold the tables against what went in."""
        with self._process(None, "end") as process:
            told, errors = process.communicate(timeout=_SECONDS + self.rows / 100)
        assert told == "ready\ndone\n", errors
        for name in ("b", "c"):
            found = Counter(self.table(name).to_arrow()["id"].to_pylist())
            assert [one for one, times in found.items() if times > 1] == [], f"doubled in {name}"
            assert sorted(found) == list(range(self.rows)), f"lost in {name}"
            assert self.table(name).check() == []
            told_batches = [
                (one["operationParameters"]["queryId"], int(one["operationParameters"]["epochId"]))
                for one in reversed(self.table(name).history())
                if one["operation"] == "STREAMING UPDATE"
            ]
            assert [number for _, number in told_batches] == list(range(len(told_batches)))
            assert len({query for query, _ in told_batches}) == 1

    def _process(self, point: str | None, until: str) -> subprocess.Popen[str]:
        task = {"folder": str(self.folder), "point": point, "times": self.random.randint(1, 4), "until": until}
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
        assert process.stdin is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        return process


def test_a_chain_that_is_killed_between_any_two_logs_has_every_row_once(tmp_path: Path) -> None:
    chain = Chain(tmp_path, seed=1)
    for point in ("after the data", "after the commit", "before the offsets"):
        chain.land(30)
        chain.killed(point)
    assert sum(chain.kills.values()) == 3
    chain.finish()


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_two_hundred_kills_of_a_hundred_thousand_rows(tmp_path: Path) -> None:
    kills, rows = (int(os.environ.get(f"TAHOE_STREAM_{name}", usual)) for name, usual in (("KILLS", 200), ("ROWS", 100_000)))
    chain = Chain(tmp_path, seed=int(os.environ.get("TAHOE_STREAM_SEED", "2")))
    points: list[Any] = [*POINTS, _AT_ANY_TIME]
    runs = 0
    while sum(chain.kills.values()) < kills:
        chain.land(-(-rows // kills))
        chain.killed(points[runs % len(points)])
        runs += 1
        assert runs < 2 * kills + 10, chain.kills
        if runs % 7 == 0:
            # A stream that reads the table sees nothing of it.
            chain.table("b").optimize()
    sys.stderr.write(f"{chain.rows} rows, killed {dict(chain.kills)}\n")
    chain.finish()
