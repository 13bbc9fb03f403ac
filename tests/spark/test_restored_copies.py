"""A table's folder restored from a copy during a session: later reads show the copy, earlier frames raise an error."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tahoe import Table
from tahoe.base.exceptions import CorruptTable
from tahoe.tables import DeltaTable

pytestmark = pytest.mark.damages_tables

READS: dict[str, Callable[[SparkSession, str], DataFrame]] = {
    "load": lambda spark, path: spark.read.format("delta").load(path),
    "SQL by path": lambda spark, path: spark.sql(f"SELECT * FROM delta.`{path}`"),
    "SQL by name": lambda spark, _: spark.sql("SELECT * FROM restored"),
    "table": lambda spark, _: spark.read.table("restored"),
    "forPath": lambda spark, path: DeltaTable.forPath(spark, path).toDF(),
    "forName": lambda spark, _: DeltaTable.forName(spark, "restored").toDF(),
    "changes": lambda spark, path: (
        spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(path)
    ),
}


@pytest.fixture
def restored(spark: SparkSession, tmp_path: Path) -> tuple[str, DeltaTable, DataFrame]:
    """A folder as it was two appends before, a handle of the newest version, and a DataFrame of it."""
    path = str(tmp_path / "table")
    spark.sql(
        f"CREATE OR REPLACE TABLE restored (id BIGINT) USING delta LOCATION '{path}' TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    append(spark, path, 1)
    shutil.copytree(path, tmp_path / "copy")
    append(spark, path, 2)
    append(spark, path, 3)
    handle, frame = DeltaTable.forPath(spark, path), spark.read.format("delta").load(path)
    assert frame.count() == handle.toDF().count() == 3
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    return path, handle, frame


def append(spark: SparkSession, path: str, value: int) -> None:
    spark.range(value, value + 1).write.format("delta").mode("append").save(path)


@pytest.mark.parametrize("read", READS)
def test_a_new_read_shows_the_present_table(
    spark: SparkSession, restored: tuple[str, DeltaTable, DataFrame], read: str, caplog: pytest.LogCaptureFixture
) -> None:
    path, handle, frame = restored
    with caplog.at_level(logging.WARNING, "tahoe"):
        assert READS[read](spark, path).select("id").collect() == [(1,)]
        assert READS[read](spark, path).select("id").collect() == [(1,)]
    assert caplog.text.count("the log has lost versions") == 1
    for old in (frame.count, handle.toDF, lambda: handle.delete("id = 1")):
        with pytest.raises(CorruptTable, match="the log has lost versions"):
            old()
    spark.sql("DROP TABLE restored")


@pytest.mark.parametrize("write", ["append", "SQL", "DELETE", "MERGE"])
def test_a_new_write_commits_to_the_present_table(
    spark: SparkSession, restored: tuple[str, DeltaTable, DataFrame], write: str
) -> None:
    path, handle, frame = restored
    match write:
        case "append":
            append(spark, path, 7)
        case "SQL":
            spark.sql("INSERT INTO restored VALUES (7)")
        case "DELETE":
            spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
        case "MERGE":
            source = spark.range(7, 8).alias("s")
            DeltaTable.forPath(spark, path).alias("t").merge(source, "t.id = s.id").whenNotMatchedInsertAll().execute()
    expected = [] if write == "DELETE" else [1, 7]
    assert sorted(Table(path).to_arrow()["id"].to_pylist()) == expected
    assert Table(path).version() == 2
    assert sorted(row.id for row in spark.table("restored").collect()) == expected
    for old in (frame.count, handle.toDF):
        with pytest.raises(CorruptTable, match="the log has lost versions"):
            old()
    assert Table(path).check() == []
    spark.sql("DROP TABLE restored")
