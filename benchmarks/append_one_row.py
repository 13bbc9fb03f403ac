"""A one-row append without Spark: Tahoe against deltalake, side by side on two tables that start equal.

Goal: half of deltalake's latency. Two modes: *by path*, where each append opens the table again as a small program
would, and *handle kept*, where one object writes repeatedly. Two tables: a new one, and one whose checkpoint has many
files.

    python benchmarks/append_one_row.py [--appends 100] [--files 10000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe
from tahoe.protocol.actions import AddFile
from tahoe.txn.transaction import Operation

ROW = pa.table({"id": pa.array([1], pa.int64()), "name": ["one"], "value": [1.5]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--appends", type=int, default=100, help="appends of each kind")
    parser.add_argument("--files", type=int, default=10_000, help="live files of the larger table")
    arguments = parser.parse_args()

    grid = Grid(title=f"One-row append, milliseconds (median of {arguments.appends})")
    for header in ("table", "way", "Tahoe", "deltalake", "ratio", "95th percentile", "goal 0.5"):
        grid.add_column(header, justify="left" if header in ("table", "way") else "right")
    with tempfile.TemporaryDirectory() as folder:
        for label, files in (("new", 1), (f"{arguments.files:,} files", arguments.files)):
            for way, tahoe_way, deltalake_way in (
                ("by path", tahoe_by_path, deltalake_by_path),
                ("handle kept", tahoe_kept, deltalake_kept),
            ):
                place = Path(folder) / f"{files}-{way.replace(' ', '-')}"
                ours, theirs = make_table(place / "tahoe", files), make_table(place / "deltalake", files)
                mine, other = timed_by_turns(tahoe_way(ours), deltalake_way(theirs), arguments.appends)
                assert tahoe.Table(ours).to_arrow().num_rows == deltalake.DeltaTable(theirs).to_pyarrow_table().num_rows
                ratio = statistics.median(mine) / statistics.median(other)
                record(f"{label}, {way}", ratio)
                grid.add_row(
                    label,
                    way,
                    f"{statistics.median(mine) * 1e3:.1f}",
                    f"{statistics.median(other) * 1e3:.1f}",
                    f"{ratio:.2f}",
                    f"{tail(mine) * 1e3:.1f} / {tail(other) * 1e3:.1f}",
                    "met" if ratio <= 0.5 else "missed",
                )
    Console().print(grid)


def timed_by_turns(ours: Callable[[], object], theirs: Callable[[], object], appends: int) -> tuple[list[float], list[float]]:
    """Seconds of each append; they alternate, so that other load on the machine affects both."""
    for warm_up in (ours, theirs):
        warm_up()
    measured: tuple[list[float], list[float]] = ([], [])
    for _ in range(appends):
        for run, seconds in zip((ours, theirs), measured, strict=True):
            started = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - started)
    return measured


def tail(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)]


def make_table(path: Path, files: int) -> str:
    """A table of `files` live files (all the same Parquet file under many names is enough), with a checkpoint."""
    table = tahoe.Table.create(path, ROW.schema)
    table.append(ROW)
    if files > 1:
        data = next(path.glob("*.parquet"))
        modified = int(data.stat().st_mtime * 1000)
        statistics_text = table.files()["stats"][0].as_py()
        transaction = table.begin()
        for number in range(files - 1):
            name = f"part-{number:06}.parquet"
            (path / name).hardlink_to(data)
            transaction.stage(AddFile(name, {}, data.stat().st_size, modified, data_change=True, stats=statistics_text))
        table.commit(transaction, Operation("WRITE", {"mode": "Append"}))
    table.checkpoint()
    return str(path)


def tahoe_by_path(path: str) -> Callable[[], object]:
    return lambda: tahoe.Table(path).append(ROW)


def tahoe_kept(path: str) -> Callable[[], object]:
    table = tahoe.Table(path)
    return lambda: table.append(ROW)


def deltalake_by_path(path: str) -> Callable[[], object]:
    return lambda: deltalake.write_deltalake(path, ROW, mode="append")


def deltalake_kept(path: str) -> Callable[[], object]:
    table = deltalake.DeltaTable(path)
    return lambda: deltalake.write_deltalake(table, ROW, mode="append")


if __name__ == "__main__":
    main()
