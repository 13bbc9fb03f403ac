"""An UPDATE that copies columns as they are leaves the rows, statistics and tags of one that rewrites whole files."""

from __future__ import annotations

import json
import random
from datetime import date
from decimal import Decimal
from itertools import product

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tahoe
from tahoe.base.exceptions import InvariantViolation, StorageFailure, TahoeError
from tahoe.ops.rows import changed_columns
from tahoe.ops.write import parquet_files
from tahoe.store import side_by_side
from tests.sampling import sampled

ROWS = 300
chance = random.Random(11)


def some(value):
    return None if chance.random() < 0.15 else value


DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "n": pa.array([some(chance.randrange(50)) for _ in range(ROWS)], pa.int32()),
        "x": pa.array([some(chance.choice([0.5, -1.5, float("nan")])) for _ in range(ROWS)], pa.float64()),
        "text": pa.array([some(f"text {number}") for number in range(ROWS)], pa.string()),
        "price": pa.array([some(Decimal(number) / 100) for number in range(ROWS)], pa.decimal128(9, 2)),
        "day": pa.array([some(date(2024, 1, 1 + number % 28)) for number in range(ROWS)], pa.date32()),
        "list": pa.array([some([number] * (number % 3)) for number in range(ROWS)], pa.list_(pa.int64())),
        "pair": pa.array(
            [some({"a": number, "b": some("b")}) for number in range(ROWS)], pa.struct([("a", pa.int32()), ("b", pa.string())])
        ),
        "p": pa.array([f"p{number % 2}" for number in range(ROWS)], pa.string()),
    }
)
TABLES = {
    "plain": {},
    "partitioned": {"partition_by": ["p"]},
    "mapped": {"partition_by": ["p"], "properties": {"delta.columnMapping.mode": "name"}},
    "mapped by id": {"properties": {"delta.columnMapping.mode": "id"}},
    "compatible with Iceberg": {
        "partition_by": ["p"],
        "properties": {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"},
    },
    "few statistics": {"properties": {"delta.dataSkippingStatsColumns": "n,x,pair.a"}},
    "bloom filters, zstd": {"properties": {"tahoe.bloomFilterColumns": "id,n,text", "delta.parquet.compression.codec": "zstd"}},
}
UPDATES = {
    "a number": ({"n": "n + 1"}, "id % 7 = 3"),
    "a float": ({"x": "x * 2"}, "id % 7 = 3"),
    "a text from others": ({"text": "concat(text, ' of ', p)"}, "n < 10"),
    "several": ({"price": "price + 1", "day": "date'2025-01-01'", "n": "NULL"}, "id > 250 or id < 3"),
    "a field": ({"pair.b": "'new'"}, "id % 5 = 0"),
    "a list": ({"list": "NULL"}, "id % 5 = 0"),
    "all rows": ({"n": "id"}, None),
}


@pytest.fixture(autouse=True)
def with_threads_and_row_groups(monkeypatch):
    """Small tables are written as large ones are."""
    monkeypatch.setattr(side_by_side, "_BYTES_WORTH_THREADS", 0)
    monkeypatch.setattr(parquet_files, "ROWS_OF_A_GROUP", 40)


def made(path, **options):
    properties = {"delta.enableDeletionVectors": "false", **options.pop("properties", {})}
    table = tahoe.Table.create(path, DATA.schema, properties=properties, **options)
    table.append(DATA, max_rows_per_file=100)
    return table


def facts(table):
    """Statistics and tags of each file, in the order of the rows."""
    actual = [
        (json.loads(add.stats, parse_float=Decimal), add.tags, add.partition_values)
        for add in table.snapshot().scan().add_files()
    ]
    return sorted(actual, key=str)


def rows(table):
    return table.to_arrow().sort_by("id").combine_chunks()


@pytest.fixture
def whole_files(monkeypatch):
    def switch():
        monkeypatch.setattr(changed_columns.ChangedColumns, "rewritten", lambda *_: {})

    return switch


@pytest.mark.parametrize("case", sampled(product(TABLES, UPDATES), 5), ids=str)
def test_the_result_is_that_of_rewriting_whole_files(tmp_path, whole_files, case):
    options, update = TABLES[case[0]], UPDATES[case[1]]
    ours, other = made(tmp_path / "ours", **options), made(tmp_path / "other", **options)
    before = {add.path: pq.read_metadata(tmp_path / "ours" / add.path) for add in ours.snapshot().scan().add_files()}
    result = ours.update(*update)
    whole_files()
    assert other.update(*update).num_updated_rows == result.num_updated_rows > 0
    assert str(rows(ours).to_pylist()) == str(rows(other).to_pylist())
    assert not ours.check(deep=True, strict=True)
    assert {str(tags) for _, tags, _ in facts(ours)} == {str(tags) for _, tags, _ in facts(other)}
    assert sum(stats["numRecords"] for stats, _, _ in facts(ours)) == ROWS
    if len(facts(ours)) == len(facts(other)):
        assert facts(ours) == facts(other)
    groups = [pq.read_metadata(tmp_path / "ours" / add.path).num_row_groups for add in ours.snapshot().scan().add_files()]
    assert sorted(groups) == sorted(footer.num_row_groups for footer in before.values())


def test_other_readers_read_the_new_files(tmp_path):
    table = made(tmp_path / "t", properties={"tahoe.bloomFilterColumns": "id,text"})
    table.update({"n": "n + 1", "x": "1.0"}, "id % 7 = 3")
    for add in table.snapshot().scan().add_files():
        path = tmp_path / "t" / add.path
        actual = duckdb.sql(f"SELECT id, n, x, text, list, pair FROM '{path}' WHERE id % 7 = 3 ORDER BY id").arrow().read_all()
        assert set(actual["x"].to_pylist()) == {1.0}
        assert pq.read_table(path).num_rows == 100
        filters = duckdb.sql(
            f"SELECT DISTINCT path_in_schema FROM parquet_metadata('{path}') WHERE bloom_filter_length > 0"
        ).fetchall()
        assert sorted(filters) == [("id",), ("text",)]
        value = pq.read_table(path)["text"].drop_null()[0].as_py()
        assert duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE text = '{value}'").fetchone() == (1,)


def copies(table, values, where):
    """Whether an UPDATE copies columns of all files."""
    seen = []
    write = changed_columns.ChangedColumns.rewritten

    def spy(self, changes, *more):
        by_path = write(self, changes, *more)
        seen.append(len(by_path) == len(changes))
        return by_path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_columns.ChangedColumns, "rewritten", spy)
        table.update(values, where)
    return seen == [True]


def test_columns_are_copied_where_nothing_else_depends_on_them(tmp_path):
    assert copies(made(tmp_path / "a"), {"n": "1"}, "id % 7 = 3")
    assert not copies(made(tmp_path / "b", partition_by=["p"]), {"p": "'p2'"}, "id % 7 = 3")
    assert not copies(made(tmp_path / "c", properties={"delta.enableRowTracking": "true"}), {"n": "1"}, "id % 7 = 3")
    checked = made(tmp_path / "d")
    checked.add_constraint("small", "n < 60 or n is null")
    assert not copies(checked, {"n": "2"}, "id % 7 = 3")
    with pytest.raises(InvariantViolation):
        checked.update({"n": "100"}, "id % 7 = 3")
    marked = made(tmp_path / "e", properties={"delta.enableDeletionVectors": "true"})
    marked.delete("id = 17")
    marked.set_properties({"delta.enableDeletionVectors": "false"})
    assert not copies(marked, {"n": "3"}, "id % 7 = 3")
    assert marked.to_arrow().num_rows == ROWS - 1
    widened = made(tmp_path / "f", properties={"delta.enableTypeWidening": "true"})
    widened.change_column("n", data_type="long")
    assert not copies(widened, {"n": "4"}, "id % 7 = 3")
    assert copies(widened, {"n": "5"}, "id % 7 = 3"), "the files have the new type now"
    added = made(tmp_path / "g")
    added.add_columns({"more": "string"})
    assert not copies(added, {"n": "6"}, "id % 7 = 3")


def test_a_column_that_must_not_be_null_stays_so(tmp_path):
    schema = pa.schema([("id", pa.int64()), pa.field("n", pa.int64(), nullable=False)])
    table = tahoe.Table.create(tmp_path / "t", schema, properties={"delta.enableDeletionVectors": "false"})
    table.append(pa.table({"id": range(9), "n": range(9)}))
    with pytest.raises(InvariantViolation):
        table.update({"n": "NULL"}, "id = 3")
    assert table.version() == 1 and len(list((tmp_path / "t").glob("*.parquet"))) == 1


def test_files_of_other_writers_without_our_tag_keep_no_greatest_float(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    data = pa.table({"n": [1, 2, 3], "f": [1.0, float("nan"), 2.0]})
    deltalake.write_deltalake(str(tmp_path / "t"), data)
    table = tahoe.Table(tmp_path / "t")
    table.update({"n": "n + 1"}, "n > 1")
    assert table.to_arrow("f > 5").num_rows == 1, "NaN is greater than every other number"
    assert table.to_arrow()["n"].to_pylist() == [1, 3, 4]


def test_nothing_remains_of_an_update_that_fails(tmp_path, monkeypatch):
    table = made(tmp_path / "t")
    files = set((tmp_path / "t").glob("*.parquet"))
    put, calls = type(table.store).put, []

    def fails(self, name, data):
        calls.append(name)
        if len(calls) == 2:
            raise StorageFailure("The disk is full.", code="TAHOE_STORAGE_FAILURE")
        put(self, name, data)

    monkeypatch.setattr(type(table.store), "put", fails)
    with pytest.raises(TahoeError, match="The disk is full"):
        table.update({"n": "n + 1"}, "id % 7 = 3")
    assert set((tmp_path / "t").glob("*.parquet")) == files
