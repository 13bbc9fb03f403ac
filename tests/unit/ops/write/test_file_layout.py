"""The columns and ids in a footer, compared with the table's."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.ops.write.file_layout import has_dropped_columns, iceberg_faults


def field(name: str, data_type: pa.DataType, number: int | None) -> pa.Field:
    return pa.field(name, data_type, metadata=None if number is None else {b"PARQUET:field_id": str(number).encode()})


def place(*numbers: int | None, fields: str = "xy") -> pa.DataType:
    return pa.struct([field(name, pa.int64(), number) for name, number in zip(fields, numbers, strict=True)])


def footer(schema: pa.Schema, **options: object) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink, **options)
    return pq.read_metadata(io.BytesIO(sink.getvalue()))


GOOD = pa.schema(
    [field("a", pa.int64(), 1), field("s", place(3, 4), 2), field("l", pa.list_(field("element", place(7, 8), 6)), 5)]
)


def test_a_file_as_the_table_asks_for_has_no_fault() -> None:
    assert iceberg_faults(footer(GOOD), GOOD, ["a"]) == () and not has_dropped_columns(footer(GOOD), GOOD, [])


def test_a_column_that_the_file_has_not_yet_is_no_fault() -> None:
    older = footer(pa.schema(list(GOOD)[:1]))
    assert iceberg_faults(older, GOOD, []) == () and not has_dropped_columns(older, GOOD, [])


@pytest.mark.parametrize(
    "file",
    [
        pa.schema([field("a", pa.int64(), 9)]),
        pa.schema([field("a", pa.int64(), None)]),
        pa.schema([field("s", place(3, 9), 2)]),
        pa.schema([field("l", pa.list_(field("element", place(7, None), 6)), 5)]),
        pa.schema([field("a", pa.int64(), 1), field("dropped", pa.list_(field("element", pa.int64(), None)), 9)]),
    ],
    ids=["another id", "no id", "inside a struct", "inside a list", "of a dropped column"],
)
def test_an_id_that_is_missing_or_another_is_a_fault_at_any_depth(file: pa.Schema) -> None:
    assert iceberg_faults(footer(file), GOOD, []) == ("field ids",)


def test_int96_and_missing_partition_columns_are_faults() -> None:
    times = pa.schema([field("t", pa.timestamp("us"), 1)])
    reported = iceberg_faults(footer(times, use_deprecated_int96_timestamps=True), times, ["p"])
    assert reported == ("INT96 timestamps", "partition columns")


def test_columns_and_fields_that_the_table_has_no_more_are_dropped_ones_but_for_partition_columns() -> None:
    more = pa.schema([*GOOD, field("old", pa.int64(), 10)])
    assert has_dropped_columns(footer(more), GOOD, []) and not has_dropped_columns(footer(more), GOOD, ["old"])
    inside = pa.schema([field("s", place(3, 4, 11, fields="xyz"), 2)])
    assert has_dropped_columns(footer(inside), GOOD, [])
    listed = pa.schema([field("l", pa.list_(field("element", place(7, 8, 12, fields="xyz"), 6)), 5)])
    assert has_dropped_columns(footer(listed), GOOD, [])
