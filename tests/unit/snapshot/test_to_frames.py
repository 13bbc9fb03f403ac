"""Tables as pandas, Polars, DuckDB and PyCapsule consumers take them."""

from __future__ import annotations

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot import scan


def test_arrow_polars_and_duckdb_take_a_table_as_it_is(table):
    assert pa.table(table).equals(table.to_arrow())
    assert pa.schema(table) == table.to_arrow().schema
    assert pl.DataFrame(table).shape == (40, 3)
    flights = table  # noqa: F841 - DuckDB finds it by this name
    assert duckdb.sql("select count(*), sum(id) from flights where p < 2").fetchall() == [(20, 190)]


def test_a_requested_schema_chooses_columns_and_types(table):
    reader = pa.RecordBatchReader.from_stream(table, schema=pa.schema([("p", pa.int64()), ("id", pa.int32())]))
    actual = reader.read_all()
    assert actual.schema.types == [pa.int64(), pa.int32()] and actual.column("id").to_pylist() == list(range(40))
    with pytest.raises(InvalidRequest, match="nothing"):
        pa.RecordBatchReader.from_stream(table, schema=pa.schema([("nothing", pa.int64())]))


def test_pandas_gets_a_plain_index(table):
    frame = table.to_pandas("id >= 35", ["id", "v"])
    assert isinstance(frame, pd.DataFrame) and list(frame.columns) == ["id", "v"]
    assert list(frame.index) == [0, 1, 2, 3, 4] and list(frame["id"]) == [35, 36, 37, 38, 39]
    assert table.to_pandas(limit=3).shape == (3, 3)


def test_duckdb_reads_one_version_as_often_as_it_likes(table):
    relation = table.to_duckdb("id < 20", ["id"])
    table.append(pa.table({"id": [5], "v": ["x"], "p": [0]}))
    for _ in range(2):
        assert relation.aggregate("count(*), sum(id)").fetchall() == [(20, 190)]
    assert table.to_duckdb(connection=duckdb.connect()).aggregate("count(*)").fetchall() == [(41,)]


def test_polars_reads_lazily_only_the_columns_and_files_that_a_query_needs(table, monkeypatch):
    asked = []
    batches = scan.Scan.batches

    def noted(self, limit=None):
        asked.append((self.columns, len(self.add_files()), limit))
        return batches(self, limit)

    monkeypatch.setattr(scan.Scan, "batches", noted)
    lazy = table.to_polars()
    assert isinstance(lazy, pl.LazyFrame) and not asked
    actual = lazy.filter((pl.col("id") > 32) & pl.col("v").str.contains("v")).select("v").collect()
    assert actual["v"].to_list() == [f"v{i}" for i in range(3, 10)]
    assert lazy.filter(pl.col("p") == 1).select(pl.len()).collect().item() == 10
    assert lazy.head(3).filter(pl.col("id") > 0).collect()["id"].to_list() == [1, 2]
    assert lazy.filter(pl.col("id") > 5).head(3).collect()["id"].to_list() == [6, 7, 8]
    assert lazy.select(pl.len()).collect().item() == 40
    assert [count for _, count, _ in asked[:2]] == [1, 1]
    assert "p" not in asked[0][0]
    assert asked[2][2] == 3
    assert table.to_polars("id < 5", ["v"], limit=2).collect().shape == (2, 1)


def test_a_missing_library_is_named_with_its_remedy(table, monkeypatch):
    for package, method in (("pandas", table.to_pandas), ("polars", table.to_polars), ("duckdb", table.to_duckdb)):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(Unsupported, match=f"pip install {package}"):
            method()


# -- frames as input --------------------------------------------------------------------------------------------------------------


def test_an_index_without_a_name_is_no_column_and_one_with_a_name_is(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3]})[lambda rows: rows.a > 1]
    made = Table(tmp_path / "t")
    made.append(frame)
    made.append(pa.Table.from_pandas(frame))
    made.append(pa.RecordBatch.from_pandas(frame))
    made.append(pl.DataFrame({"a": [7]}))
    assert made.to_arrow().sort_by("a").to_pydict() == {"a": [2, 2, 2, 3, 3, 3, 7]}
    made.overwrite(frame.rename_axis("key"), overwrite_schema=True)
    assert made.to_arrow().to_pydict() == {"a": [2, 3], "key": [1, 2]}
    several = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)]))
    made.overwrite(several, overwrite_schema=True)
    assert made.to_arrow().to_pydict() == {"a": [1]}


def test_a_table_that_has_a_column_of_an_indexes_name_keeps_getting_it(tmp_path):
    schema = pa.schema([("a", pa.int64()), ("__index_level_0__", pa.int64())])
    made = Table.create(tmp_path / "t", schema)
    made.append(pd.DataFrame({"a": [1]}, index=[5]))
    assert made.to_arrow().to_pydict() == {"a": [1], "__index_level_0__": [5]}


def test_a_table_is_written_from_a_table(table, tmp_path):
    copy = Table(tmp_path / "copy")
    copy.append(table)
    assert copy.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))


def test_a_lazy_frame_is_refused_with_its_remedy(tmp_path):
    with pytest.raises(InvalidRequest, match="Collect a lazy frame first"):
        Table(tmp_path / "t").append(pl.LazyFrame({"a": [1]}))
