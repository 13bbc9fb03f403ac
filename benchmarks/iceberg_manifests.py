"""The speed of converting commits to Iceberg metadata: whole tables, and small commits on top of tables of several sizes.

    python -m benchmarks.iceberg_manifests [--files 100000]

Tables are logs without data files, as a conversion opens none: six columns with statistics and one partition column. PyIceberg's
manifest writer gets the same files for comparison.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus, write_manifest
from pyiceberg.table import StaticTable
from pyiceberg.typedef import Record

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.txn.commit import RetryPolicy
from tahoe.txn.hooks import commit_transaction
from tahoe.txn.transaction import Operation

TITLES = ("files", "full", "files/s", "a CPU s", "bytes/file", "add 1", "add 100", "remove 1", "cold", "merge")
WIDTHS = (9, 8, 9, 9, 12, 8, 9, 10, 8, 8)
UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("ratio", pa.float64()),
        ("price", pa.decimal128(12, 2)),
        ("part", pa.date32()),
    ]
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=100_000, help="files of the largest table")
    files = arguments.parse_args().files
    with tempfile.TemporaryDirectory() as folder:
        rows = [measured(Path(folder) / f"t{count}", count) for count in (files // 100, files // 10, files)]
        table = Table(Path(folder) / f"t{files}")
        theirs = pyiceberg_seconds(table, files)
    print("times in milliseconds; small commits are the median of five, each converted by itself")
    print("".join(f"{title:>{width}}" for title, width in zip(TITLES, WIDTHS, strict=True)))
    for count, full, processor, size, *small in rows:
        times = [f"{count:,}", f"{full * 1000:,.0f}", f"{count / full:,.0f}", f"{count / processor:,.0f}", f"{size / count:.0f}"]
        cells = [*times, *(f"{seconds * 1000:,.0f}" for seconds in small)]
        print("".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True)))
    print(f"PyIceberg's writer, manifests alone, entries made beforehand: {theirs * 1000:,.0f} ms")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def measured(path: Path, count: int) -> tuple[float, ...]:
    """Seconds of a conversion from nothing, and of conversions of small commits.

    ``cold`` removes one file in a process that has not seen the table; ``merge`` is the slowest of 40 commits of one file, as it merges
    small manifests.
    """
    table = Table.create(path, SCHEMA, partition_by=["part"], properties={"delta.enableIcebergCompatV2": "true"})
    names = {column.name: column.physical_name for column in table.schema()}
    commit(table, (add(names, i) for i in range(count)))
    table.set_properties(UNIFORM)
    table.uniform.wait(timeout=600)
    size = sum(entry.size for entry in table.store.walk("metadata") if entry.name.endswith(".avro"))
    processor = time.process_time()
    full = seconds(lambda: table.uniform.sync(rebuild=True))
    processor = time.process_time() - processor
    numbers = iter(range(count, 2**40))
    victims = iter(range(0, count, count // 8))
    one_file = median(lambda: commit(table, [add(names, next(numbers))]), table)
    hundred = median(lambda: commit(table, [add(names, next(numbers)) for _ in range(100)]), table)
    remove = median(lambda: commit(table, [gone(names, next(victims))]), table)
    UNIFORM_RUNTIME.caches.clear()
    commit(table, [gone(names, next(victims))])
    cold = seconds(table.uniform.sync)
    merge = 0.0
    for _ in range(40):
        commit(table, [add(names, next(numbers))])
        merge = max(merge, seconds(table.uniform.sync))
    return count, full, processor, size, one_file, hundred, remove, cold, merge


def commit(table: Table, actions: Iterable[AddFile | RemoveFile]) -> None:
    """Without hooks after commits: the script starts and measures each conversion."""
    transaction = table.begin()
    transaction.stage(*actions)
    transaction.looks_for = "none"  # the data files do not exist: a conversion opens none
    commit_transaction(transaction, Operation("WRITE"), RetryPolicy(), ())


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def median(prepare: Callable[[], None], table: Table) -> float:
    times = []
    for _ in range(5):
        prepare()
        table.snapshot()
        times.append(seconds(table.uniform.sync))
    return sorted(times)[2]


def path_of(number: int) -> str:
    return f"{number % 97:02d}/part-{number % 100000:05d}-8a2f9b1c-3d4e-4f5a-9b8c-{number:012x}-c000.snappy.parquet"


def part_of(number: int) -> str:
    return str(date(2020, 1, 1) + timedelta(days=number // 1000))


def add(names: dict[str, str], number: int) -> AddFile:
    least = {
        "id": number * 1000,
        "name": f"name-{number:08d}",
        "at": f"2024-01-01T00:{number % 60:02d}:00.123Z",
        "day": part_of(number),
    }
    most = {
        "id": number * 1000 + 999,
        "name": f"name-{number + 500:08d}",
        "at": f"2024-01-01T01:{number % 60:02d}:00.123Z",
        "day": part_of(number + 1),
    }
    floats = {"ratio": number * 0.37, "price": number + 0.25}
    stats = {
        "numRecords": 1000,
        "minValues": {names[key]: value for key, value in {**least, **floats}.items()},
        "maxValues": {names[key]: value for key, value in {**most, **floats}.items()},
        "nullCount": {names[key]: number % 5 for key in (*least, *floats)},
    }
    text = json.dumps(stats, separators=(",", ":"))
    return AddFile(path_of(number), {names["part"]: part_of(number)}, 100_000 + number, 1, True, text)


def gone(names: dict[str, str], number: int) -> RemoveFile:
    return RemoveFile(path_of(number), 1, True, True, {names["part"]: part_of(number)}, 100_000 + number)


def pyiceberg_seconds(table: Table, count: int) -> float:
    """PyIceberg's own writer, given ready-made entries of the same table: bounds and partition values are already converted."""
    location = table.uniform.status().metadata_location
    assert location is not None
    iceberg = StaticTable.from_metadata(location)
    entries = [
        ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=1,
            data_file=DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{table.url}/{path_of(number)}",
                file_format=FileFormat.PARQUET,
                partition=Record(number // 1000),
                record_count=1000,
                file_size_in_bytes=100_000 + number,
                value_counts=dict.fromkeys(range(1, 7), 1000),
                null_value_counts=dict.fromkeys(range(1, 7), number % 5),
                lower_bounds={key: number.to_bytes(8, "little") for key in range(1, 7)},
                upper_bounds={key: number.to_bytes(8, "little") for key in range(1, 7)},
            ),
        )
        for number in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        output = PyArrowFileIO().new_output(f"{folder}/m.avro")
        start = time.perf_counter()
        with write_manifest(2, iceberg.spec(), iceberg.schema(), output, 1, "deflate") as writer:
            for entry in entries:
                writer.add_entry(entry)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
