"""CONVERT TO DELTA and CLONE of an Iceberg table, by SQL and by `DeltaTable`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import tahoe
from tahoe.exceptions import InvalidRequest
from tahoe.tables import DeltaTable

EXPECTED = [(1, "a", None), (2, "b", None), (3, None, None), (4, "d", 40)]


@pytest.fixture
def iceberg(tmp_path: Path):
    """The folder of a table whose column was renamed, and one added, between two files; partitioned by `p`."""
    catalog = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None], "p": ["x y", "x y", "z"]})
    table = catalog.create_table("db.t", rows.schema)
    with table.update_spec() as change:
        change.add_identity("p")
    table.append(rows)
    with table.update_schema() as change:
        change.rename_column("name", "label")
        change.add_column("more", table.schema().find_type("id"))
    table.append(pa.table({"id": pa.array([4], pa.int64()), "label": ["d"], "p": ["z"], "more": pa.array([40], pa.int64())}))
    catalog.engine.dispose()
    return table.location().removeprefix("file://")


def rows(spark, path):
    return sorted((row.id, row.label, row.more) for row in spark.read.format("delta").load(str(path)).collect())


def test_convert_by_sql(spark, iceberg):
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CONVERT TO DELTA iceberg.`{iceberg}` PARTITIONED BY (p STRING)")
    assert caught.value.getErrorClass() == "DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES"
    assert spark.sql(f"CONVERT TO DELTA iceberg.`{iceberg}` NO STATISTICS").collect() == []
    assert rows(spark, iceberg) == EXPECTED
    lines = (Path(iceberg) / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    info = next(action["commitInfo"] for line in lines if "commitInfo" in (action := json.loads(line)))
    expected = {"numFiles": 3, "partitionedBy": "[]", "collectStats": False, "sourceFormat": "iceberg"}
    assert info["operationParameters"] == expected
    assert spark.sql(f"SELECT label FROM delta.`{iceberg}` WHERE p = 'x y' AND label > 'a'").first()[0] == "b"
    spark.sql(f"DELETE FROM delta.`{iceberg}` WHERE label = 'a'")
    spark.sql(f"INSERT INTO delta.`{iceberg}` (id, label, p, more) VALUES (5, 'e', 'x y', 50)")
    assert rows(spark, iceberg) == [*EXPECTED[1:], (5, "e", 50)]
    assert tahoe.Table(iceberg).check(deep=True) == []


def test_convert_by_delta_table(spark, iceberg):
    table = DeltaTable.convertToDelta(spark, f"iceberg.`{iceberg}`")
    assert table.toDF().count() == 4
    assert tahoe.Table(iceberg).snapshot().partition_columns == ("p",)


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_clone(spark, iceberg, tmp_path, kind):
    clone = tmp_path / "clone"
    (row,) = spark.sql(f"CREATE TABLE delta.`{clone}` {kind} CLONE iceberg.`{iceberg}`").collect()
    assert row.source_num_of_files == 3 and row.num_copied_files == (0 if kind == "SHALLOW" else 3)
    assert rows(spark, clone) == EXPECTED and not tahoe.Table(iceberg).exists()
    told = tahoe.Table(clone).history()[0]["operationParameters"]
    assert told == {"source": f"iceberg.`{iceberg}`", "sourceVersion": "-1"}
    spark.sql(f"UPDATE delta.`{clone}` SET more = 1 WHERE id < 3")
    assert rows(spark, clone) == [(1, "a", 1), (2, "b", 1), *EXPECTED[2:]]
    assert tahoe.Table(clone).check(deep=True) == []
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CREATE TABLE delta.`{tmp_path}/other` {kind} CLONE iceberg.`{iceberg}` VERSION AS OF 1")
    assert caught.value.getErrorClass() == "DELTA_CLONE_UNSUPPORTED_SOURCE"
