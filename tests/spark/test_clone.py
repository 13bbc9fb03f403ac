"""CLONE by `DeltaTable` and by SQL: shallow and deep, by path and by name; a shallow clone is read and changed as any table."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException

import tahoe
from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.spark.copies import clone as clone_module
from tahoe.tables import DeltaTable

COLUMNS = [
    "source_table_size",
    "source_num_of_files",
    "num_removed_files",
    "num_copied_files",
    "removed_files_size",
    "copied_files_size",
]


@pytest.fixture
def source(spark, path):
    """At version 2, partitioned, with a deletion vector and row ids."""
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true')"
    )
    spark.sql(f"INSERT INTO delta.`{path}` SELECT id, if(id % 2 = 0, 'a b', 'c') FROM range(0, 20, 1, 1)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id IN (3, 4)")
    return path


def ids(spark, path):
    return sorted(row.id for row in spark.read.format("delta").load(path).collect())


LEFT = [item for item in range(20) if item not in (3, 4)]


@pytest.mark.parametrize("kind", ["SHALLOW", "DEEP"])
def test_a_clone_lives_a_life_of_its_own(spark, source, tmp_path, kind):
    clone = str(tmp_path / "a clone")
    answer = spark.sql(f"CREATE TABLE delta.`{clone}` {kind} CLONE delta.`{source}`")
    assert answer.columns == COLUMNS
    (row,) = answer.collect()
    assert row.source_num_of_files == 2 and row.num_copied_files == (0 if kind == "SHALLOW" else 2)
    assert ids(spark, clone) == LEFT
    assert spark.sql(f"SELECT count(*) FROM delta.`{clone}` WHERE p = 'c' AND id > 10").first()[0] == 5
    with_ids = [tahoe.Table(place).to_arrow(row_ids=True).sort_by("id") for place in (clone, source)]
    assert with_ids[0] == with_ids[1]
    spark.sql(f"DELETE FROM delta.`{clone}` WHERE id = 5")
    spark.sql(f"UPDATE delta.`{clone}` SET id = 100 WHERE id = 6")
    spark.sql(
        f"MERGE INTO delta.`{clone}` t USING (SELECT 7L AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, 'x')"
    )
    spark.sql(f"INSERT INTO delta.`{clone}` VALUES (200, 'new')")
    changed = sorted([*(item for item in LEFT if item not in (5, 6, 7)), 100, 200])
    assert ids(spark, clone) == changed and ids(spark, source) == LEFT
    assert tahoe.Table(clone).check(deep=True) == []
    spark.sql(f"OPTIMIZE delta.`{clone}`")
    assert ids(spark, clone) == changed
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"VACUUM delta.`{clone}` RETAIN 0 HOURS")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert ids(spark, clone) == changed and ids(spark, source) == LEFT
    commit = tahoe.Table(clone).history()[-1]
    expected = {"source": f"delta.`file:{source}`", "sourceVersion": "2"}
    assert (commit["operation"], commit["operationParameters"]) == ("CLONE", expected)


def test_by_name_at_a_version_with_properties_and_a_location(spark, source, tmp_path):
    place = str(tmp_path / "placed")
    spark.sql(f"CREATE TABLE of_source USING delta LOCATION '{source}'")
    try:
        spark.sql(
            f"CREATE TABLE cloned SHALLOW CLONE of_source VERSION AS OF 1 TBLPROPERTIES ('team' = 'me', delta.appendOnly = 'true') "
            f"LOCATION '{place}'"
        )
        assert spark.table("cloned").count() == 20
        configuration = tahoe.Table(place).snapshot().metadata.configuration
        assert configuration["team"] == "me" and configuration["delta.appendOnly"] == "true"
        assert spark.sql("DESCRIBE EXTENDED cloned").where("col_name = 'Type'").first().data_type == "EXTERNAL"
        assert tahoe.Table(place).history()[0]["operationParameters"]["source"] == "spark_catalog.default.of_source"
        with pytest.raises(AnalysisException, match="cloned"):
            spark.sql("CREATE TABLE cloned SHALLOW CLONE of_source")
        assert spark.sql("CREATE TABLE IF NOT EXISTS cloned SHALLOW CLONE of_source").collect() == []
        with pytest.raises(InvalidRequest) as caught:
            spark.sql("CREATE OR REPLACE TABLE cloned SHALLOW CLONE of_source")
        assert caught.value.getErrorClass() == "DELTA_UNSUPPORTED_NON_EMPTY_CLONE"
        spark.sql("CREATE TABLE managed DEEP CLONE of_source")
        assert spark.table("managed").count() == 18
        spark.sql("INSERT INTO of_source VALUES (50, 'c')")
        (row,) = spark.sql("REPLACE TABLE managed CLONE of_source").collect()
        assert (row.num_copied_files, row.num_removed_files) == (1, 0) and spark.table("managed").count() == 19
    finally:
        for name in ("of_source", "cloned", "managed"):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_by_delta_table(spark, source, tmp_path):
    table, first, second = DeltaTable.forPath(spark, source), str(tmp_path / "1"), str(tmp_path / "2")
    made = table.clone(first, True, False, {"foo": "bar"})
    assert made.toDF().count() == 18 and made.detail().first().properties["foo"] == "bar"
    assert table.cloneAtVersion(1, second, True).toDF().count() == 20
    moment = table.history().where("version = 1").first().timestamp
    assert table.cloneAtTimestamp(str(moment), str(tmp_path / "3")).toDF().count() == 20
    assert table.clone(str(tmp_path / "3"), replace=True).toDF().count() == 18
    with pytest.raises(InvalidRequest):
        table.clone(first, True)


@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_of_parquet(spark, path, tmp_path, partitions):
    clone = str(tmp_path / "clone")
    frame = spark.range(6).selectExpr("id", "cast(id % 2 as int) AS p")
    frame.write.partitionBy(*partitions).option("path", path).format("parquet").saveAsTable("of_parquet")
    try:
        spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE of_parquet")
        assert ids(spark, clone) == list(range(6))
        spark.sql(f"DELETE FROM delta.`{clone}` WHERE id = 1")
        assert ids(spark, clone) == [0, 2, 3, 4, 5] and spark.table("of_parquet").count() == 6
        assert tahoe.Table(clone).snapshot().partition_columns == tuple(partitions)
        if not partitions:
            spark.sql(f"CREATE TABLE delta.`{clone}2` CLONE parquet.`{path}`")
            assert ids(spark, clone + "2") == list(range(6))
            commit = tahoe.Table(clone + "2").history()[0]["operationParameters"]
            assert commit == {"source": f"parquet.`{path}`", "sourceVersion": "-1"}
    finally:
        spark.sql("DROP TABLE of_parquet")


@pytest.mark.damages_tables
def test_files_are_copied_by_executors(spark, source, tmp_path, monkeypatch):
    monkeypatch.setattr(clone_module, "_FEW", 0)
    clone = str(tmp_path / "clone")
    spark.sql(f"CREATE TABLE delta.`{clone}` CLONE delta.`{source}`")
    assert ids(spark, clone) == LEFT and tahoe.Table(clone).check(deep=True) == []
    next(Path(source).glob("p=c/*.parquet")).unlink()
    with pytest.raises(Exception, match="p=c"):
        spark.sql(f"CREATE TABLE delta.`{clone}2` CLONE delta.`{source}`")
    assert not tahoe.Table(clone + "2").exists()


def test_sources_that_cannot_be_cloned_are_reported(spark, source, tmp_path):
    for name, code in [
        (f"json.`{source}`", "DELTA_CLONE_UNSUPPORTED_SOURCE"),
        (f"parquet.`{source}` VERSION AS OF 1", "TABLE_OR_VIEW_NOT_FOUND"),
        (f"delta.`{source}` LOCATION '{tmp_path}/x'", "DELTA_CLONE_AMBIGUOUS_TARGET"),
        (f"delta.`{source}` TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            spark.sql(f"CREATE TABLE delta.`{tmp_path}/clone` SHALLOW CLONE {name}")
        assert caught.value.getErrorClass() == code
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CREATE OR REPLACE TABLE delta.`{source}` CLONE delta.`{source}`")
    assert caught.value.getErrorClass() == "DELTA_UNSUPPORTED_CLONE_REPLACE_SAME_TABLE"


def test_a_clone_that_its_source_does_not_know_is_not_read(spark, source, tmp_path):
    clone = str(tmp_path / "clone")
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    moved = str(tmp_path / "moved")
    Path(clone).rename(moved)
    with pytest.raises(CorruptTable, match="allow_shallow_clone"):
        spark.read.format("delta").load(moved).collect()
    tahoe.Table(source).allow_shallow_clone(moved)
    assert ids(spark, moved) == LEFT
