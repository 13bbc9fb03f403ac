"""Many small files as a few streams: the same rows in the same order, and errors where they were, as if each were read by itself."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError
from tahoe.log.replay import add_files
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.file_row_groups import evenly
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.small_files import joined, together
from tahoe.store.location import decode_path


def stream(*rows: list[int], error: bool = False) -> Iterator[pa.RecordBatch]:
    for some in rows:
        yield pa.record_batch({"a": pa.array(some, pa.int64())})
    if error:
        raise OSError("gone")


def begin(*rows: list[int], error: bool = False) -> partial[Iterator[pa.RecordBatch]]:
    return partial(stream, *rows, error=error)


def test_small_neighbours_are_one_stream_and_large_files_stay_alone() -> None:
    sizes = [10, 10, 2_000_000, 10, None, 10]
    actual = together([ReadTask(str(place), size) for place, size in enumerate(sizes)])
    assert [[task.name for task in group] for group in actual] == [["0", "1"], ["2"], ["3"], ["4"], ["5"]]
    assert len(together([ReadTask("", 1)] * 1000)) == 16
    assert together([]) == []


def test_rows_keep_their_order_in_fewer_batches() -> None:
    (batch,) = joined([begin([1], [2, 3]), begin(), begin([4])])
    assert batch["a"].to_pylist() == [1, 2, 3, 4]
    large = list(range(60_000))
    assert [batch.num_rows for batch in joined([begin(large), begin(large), begin([1])])] == [60_000, 60_001]


def test_rows_before_an_error_come_before_it() -> None:
    batches = joined([begin([1]), begin([2], error=True), begin([3])])
    assert next(batches)["a"].to_pylist() == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(batches)


def test_some_of_many_are_taken_evenly() -> None:
    assert evenly(range(10), 3) == [0, 3, 6]
    assert evenly([1, 2], 3) == [1, 2]


# -- tiny files read together, and one by one ------------------------------------------------------------------------------------

LONG = "x" * 40
MAPPED = {"delta.columnMapping.mode": "name"}
TRACKED = {"delta.enableRowTracking": "true"}


def some_rows(number: int) -> pa.Table:
    """Of most types; texts of many lengths, some too long for the bounds in the log; nulls and NaN."""
    moment = datetime(2026, 1, 1 + number, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array([number * 10, None, number * 10 + 1], pa.int64()),
            "small": pa.array([-number, 0, 7], pa.int16()),
            "text": ["é" * number, "b" * (number % 7), LONG + str(number) if number == 5 else None],
            "number": [0.5, float("nan") if number == 3 else 1.5, None],
            "truth": [True, None, False],
            "moment": pa.array([moment, None, moment], pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal("1.10"), None, Decimal(number)], pa.decimal128(10, 2)),
            "bytes": pa.array([b"\xff\x00", None, b""], pa.binary()),
            "part": pa.array([{"a": number}, None, {"a": 2}], pa.struct([("a", pa.int32())])),
        }
    )


def table_of(path: Path, properties: dict[str, str], files: int = 8) -> Table:
    table = Table.create(path, some_rows(0).schema, properties=properties)
    for number in range(files):
        table.append(some_rows(number))
    return table


def one_by_one(table: Table) -> pa.Table:
    scan = Scan(table.snapshot())
    return pa.concat_tables([scan.read([add]) for add in adds_of(table)])


def adds_of(table: Table) -> list[Any]:
    return sorted(add_files(table.files()), key=lambda add: add.path)


def tasks_of(table: Table) -> Sequence[ReadTask]:
    return [
        ReadTask(decode_path(add.path, table.url), add.size, dict(add.partition_values), add.deletion_vector, stats=add.stats)
        for add in adds_of(table)
    ]


def together_or_not(table: Table) -> list[pa.RecordBatch] | None:
    return DataFiles(table.store, table.snapshot().config).tiny.rows(tasks_of(table))


def moved(table: Table) -> pa.Table:
    rows = pa.Table.from_batches(Scan(table.snapshot()).read_to_move(adds_of(table)))
    return rows.select(some_rows(0).column_names)


@pytest.mark.parametrize("properties", [{}, MAPPED], ids=["plain", "mapped"])
def test_tiny_files_of_one_writer_are_read_together(tmp_path: Path, properties: dict[str, str]) -> None:
    table = table_of(tmp_path, properties)
    batches = together_or_not(table)
    assert batches is not None and len(batches) < 8, "few batches, of many files"
    assert same(pa.Table.from_batches(batches), one_by_one(table))
    assert same(moved(table), one_by_one(table))


def test_groups_of_tiny_files_are_read_and_worked_on_by_threads_and_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tahoe.snapshot.small_files._FILES_OF_A_STREAM", 2)
    monkeypatch.setattr("tahoe.snapshot.scan._BYTES_WORTH_THREADS", 0)
    monkeypatch.setattr("tahoe.snapshot.scan._BYTES_WORTH_A_THREAD", 0)
    table = table_of(tmp_path, {})
    workers = set[str]()

    def last_first(rows: pa.RecordBatch) -> pa.RecordBatch:
        workers.add(threading.current_thread().name)
        return rows.take(pa.array(range(rows.num_rows - 1, -1, -1)))

    actual = list(Scan(table.snapshot()).read_to_move(adds_of(table), then=last_first))
    assert workers == {"tahoe-read-ahead"}
    assert len(actual) >= 4, "each group of two is a stream"
    assert same(pa.Table.from_batches([last_first(rows) for rows in actual]), one_by_one(table))


def test_files_of_other_writers_and_other_columns_give_their_rows_too(tmp_path: Path) -> None:
    table = table_of(tmp_path, {}, files=3)
    table.append(some_rows(3).append_column("new", pa.array([1, 2, 3])), merge_schema=True)
    names = [task.name for task in tasks_of(table)]
    rows = pq.read_table(tmp_path / names[0])
    assert same(moved(table), one_by_one(table).select(some_rows(0).column_names))
    assert together_or_not(table) is None, "whether the log knows values of a column that a file lacks is a look at that file"
    other = table_of(tmp_path / "other", {}, files=0)
    sizes = []
    for number, codec in enumerate(["snappy", "zstd", "none", "zstd", "snappy"]):
        pq.write_table(rows, tmp_path / "other" / f"{number}.parquet", compression=codec, store_schema=number % 2 == 0)
        sizes.append((tmp_path / "other" / f"{number}.parquet").stat().st_size)
    tasks = [ReadTask(f"{number}.parquet", size) for number, size in enumerate(sizes)]
    batches = DataFiles(other.store, other.snapshot().config).tiny.rows(tasks)
    assert batches is not None
    assert same(pa.Table.from_batches(batches), pa.concat_tables([one_by_one_of(other, task) for task in tasks]))


def one_by_one_of(table: Table, task: ReadTask) -> pa.Table:
    return pa.Table.from_batches(DataFiles(table.store, table.snapshot().config).read(task))


def test_dead_rows_and_row_ids_are_read_file_by_file(tmp_path: Path) -> None:
    table = table_of(tmp_path / "dead", {"delta.enableDeletionVectors": "true"})
    table.delete("id = 21")
    assert together_or_not(table) is None
    assert same(moved(table), one_by_one(table))
    tracked = table_of(tmp_path / "tracked", TRACKED)
    before = sorted(tracked.to_arrow(row_ids=True)["_row_id"].to_pylist())
    tracked.optimize()
    assert sorted(tracked.to_arrow(row_ids=True)["_row_id"].to_pylist()) == before


def outcome(read: Any) -> Any:
    """The rows, or the error."""
    try:
        return read()
    except TahoeError as error:
        return type(error), error.code, error.facts.get("file")


@pytest.mark.damages_tables
@pytest.mark.parametrize("changes", [80, pytest.param(400, marks=pytest.mark.soak)])
def test_whatever_bit_is_changed_the_same_is_reported_as_of_a_file_read_by_itself(tmp_path: Path, changes: int) -> None:
    """Where the change leaves a file that Parquet can be read from, rows come as they would have come."""
    table = table_of(tmp_path, {}, files=4)
    path = tmp_path / tasks_of(table)[2].name
    whole, chance = path.read_bytes(), random.Random(3)
    count = 0
    for _ in range(changes):
        at = chance.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :])
        alone, beside = outcome(lambda: one_by_one(table)), outcome(lambda: moved(table))
        assert same(alone, beside), at
        count += isinstance(alone, tuple)
    assert count > changes // 4


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return bool(one == other)
    # As text, in which NaN is itself.
    return as_text(one) == as_text(other)


def as_text(rows: pa.Table) -> str:
    """A changed bit can make a moment of which Python has no date: moments are numbers here."""
    moments = [pa.types.is_timestamp(column.type) for column in rows.columns]
    columns = [column.cast(pa.int64()) if is_moment else column for column, is_moment in zip(rows.columns, moments, strict=True)]
    return str(pa.table(columns, names=rows.column_names).to_pylist())


@pytest.mark.parametrize(
    ("column", "bounds"), [("id", (20, 22)), ("small", (-9, 7)), ("text", ("b", "z"))], ids=["whole number", "short", "text"]
)
def test_statistics_that_say_something_else_are_reported_with_the_file(
    tmp_path: Path, column: str, bounds: tuple[Any, Any]
) -> None:
    table = table_of(tmp_path, {}, files=4)
    adds = adds_of(table)
    stats = json.loads(adds[1].stats)
    stats["minValues"][column], stats["maxValues"][column] = bounds
    adds[1] = replace(adds[1], stats=json.dumps(stats))
    alone = outcome(lambda: Scan(table.snapshot()).read(adds))
    beside = outcome(lambda: pa.Table.from_batches(Scan(table.snapshot()).read_to_move(adds)))
    assert alone == beside and alone[1:] == ("TAHOE_DATA_FILE_CONTRADICTS_LOG", decode_path(adds[1].path, table.url))
