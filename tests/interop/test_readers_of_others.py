"""Readers other than Tahoe read its tables with equal rows: deltalake, DuckDB's delta extension, Polars."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars
import pyarrow as pa
import pytest

import tahoe
from tests.interop.engines import canonical, read_deltalake, read_duckdb, read_polars

READERS = [pytest.param(read, id=read.__name__.removeprefix("read_")) for read in (read_deltalake, read_duckdb, read_polars)]
Reader = Callable[..., pa.Table]

INSTANTS = [
    datetime(2013, 1, 1, 12, 30, 0, 123456, UTC),
    None,
    datetime(1900, 1, 1, tzinfo=UTC),
    datetime(2262, 1, 1, tzinfo=UTC),
]
PLACES = [{"x": 1, "y": {"z": "q"}}, None, {"x": None, "y": None}, {"x": 2, "y": {"z": None}}]
ALL_TYPES = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int64()),
        "i32": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
        "i16": pa.array([1, None, -(2**15), 2**15 - 1], pa.int16()),
        "i8": pa.array([1, None, -128, 127], pa.int8()),
        "f32": pa.array([1.5, None, -0.0, float("inf")], pa.float32()),
        "f64": pa.array([1.5, None, float("nan"), float("-inf")], pa.float64()),
        "yes": pa.array([True, None, False, True]),
        "text": pa.array(["a", None, "", "größer than 'x' \" \\ 日本 \u2028"]),
        "raw": pa.array([b"\x00\xff", None, b"", b"abc"]),
        "day": pa.array([date(2013, 1, 1), None, date(1, 1, 1), date(9999, 12, 31)]),
        "at": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.25"), None, Decimal("-99999999.99"), Decimal("0.00")], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(10) ** 37, None, Decimal(-1), Decimal(0)], pa.decimal128(38, 0)),
        "tags": pa.array([["x", None], None, [], ["y"]], pa.list_(pa.string())),
        "scores": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "place": pa.array(PLACES, pa.struct({"x": pa.int32(), "y": pa.struct({"z": pa.string()})})),
    }
)
SCHEMA = ALL_TYPES.schema


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.mark.parametrize("read", READERS)
def test_every_type_is_read_equal(path: str, read: Reader) -> None:
    tahoe.Table.create(path, SCHEMA).append(ALL_TYPES)
    assert canonical(read(path)) == canonical(ALL_TYPES)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("column", ["i32", "text", "day", "yes", "price", "at", "i8"])
def test_a_table_partitioned_by_any_type_is_read_equal(path: str, read: Reader, column: str) -> None:
    rows = ALL_TYPES.select(["id", column])
    if column == "text":
        # The specification cannot distinguish an empty text from null in a partition value.
        rows = rows.filter(pa.compute.not_equal(rows["text"], "").fill_null(True))
    if column == "day" and read is read_polars:
        rows = rows.filter(pa.compute.greater(pa.compute.year(rows["day"]), 1900).fill_null(True))
    tahoe.Table.create(path, rows.schema, partition_by=[column]).append(rows)
    assert canonical(read(path)) == canonical(rows)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("value", ["a/b", "a b", "ü", "50%", "a=b", "a:b", "#?&", "..", "'\"", "a\\b"])
def test_partition_values_that_paths_must_escape_are_read_equal(path: str, read: Reader, value: str) -> None:
    rows = pa.table({"id": [1, 2], "p": [value, "plain"]})
    tahoe.Table.create(path, rows.schema, partition_by=["p"]).append(rows)
    assert canonical(read(path)) == canonical(rows)


@pytest.mark.parametrize("read", READERS)
def test_old_versions_and_checkpoints_are_read_equal(path: str, read: Reader) -> None:
    table = tahoe.Table.create(path, pa.schema({"id": pa.int64(), "month": pa.int32()}), partition_by=["month"])
    written = [pa.table({"id": pa.array([n], pa.int64()), "month": pa.array([n % 3], pa.int32())}) for n in range(24)]
    for rows in written:
        table.append(rows)
    assert sorted(Path(path).glob("_delta_log/*.checkpoint.parquet")), "no checkpoint was written on the way"
    for version in (1, 9, 10, 11, 20, 24):
        assert canonical(read(path, version)) == canonical(pa.concat_tables(written[:version]))


# deltalake's scan as a pyarrow dataset, which Polars uses too, refuses the feature; its query engine does not.
@pytest.mark.parametrize("read", [pytest.param(read_deltalake, id="deltalake"), pytest.param(read_duckdb, id="duckdb")])
def test_v2_checkpoints_whose_sidecars_are_named_again_are_read_equal(path: str, read: Reader) -> None:
    schema = pa.schema({"id": pa.int64(), "month": pa.int32()})
    properties = {"delta.checkpointPolicy": "v2", "delta.checkpointInterval": "3"}
    table = tahoe.Table.create(path, schema, partition_by=["month"], properties=properties)
    written = [pa.table({"id": [n], "month": pa.array([n % 3], pa.int32())}, schema) for n in range(12)]
    for rows in written:
        table.append(rows)
    for commit in Path(path).glob("_delta_log/*.json"):
        if int(commit.name[:20]) < 9:
            commit.unlink()
    assert canonical(read(path, 9)) == canonical(pa.concat_tables(written[:9]))
    table.delete("month = 1")
    table.delete("id < 4")
    table.append(written[1])
    assert [*Path(path).glob("_delta_log/*15.checkpoint.*.parquet")]
    left = [n for n in range(4, 12) if n % 3 != 1] + [1]
    assert canonical(read(path)) == canonical(pa.concat_tables([written[n] for n in left]))


@pytest.mark.parametrize("read", READERS)
def test_tables_after_overwrites_are_read_equal(path: str, read: Reader) -> None:
    rows = pa.table({"id": pa.array(range(30), pa.int64()), "month": pa.array([n % 3 for n in range(30)], pa.int32())})
    table = tahoe.Table.create(path, rows.schema, partition_by=["month"])
    table.append(rows)
    corrected = pa.table({"id": pa.array([100, 101], pa.int64()), "month": pa.array([1, 1], pa.int32())})
    table.overwrite(corrected, replace_where="month = 1")
    selected = rows.filter(pa.compute.not_equal(rows["month"], 1))
    assert canonical(read(path)) == canonical(pa.concat_tables([selected, corrected]))
    table.overwrite(corrected)
    assert canonical(read(path)) == canonical(corrected)


@pytest.mark.parametrize("read", READERS)
def test_an_added_column_is_null_in_older_rows_for_every_reader(path: str, read: Reader) -> None:
    table = tahoe.Table.create(path, pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    table.append(pa.table({"id": pa.array([2], pa.int64()), "more": ["x"]}), merge_schema=True)
    assert canonical(read(path)) == canonical(pa.table({"id": pa.array([1, 2], pa.int64()), "more": [None, "x"]}))


# With column mapping, DuckDB's delta extension 1.5.5 reads partition columns as null unless they come first in the schema.
@pytest.mark.parametrize("read", [pytest.param(read_deltalake, id="deltalake"), pytest.param(read_duckdb, id="duckdb")])
@pytest.mark.parametrize("mode", ["name", "id"])
def test_a_table_with_column_mapping_is_read_equal(path: str, read: Reader, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode}
    rows = ALL_TYPES.select(["i32", "id", "text", "place", "tags"])
    tahoe.Table.create(path, rows.schema, partition_by=["i32"], properties=properties).append(rows)
    assert canonical(read(path)) == canonical(rows)


@pytest.mark.parametrize("read", [pytest.param(read_deltalake, id="deltalake"), pytest.param(read_duckdb, id="duckdb")])
def test_a_table_ready_for_iceberg_is_read_equal(path: str, read: Reader) -> None:
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    rows = ALL_TYPES.select(["i32", "id", "text", "place", "tags", "scores"])
    tahoe.Table.create(path, rows.schema, partition_by=["i32"], properties=properties).append(rows)
    assert canonical(read(path)) == canonical(rows)


def test_polars_skips_files_by_our_statistics(path: str) -> None:
    table = tahoe.Table.create(path, pa.schema({"id": pa.int64()}))
    for n in range(5):
        table.append(pa.table({"id": pa.array([n], pa.int64())}))
    assert polars.scan_delta(path).filter(polars.col("id") == 3).collect().to_arrow().num_rows == 1
