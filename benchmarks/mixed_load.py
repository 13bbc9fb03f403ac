"""Concurrent writers: two processes append single rows continuously, while one deletes, one updates and one merges.

Goals: DELETE, UPDATE and MERGE each reach at least 20 % of their throughput alone; the 99th percentile of the appends is under a second; of
ten processes that append fifty times each, no append takes more than three seconds. *Alone* is the same process without others, on
the same table, just before the mixed load and again after it, when the table has grown by all the small files: the share is of
the mean of both. Five processes share the machine's processors, so the share expected from processors alone is printed too.
Deltalake does the same work in the same way; its conflicts are retried, as for Tahoe.

    python benchmarks/mixed_load.py [--seconds 60] [--rounds 1] [--json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

import deltalake
import pyarrow as pa
from deltalake.exceptions import DeltaError
from rich.console import Console
from rich.table import Table as Grid

import tahoe
from tahoe.base.exceptions import DeltaConcurrentModificationException, StorageFailure

SCHEMA = pa.schema([("id", pa.int64()), ("value", pa.int64())])
ROWS, FILES = 40_000, 4
APPENDED = 1 << 40
"""Ids from here on are appended; those below are deleted, updated and merged."""

CHANGES = ("delete", "update", "merge")
WRITERS = ("append", "append", *CHANGES)
Work = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Done:
    """One process: milliseconds of each operation, and the number of its retries."""

    kind: str
    milliseconds: list[float]
    begun_again: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return len(self.milliseconds) / self.seconds

    @property
    def processor_ms(self) -> float:
        """The cost of an operation on a loaded machine."""
        return self.processor_seconds * 1000 / max(1, len(self.milliseconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="of the mixed load; each is alone for a sixth of it, twice")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--appends", type=int, default=50, help="of each of the ten processes; 0 leaves them out")
    parser.add_argument("--only", choices=("tahoe", "deltalake"), help="leave the other out")
    parser.add_argument("--json", action="store_true", help="one line of JSON a round instead of a grid")
    arguments = parser.parse_args()
    for _ in range(arguments.rounds):
        for engine in ("tahoe", "deltalake"):
            if arguments.only not in (None, engine):
                continue
            measured = measure(engine, arguments.seconds, arguments.appends)
            if arguments.json:
                print(json.dumps(measured))
            else:
                show(measured)


def measure(engine: str, seconds: float, appends: int) -> dict[str, object]:
    """One mixed load, with each of the changes alone before and after it, and ten appenders on a table of their own."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "mixed")
        make_table(path, vectors=engine == "tahoe")
        alone = max(1.0, seconds / 6)
        before = {kind: run(engine, path, [kind], alone, phase=0)[0] for kind in CHANGES}
        mixed = run(engine, path, WRITERS, seconds, phase=1)
        after = {kind: run(engine, path, [kind], alone, phase=2)[0] for kind in CHANGES}
        report: dict[str, object] = {"engine": engine, "seconds": seconds, "load_before": load}
        report["changes"] = {
            done.kind: {
                "alone_before": round(before[done.kind].rate, 1),
                "alone_after": round(after[done.kind].rate, 1),
                "beside": round(done.rate, 1),
                "share": round(done.rate / statistics.mean((before[done.kind].rate, after[done.kind].rate)), 3),
                "processor_ms_alone": round(after[done.kind].processor_ms, 1),
                "processor_ms_beside": round(done.processor_ms, 1),
                "begun_again": done.begun_again,
                "operations": len(done.milliseconds),
                "longest_ms": round(max(done.milliseconds, default=seconds * 1000)),
            }
            for done in mixed
            if done.kind in CHANGES
        }
        report["appends"] = reported(mixed[:2])
        if appends:
            crowd = str(Path(folder) / "crowd")
            tahoe.Table.create(crowd, SCHEMA)
            report["ten_appenders"] = reported(run(engine, crowd, ["append"] * 10, None, phase=0, operations=appends))
    return report


def reported(appenders: Sequence[Done]) -> dict[str, float]:
    every = sorted(each for done in appenders for each in done.milliseconds)
    return {
        "operations": len(every),
        "median_ms": round(every[len(every) // 2], 1),
        "p99_ms": round(every[int(len(every) * 0.99)], 1),
        "longest_ms": round(every[-1], 1),
    }


def show(found: dict[str, object]) -> None:
    cores, console = os.cpu_count() or 1, Console(width=130)
    grid = Grid(
        title=f"{found['engine']}: {found['seconds']:.0f} s beside two appenders, {cores} processors for 5 processes "
        f"(a fair part of them is {min(1.0, cores / len(WRITERS)):.0%}), load {found['load_before']:.1f}"
    )
    for header in (
        "operation",
        "alone before",
        "alone after",
        "beside, a second",
        "share",
        "goal",
        "CPU ms alone",
        "beside",
        "done",
        "begun anew",
        "longest, ms",
    ):
        grid.add_column(header, justify="left" if header == "operation" else "right")
    changes = found["changes"]
    assert isinstance(changes, dict)
    for kind, row in changes.items():
        grid.add_row(
            kind.upper(),
            str(row["alone_before"]),
            str(row["alone_after"]),
            str(row["beside"]),
            f"{row['share']:.0%}",
            "met" if row["share"] >= 0.2 else "missed",
            str(row["processor_ms_alone"]),
            str(row["processor_ms_beside"]),
            str(row["operations"]),
            str(row["begun_again"]),
            str(row["longest_ms"]),
        )
    console.print(grid)
    for key, goal in (("appends", "p99_ms < 1000"), ("ten_appenders", "longest_ms < 3000")):
        if key in found:
            console.print(f"  {key}: {found[key]}, goal {goal}")


def make_table(path: str, *, vectors: bool) -> None:
    """Rows in several files that all three changes meet in; with deletion vectors, which deltalake does not write."""
    table = tahoe.Table.create(path, SCHEMA, properties={"delta.enableDeletionVectors": str(vectors).lower()})
    # Every file has ids of the whole range, so that any two changes may touch the same file, but never the same row.
    ids = [number for start in range(FILES) for number in range(start, ROWS, FILES)]
    table.append(pa.table({"id": ids, "value": [0] * ROWS}, SCHEMA), max_rows_per_file=ROWS // FILES)


def run(
    engine: str, path: str, kinds: Sequence[str], seconds: float | None, phase: int, operations: int | None = None
) -> list[Done]:
    """Processes of these kinds side by side, begun together."""
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(worker(engine, path, kind, number, seconds, phase, operations))
            for number, kind in enumerate(kinds)
        ]
        for process in processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line == "ready\n", f"a worker did not start: {line}"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("start\n")
            process.stdin.flush()
        return [Done(**json.loads(process.communicate()[0].splitlines()[-1])) for process in processes]


@contextlib.contextmanager
def worker(*task: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, __file__, "--work", json.dumps(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def work(task: str) -> None:
    """In the process of one writer."""
    engine, path, kind, number, seconds, phase, operations = json.loads(task)
    do = (tahoe_work if engine == "tahoe" else deltalake_work)(path, kind)
    places = ids_of(kind, number, phase)
    warm_up(engine, kind)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    taken: list[float] = []
    again, started, processor_started = 0, time.perf_counter(), time.process_time()
    while (seconds is None or time.perf_counter() - started < seconds) and (operations is None or len(taken) < operations):
        begun, place = time.perf_counter(), next(places)
        while True:
            try:
                do(place)
                taken.append((time.perf_counter() - begun) * 1000)
                break
            except (DeltaConcurrentModificationException, StorageFailure, DeltaError):
                again += 1
                if seconds is not None and time.perf_counter() - started > seconds:
                    break
    elapsed, processor = time.perf_counter() - started, time.process_time() - processor_started
    print(json.dumps(asdict(Done(kind, taken, again, elapsed, processor))))


def warm_up(engine: str, kind: str) -> None:
    """Do it once on a private table: another benchmark measures the imports of a first operation."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "warm")
        tahoe.Table.create(path, SCHEMA, properties={"delta.enableDeletionVectors": str(engine == "tahoe").lower()})
        tahoe.Table(path).append(pa.table({"id": [1, 2], "value": [0, 0]}, SCHEMA))
        (tahoe_work if engine == "tahoe" else deltalake_work)(path, kind)(1)


def ids_of(kind: str, number: int, phase: int) -> Iterator[int]:
    """Which row each operation is about: no row twice, and no two writers meet in one."""
    if kind == "append":
        return count(APPENDED * (1 + number))
    mine = range(CHANGES.index(kind) * 3 + phase, ROWS, 9)
    return iter(random.Random(7).sample(mine, len(mine)))


def tahoe_work(path: str, kind: str) -> Work:
    table = tahoe.Table(path)

    def merge(place: int) -> object:
        return table.merge(row(place), "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()

    kinds: dict[str, Work] = {
        "append": lambda place: table.append(row(place)),
        "delete": lambda place: table.delete(f"id = {place}"),
        "update": lambda place: table.update({"value": "value + 1"}, f"id = {place}"),
        "merge": merge,
    }
    return kinds[kind]


def deltalake_work(path: str, kind: str) -> Work:
    def merge(place: int) -> object:
        merged = deltalake.DeltaTable(path).merge(
            row(place), "target.id = source.id", source_alias="source", target_alias="target"
        )
        return merged.when_matched_update_all().when_not_matched_insert_all().execute()

    kinds: dict[str, Work] = {
        "append": lambda place: deltalake.write_deltalake(path, row(place), mode="append"),
        "delete": lambda place: deltalake.DeltaTable(path).delete(f"id = {place}"),
        "update": lambda place: deltalake.DeltaTable(path).update(updates={"value": "value + 1"}, predicate=f"id = {place}"),
        "merge": merge,
    }
    return kinds[kind]


def row(place: int) -> pa.Table:
    return pa.table({"id": [place], "value": [place]}, SCHEMA)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2])
    else:
        main()
