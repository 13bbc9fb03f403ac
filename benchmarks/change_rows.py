"""Changing 1 % of the rows, scattered over every file, without Spark: Tahoe with deletion vectors against copy-on-write, by Tahoe
and by deltalake (which writes no vectors), on tables with the same initial files.

Goals: DELETE by vectors writes a tenth of the bytes and takes a third of the time of copying. Then a scan of the whole table with no
row, 1 % and 10 % deleted by vectors: the cost of vectors for readers.

    python benchmarks/change_rows.py [--rows 2000000] [--files 8] [--rounds 3]
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
import pyarrow.compute as pc
from _ratios import record
from rich.console import Console
from rich.table import Table as Grid

import tahoe

VECTORS = {"delta.enableDeletionVectors": "true"}
COPYING = {"delta.enableDeletionVectors": "false"}
Change = Callable[[str], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    data = rows(arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        changes(Path(folder), data, arguments.files, arguments.rounds)
        reads(Path(folder), data, arguments.files, arguments.rounds)


def changes(folder: Path, data: pa.Table, files: int, rounds: int) -> None:
    grid = Grid(title=f"1 % of {data.num_rows:,} rows in {files} files (medians of {rounds})")
    for header in ("change", "way", "seconds", "bytes written", "time / vectors", "bytes / vectors", "goals"):
        grid.add_column(header, justify="left" if header in ("change", "way", "goals") else "right")
    for name, ours, theirs in (
        (
            "DELETE",
            lambda path: tahoe.Table(path).delete("id % 100 = 7"),
            lambda path: deltalake.DeltaTable(path).delete("id % 100 = 7"),
        ),
        (
            "UPDATE",
            lambda path: tahoe.Table(path).update({"value": "value * 2"}, "id % 100 = 7"),
            lambda path: deltalake.DeltaTable(path).update(updates={"value": "value * 2"}, predicate="id % 100 = 7"),
        ),
    ):
        ways: dict[str, tuple[dict[str, str], Change]] = {
            "Tahoe, vectors": (VECTORS, ours),
            "Tahoe, copying": (COPYING, ours),
            "deltalake": (COPYING, theirs),
        }
        actual: dict[str, list[tuple[float, int]]] = {way: [] for way in ways}
        for number in range(rounds + 1):
            remaining = set()
            for way, (properties, change) in ways.items():
                path = make_table(folder / f"{name}-{way}-{number}", data, files, properties)
                measured = measure(path, change)
                if number:  # the first round warms up
                    actual[way].append(measured)
                remaining.add(summary(path))
            assert len(remaining) == 1, f"different rows are left: {remaining}"
        seconds = {way: statistics.median(second for second, _ in measured) for way, measured in actual.items()}
        written = {way: statistics.median(size for _, size in measured) for way, measured in actual.items()}
        for way in ways:
            slower = statistics.median(a[0] / b[0] for a, b in zip(actual[way], actual["Tahoe, vectors"], strict=True))
            if way != "Tahoe, vectors":
                record(f"{name}, vectors / {way}", 1 / slower)
            goals = f"{'met' if slower >= 3 else 'missed'} (3), {'met' if written[way] >= 10 * written['Tahoe, vectors'] else 'missed'} (10)"
            grid.add_row(
                name if way == "Tahoe, vectors" else "",
                way,
                f"{seconds[way]:.3f}",
                f"{written[way]:,.0f}",
                f"{slower:.1f}",
                f"{written[way] / written['Tahoe, vectors']:.1f}",
                goals if name == "DELETE" and way != "Tahoe, vectors" else "",
            )
    Console(width=130).print(grid)


def reads(folder: Path, data: pa.Table, files: int, rounds: int) -> None:
    tables = {}
    for percent in (0, 1, 10):
        path = make_table(folder / f"read-{percent}", data, files, VECTORS)
        if percent:
            tahoe.Table(path).delete(f"id % 100 < {percent}")
        tables[percent] = path
    measured: dict[int, list[float]] = {percent: [] for percent in tables}
    for number in range(rounds + 1):
        for percent, path in tables.items():
            started = time.perf_counter()
            count = tahoe.Table(path).to_arrow().num_rows
            if number:
                measured[percent].append(time.perf_counter() - started)
            assert count == data.num_rows - data.num_rows // 100 * percent
    grid = Grid(title=f"All of {data.num_rows:,} rows read, of which some are deleted by vectors (medians of {rounds})")
    for header in ("deleted", "seconds", "times that of none"):
        grid.add_column(header, justify="right")
    for percent, seconds in measured.items():
        ratio = statistics.median(a / b for a, b in zip(seconds, measured[0], strict=True))
        if percent:
            record(f"read, {percent} % deleted / none", ratio)
        grid.add_row(f"{percent} %", f"{statistics.median(seconds):.3f}", f"{ratio:.2f}")
    Console(width=130).print(grid)


def rows(count: int) -> pa.Table:
    ids = pa.array(range(count), pa.int64())
    return pa.table(
        {
            "id": ids,
            "value": pc.multiply(ids.cast(pa.float64()), 1.25),
            "group": pc.binary_join_element_wise("group", pc.bit_wise_and(ids, 1023).cast(pa.string()), "-"),
            "text": pc.binary_join_element_wise("a text about number", ids.cast(pa.string()), " "),
        }
    )


def make_table(path: Path, data: pa.Table, files: int, properties: dict[str, str]) -> str:
    table = tahoe.Table.create(path, data.schema, properties=properties)
    table.append(data, max_rows_per_file=-(-data.num_rows // files))
    return str(path)


def measure(path: str, change: Change) -> tuple[float, int]:
    """Seconds, and the bytes of data and vectors that were written."""
    before = {file: file.stat().st_size for file in Path(path).rglob("*") if file.is_file()}
    started = time.perf_counter()
    change(path)
    seconds = time.perf_counter() - started
    after = {file: file.stat().st_size for file in Path(path).rglob("*") if file.is_file()}
    return seconds, sum(size for file, size in after.items() if file not in before and "_delta_log" not in file.parts)


def summary(path: str) -> tuple[int, float]:
    rows = tahoe.Table(path).to_arrow(columns=["id", "value"])
    return rows.num_rows, round(pc.sum(rows["value"]).as_py(), 3)


if __name__ == "__main__":
    main()
