"""The cost of a small commit on the Iceberg side of small and large tables: ten files added, ten removed, ten that lose rows.

    PYTHONPATH=. python benchmarks/iceberg_conversion.py [--files 100000] [--pyiceberg 10000]

Tables are logs without data files, as a conversion opens none; deletion vectors are in the log itself. The ten files are adjacent, in the
order of writing, or scattered over the whole table. PyIceberg's overwrite of ten files is measured for comparison, on Iceberg tables of up
to the given number of files.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from _ratios import record
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record
from pyroaring import BitMap64

from benchmarks.iceberg_manifests import SCHEMA, add, gone
from tahoe.api.table import Table
from tahoe.protocol.actions import Action, AddFile, RemoveFile
from tahoe.protocol.dv import inline_descriptor
from tahoe.txn.commit import RetryPolicy
from tahoe.txn.hooks import commit_transaction
from tahoe.txn.transaction import Operation

UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.enableDeletionVectors": "true",
    "delta.universalFormat.config.iceberg.deletes": "position",
}
TIMES = 9
WIDTH = 14


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=100_000, help="files of the largest table")
    arguments.add_argument("--pyiceberg", type=int, default=10_000, help="files of the largest table that PyIceberg changes")
    asked = arguments.parse_args()
    largest = asked.files
    if largest < 100_000:
        arguments.error("the smallest table has a hundredth of --files and needs 1,000 to take from: give 100,000 or more")
    sizes = (largest // 100, largest // 10, largest)
    with tempfile.TemporaryDirectory() as folder:
        actual = {count: measured(Path(folder) / f"t{count}", count) for count in sizes}
        theirs = {count: pyiceberg_seconds(Path(folder) / f"i{count}", count) for count in sizes if count <= asked.pyiceberg}
    print(f"milliseconds of processor time of a conversion, the median of {TIMES}; each commit is converted by itself")
    print(f"{'':26}" + "".join(f"{count:>{WIDTH},}" for count in sizes) + f"{'growth':>{WIDTH}}")
    for name in actual[sizes[0]]:
        times = [actual[count][name] for count in sizes]
        record(f"{name}, growth with the table", times[-1] / times[0])
        print(f"{name:26}" + "".join(f"{t * 1000:>{WIDTH}.1f}" for t in times) + f"{times[-1] / times[0]:>{WIDTH}.2f}")

    cells = [f"{theirs[count] * 1000:.1f}" if count in theirs else "-" for count in sizes]
    growth = max(theirs.values()) / min(theirs.values()) if theirs else 0.0
    print(f"{'PyIceberg, 10 overwritten':26}" + "".join(f"{cell:>{WIDTH}}" for cell in cells) + f"{growth:>{WIDTH}.2f}")


def pyiceberg_seconds(path: Path, count: int) -> float:
    """PyIceberg's overwrite of ten files of a table of so many, in entries without statistics."""
    catalog = SqlCatalog("experiment", uri="sqlite://", warehouse=f"file://{path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=SCHEMA)
    files = [_data_file(f"file://{path}/f{number}.parquet") for number in range(count + 10)]
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        for file in files[:count]:
            snapshot.append_data_file(file)

    def overwrite() -> None:
        with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
            for gone, new in zip(files[: count : count // 10], files[count:], strict=True):
                snapshot.delete_data_file(gone)
                snapshot.append_data_file(new)

    return seconds(overwrite)


def _data_file(url: str) -> DataFile:
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=url,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1000,
        file_size_in_bytes=100_000,
    )
    file.spec_id = 0
    return file


def measured(path: Path, count: int) -> dict[str, float]:
    """Seconds, by name of the step."""
    table = Table.create(path, SCHEMA, partition_by=["part"], properties=UNIFORM)
    table.uniform.wait(timeout=60)
    names = {column.name: column.physical_name for column in table.schema()}
    commit(table, (add(names, i) for i in range(count)))
    table.snapshot().files()  # to read the log is no part of a conversion
    measured = {"all, from nothing": seconds(lambda: table.uniform.sync(rebuild=True))}
    fresh = iter(range(count, 2**40))
    in_a_row = iter(range(count // 2, count))
    spread = _spread(count // 2)
    marks = _spread(count // 2)
    measured["10 files added"] = median(table, lambda: [add(names, next(fresh)) for _ in range(10)])
    measured["10 in a row removed"] = median(table, lambda: [gone(names, next(in_a_row)) for _ in range(10)])
    measured["10 of everywhere removed"] = median(table, lambda: [gone(names, next(spread)) for _ in range(10)])
    measured["10 overwritten"] = median(
        table, lambda: [gone(names, next(spread)) for _ in range(10)] + [add(names, next(fresh)) for _ in range(10)]
    )
    measured["10 of everywhere marked"] = median(
        table, lambda: [a for _ in range(10) for a in marked(add(names, count - 1 - next(marks)))]
    )
    return measured


def _spread(count: int) -> Iterator[int]:
    """Numbers below `count`, none twice, far from each other."""
    step = next(n for n in range(int(count * 0.618), count) if all(n % p for p in (2, 5)))
    return iter((i * step) % count for i in range(count))


def marked(file: AddFile) -> list[Action]:
    """The actions by which three rows of the file are deleted."""
    removed = RemoveFile(file.path, 1, True, True, file.partition_values, file.size)
    return [removed, replace(file, deletion_vector=inline_descriptor(BitMap64([1, 5, 900])))]


def commit(table: Table, actions: Iterable[Action]) -> None:
    """Without hooks after commits: the script starts and measures each conversion."""
    transaction = table.begin()
    transaction.stage(*actions)
    transaction.looks_for = "none"  # the data files do not exist: a conversion opens none
    commit_transaction(transaction, Operation("WRITE"), RetryPolicy(), ())


def median(table: Table, actions: Callable[[], list[Action]]) -> float:
    times = []
    for _ in range(TIMES):
        commit(table, actions())
        table.snapshot()
        times.append(seconds(table.uniform.sync))
    return sorted(times)[TIMES // 2]


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
