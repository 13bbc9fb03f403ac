"""The memory and the processor time of operations on tables with very many files, without Spark: the peak beyond that of an opened table.

Each operation runs in a process of its own. The tables consist of a log and, for VACUUM, of empty data files, so no operation reads
data. Goal: 0.35 GB for a million files.

    python benchmarks/memory_of_many_files.py [--files 50000] [--only delete vacuum]

The statistics of a file are 380 bytes of JSON and its path 100 bytes, so 0.5 GB is the size of the texts alone for an operation that returns
every live file (`files`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from _log_tables import SCHEMA_STRING, make_table
from _processes import Measured, answer, by_turns
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

from tahoe import Table
from tahoe.log.replay import add_files
from tahoe.ops.layout.optimize_plan import OptimizeRequest, plan_optimize
from tahoe.schema.types import schema_from_json
from tahoe.txn.commit import RetryPolicy
from tahoe.txn.hooks import commit_transaction
from tahoe.txn.transaction import Operation

GOAL = 0.35
UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}

WORK: dict[str, Callable[[Table], object]] = {
    "version": lambda table: table.version(),
    "detail": lambda table: table.detail()["numFiles"],
    "point filter": lambda table: len(table.files(filter="id = 100100")),
    "files": lambda table: len(table.files()),
    "listing": lambda table: sum(1 for _ in table.snapshot().store.walk()),
    "stream, first batch": lambda table: len(next(table.tail(max_files_per_trigger=10)).files),
    "OPTIMIZE, planned": lambda table: len(plan_optimize(table.snapshot(), OptimizeRequest()).bins),
    "checkpoint": lambda table: table.checkpoint(),
    "VACUUM, nothing to delete": lambda table: table.vacuum(dry_run=True).deleted,
    "DELETE of all rows": lambda table: table.delete().num_deleted_rows,
    "VACUUM, all to delete, dry run": lambda table: len(_vacuumed(table, dry_run=True).plan.files),
    "RESTORE": lambda table: table.restore(version=20).version,
    "clone, shallow": lambda table: table.clone(Path(f"{table.url.removeprefix('file://')}-clone"), shallow=True).version,
    "first conversion": lambda table: table.uniform.sync(rebuild=True).version,
}
"""In the order of execution: later operations change the table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50_000, help="live files")
    parser.add_argument("--only", nargs="*", help="operations whose names contain one of these words")
    arguments = parser.parse_args()
    chosen = [name for name in WORK if not arguments.only or any(word in name for word in ["version", *arguments.only])]
    with tempfile.TemporaryDirectory() as folder:
        table, _ = make_table(Path(folder), arguments.files)
        _touch_data_files(table)
        converted = Path(folder) / "uniform"
        if "first conversion" in chosen:
            _make_uniform_table(converted, table)
        places = {name: str(converted if name == "first conversion" else table) for name in chosen}
        measured = by_turns(Path(__file__), {name: [name, place] for name, place in places.items()}, 1)
    _show({name: runs[0] for name, runs in measured.items()}, arguments.files)


def _show(measured: dict[str, Measured], files: int) -> None:
    grid = Grid(title=f"{files:,} files")
    for header in ("operation", "GB for a million", "processor, s", "goal ≤ 0.35"):
        grid.add_column(header, justify="left" if header == "operation" else "right")
    opened = measured.pop("version")
    for name, run in measured.items():
        for_a_million = (run.peak_mb - opened.peak_mb) / 1000 / files * 1_000_000
        record(f"{name}, memory / goal", for_a_million / GOAL)
        met = "met" if for_a_million <= GOAL else "MISSED"
        grid.add_row(name, f"{for_a_million:.2f}", f"{run.processor_seconds:.2f}", met)
    Console(width=100).print(grid)


def _vacuumed(table: Table, *, dry_run: bool):  # type: ignore[no-untyped-def]
    return table.vacuum(retention_hours=0, retention_check=False, dry_run=dry_run)


def _touch_data_files(root: Path) -> None:
    folders: set[str] = set()
    for path in Table(root).files()["path"].to_pylist():
        folder = path.rpartition("/")[0]
        if folder not in folders:
            (root / folder).mkdir(exist_ok=True)
            folders.add(folder)
        (root / path).touch()


def _make_uniform_table(root: Path, source: Path) -> None:
    """A table with the same files that waits for its first conversion, with a checkpoint."""
    table = Table.create(root, schema_from_json(SCHEMA_STRING), partition_by=["region"], properties=UNIFORM)
    table.uniform.wait()
    names = {column.name: column.physical_name for column in table.schema()}
    transaction = table.begin()
    transaction.looks_for = "none"  # a conversion opens no data file
    for add in add_files(Table(source).files()):
        stats = add.stats or ""
        for name, physical in names.items():
            stats = stats.replace(f'"{name}":', f'"{physical}":')
        values = {names[name]: value for name, value in add.partition_values.items()}
        transaction.stage(replace(add, partition_values=values, stats=stats, data_change=True))
    commit_transaction(transaction, Operation("WRITE"), RetryPolicy(), ())
    Table(root).checkpoint()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in WORK:
        opened = Table(sys.argv[2])
        answer(lambda: WORK[sys.argv[1]](opened))
    else:
        main()
