"""The memory of operations that read, remove or keep every file of a table, without Spark: peak beyond that of an opened table.

The table consists of a log only, so no operation opens a data file. Goal: 0.35 GB for a million files.

    python benchmarks/memory_of_many_files.py [--files 50000]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from _log_tables import make_table
from _processes import answer, by_turns

WORK = ("version", "files", "vacuum", "delete")
"""`delete` is last, because it removes all files."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50_000, help="live files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table, _ = make_table(Path(folder), arguments.files)
        measured = by_turns(Path(__file__), {work: [work, str(table)] for work in WORK}, 1)
    opened = measured["version"][0].peak_mb
    for work in WORK[1:]:
        for_a_million = (measured[work][0].peak_mb - opened) / 1000 / arguments.files * 1_000_000
        print(f"{work:8} {for_a_million:5.2f} GB for a million files (goal ≤ 0.35)")


def _run(work: str, path: str) -> None:
    from tahoe import Table

    table = Table(path)
    calls = {
        "version": table.version,
        "files": lambda: len(table.files()),
        "vacuum": lambda: table.vacuum(dry_run=True).deleted,
        "delete": lambda: table.delete().num_deleted_rows,
    }
    answer(calls[work])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in WORK:
        _run(*sys.argv[1:])
    else:
        main()
