"""Compaction of many small files without Spark: Tahoe against deltalake, on copies of one table; and clustering.

Every measurement is a separate process, peak memory included; imports and reading the table's newest version, which deltalake
does when it opens a table, count for neither. Nor do checkpoints: each writes them after different versions, so they are disabled for
both. Goal: at most 1.2 times deltalake's time, and at most its memory; clustering by
four columns at most 1.3 times the time of a plain rewrite into as many files.

    python benchmarks/optimize.py [--rows 20000000] [--files 400] [--tiny 10000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from _processes import answer, by_turns, show

_COLUMNS = ("id", "user", "amount", "state")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=400)
    parser.add_argument("--tiny", type=int, default=10_000, help="files of ten rows each, in a table of their own")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first"
        make_table(first, arguments.rows, arguments.files)
        size = sum(file.stat().st_size for file in first.glob("*.parquet"))
        tiny = Path(folder) / "first-tiny"
        make_tiny(tiny, arguments.tiny)
        places = {
            name: Path(folder) / name for name in ("tahoe", "deltalake", "plain", "clustered", "tiny-tahoe", "tiny-deltalake")
        }

        def begin_again() -> None:
            for name, place in places.items():
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(tiny if name.startswith("tiny") else first, place, copy_function=os.link)

        begin_again()
        target, small = str(size // 4), str(size // 50)
        runs = {
            "to 4 files": (
                {
                    "Tahoe": ["tahoe", str(places["tahoe"]), target],
                    "deltalake": ["deltalake", str(places["deltalake"]), target],
                },
                "≥ 0.83",
            ),
            f"{arguments.tiny} tiny files": (
                {
                    "Tahoe": ["tahoe", str(places["tiny-tahoe"]), "1000000000"],
                    "deltalake": ["deltalake", str(places["tiny-deltalake"]), "1000000000"],
                },
                "≥ 0.83",
            ),
            "to 50 files, clustered by 4 columns": (
                {
                    "Tahoe": ["cluster", str(places["clustered"]), small],
                    "plain rewrite": ["tahoe", str(places["plain"]), small],
                },
                "≥ 0.77",
            ),
        }
        cases = {
            name: (by_turns(Path(__file__), commands, arguments.rounds, after=begin_again), goal)
            for name, (commands, goal) in runs.items()
        }
        show(f"{arguments.files} files of {size:,} bytes, {arguments.rows:,} rows (medians of {arguments.rounds})", cases)


def make_table(place: Path, rows: int, files: int) -> None:
    """Many small files, of numbers and texts."""
    import tahoe

    table = tahoe.Table(place)
    for some in rows_of_files(rows, files):
        if not table.exists():
            tahoe.Table.create(place, some.schema, properties={"delta.checkpointInterval": str(10 * files)})
        table.append(some)


def rows_of_files(rows: int, files: int) -> Iterator[pa.Table]:
    """The rows of each file."""
    import random

    chance, each = random.Random(3), rows // files
    users = pa.array([f"user {chance.randrange(1_000_000):06}" for _ in range(each)])
    for number in range(files):
        ids = pa.array(range(number * each, number * each + each), pa.int64())
        amounts = pa.array([chance.random() for _ in range(each)])
        states = pa.array([chance.randrange(5) for _ in range(each)], pa.int32())
        yield pa.table({"id": ids, "user": users, "amount": amounts, "state": states})


def make_tiny(place: Path, files: int) -> None:
    """Files of ten rows."""
    import tahoe

    rows = next(rows_of_files(10 * files, 1))
    tahoe.Table(place).append(rows, max_rows_per_file=10)


def run(work: str, place: str, target: str) -> None:
    """In the measured process."""
    if work == "deltalake":
        from deltalake import DeltaTable

        theirs = DeltaTable(place)
        answer(lambda: theirs.optimize.compact(target_size=int(target))["numFilesRemoved"])
        return
    import tahoe
    import tahoe.ops.layout.optimize

    table = tahoe.Table(place)
    table.version()
    columns = _COLUMNS if work == "cluster" else ()
    answer(lambda: len(table.optimize(zorder_by=columns, target_file_size=int(target)).removed))


if __name__ == "__main__":
    if len(sys.argv) == 4 and not sys.argv[1].startswith("-"):
        run(*sys.argv[1:])
    else:
        main()
