"""CONVERT TO DELTA by `DeltaTable` and by SQL: of a folder, and of a Parquet table of the catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest, NotFound, TahoeError
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.tables import DeltaTable


def parquet(spark, path, partitions=()):
    rows = spark.range(0, 12, 1, 3).selectExpr("id", "cast(id % 2 as int) as p", "timestamp_micros(id) as t", "'x' as name")
    rows.write.partitionBy(*partitions).parquet(path)


def reported(path) -> dict:
    lines = (Path(path) / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    return next(action["commitInfo"] for line in lines if "commitInfo" in (action := json.loads(line)))


def test_a_folder_by_sql(spark, path):
    parquet(spark, path)
    answer = spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert answer.columns == [] and answer.collect() == []
    assert spark.read.format("delta").load(path).where("id > 5").count() == 6
    info = reported(path)
    assert info["operation"] == "CONVERT" and info["isBlindAppend"] is False
    files = len(tahoe.Table(path).files())
    expected = {"numFiles": files, "partitionedBy": "[]", "collectStats": True, "sourceFormat": "parquet"}
    assert info["operationParameters"] == expected
    assert info["operationMetrics"] == {"numConvertedFiles": str(files)}
    assert tahoe.Table(path).check(deep=True) == []
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert tahoe.Table(path).version() == 0
    spark.sql(f"INSERT INTO delta.`{path}` SELECT * FROM delta.`{path}` WHERE id = 1")
    assert spark.read.format("delta").load(path).count() == 13


def test_a_folder_of_partitions(spark, path):
    parquet(spark, path, ["p"])
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert caught.value.getErrorClass() == "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME"
    assert not tahoe.Table(path).exists()
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p INT COMMENT 'odd') NO STATISTICS")
    table = tahoe.Table(path)
    assert table.snapshot().partition_columns == ("p",)
    assert table.files()["stats"].null_count == len(table.files())
    assert reported(path)["operationParameters"]["partitionedBy"] == '["p"]'
    assert reported(path)["operationParameters"]["collectStats"] is False
    assert {tuple(row) for row in spark.sql(f"SELECT p, count(*) FROM delta.`{path}` GROUP BY p").collect()} == {(0, 6), (1, 6)}


def test_by_delta_table(spark, path):
    parquet(spark, path, ["p", "name"])
    table = DeltaTable.convertToDelta(spark, f"parquet.`{path}`", "p int, name string")
    assert sorted(row.id for row in table.toDF().where("p = 1 and name = 'x'").collect()) == [1, 3, 5, 7, 9, 11]
    assert DeltaTable.isDeltaTable(spark, path)


def test_a_timestamp_of_a_folder_is_one_of_the_sessions_zone(spark, path):
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        spark.sql("SELECT 1 AS id, timestamp'2026-03-01 09:30:00' AS t").write.partitionBy("t").parquet(path)
        expected = spark.read.schema("id INT, t TIMESTAMP").parquet(path).collect()
        spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (t TIMESTAMP)")
        assert spark.read.format("delta").load(path).collect() == expected
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        assert spark.read.format("delta").load(path).where("t = timestamp'2026-02-28 19:30:00'").count() == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_a_table_of_the_catalog(spark, path, partitions):
    frame = spark.range(6).selectExpr("id", "cast(id % 2 as int) as p")
    frame.write.partitionBy(*partitions).option("path", path).format("parquet").saveAsTable("to_convert")
    try:
        spark.sql("ALTER TABLE to_convert SET TBLPROPERTIES ('team' = 'me')")
        spark.sql("CONVERT TO DELTA to_convert")
        assert spark.table("to_convert").count() == 6
        info = reported(path)["operationParameters"]
        assert info["catalogTable"] == "`spark_catalog`.`default`.`to_convert`" and info["partitionedBy"] == "[]"
        assert tahoe.Table(path).snapshot().metadata.configuration == {"team": "me"}
        assert tahoe.Table(path).snapshot().partition_columns == tuple(partitions)
        spark.sql("INSERT INTO to_convert VALUES (100, 1)")
        spark.sql("CONVERT TO DELTA to_convert")
        assert DeltaTable.forName(spark, "to_convert").toDF().count() == 7
    finally:
        spark.sql("DROP TABLE to_convert")


def test_partitions_that_the_catalog_does_not_know_are_left_out(spark, path):
    frame = spark.range(6).selectExpr("id", "cast(id % 3 as int) as p")
    frame.write.partitionBy("p").option("path", path).format("parquet").saveAsTable("to_convert")
    try:
        spark.sql("ALTER TABLE to_convert DROP PARTITION (p = 2)")
        spark.sql("CONVERT TO DELTA to_convert")
        assert sorted({row.p for row in spark.table("to_convert").collect()}) == [0, 1]
    finally:
        spark.sql("DROP TABLE to_convert")


def test_a_folder_that_is_converted_gets_its_entry_later(spark, path):
    spark.range(3).write.option("path", path).format("parquet").saveAsTable("to_convert")
    try:
        spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
        spark.sql("CONVERT TO DELTA to_convert")
        assert tahoe.Table(path).version() == 0
        assert spark.sql("DESCRIBE DETAIL to_convert").collect()[0].format == "delta"
    finally:
        spark.sql("DROP TABLE to_convert")


def test_folders_that_cannot_be_converted_are_reported(spark, path):
    for name, kind, code in [
        (f"json.`{path}`", InvalidRequest, "DELTA_CONVERT_NON_PARQUET_TABLE"),
        (f"`{path}`", InvalidRequest, "DELTA_MISSING_PROVIDER_FOR_CONVERT"),
        (f"parquet.`{path}`", NotFound, "DELTA_EMPTY_DIRECTORY"),
        ("nothing_of_this_name", NotFound, "TABLE_OR_VIEW_NOT_FOUND"),
    ]:
        with pytest.raises(kind) as caught:
            spark.sql(f"CONVERT TO DELTA {name}").collect()
        assert caught.value.getErrorClass() == code
    with pytest.raises(SqlSyntaxError):
        spark.sql(f"CONVERT TO DELTA parquet.`{path}` PARTITIONED BY (p int) PARTITIONED BY (p int)")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW a_view AS SELECT 1 AS id")
    with pytest.raises(Exception, match="a_view"):
        spark.sql("CONVERT TO DELTA a_view")
    spark.range(3).write.format("json").saveAsTable("of_json")
    try:
        with pytest.raises(InvalidRequest, match="json"):
            spark.sql("CONVERT TO DELTA of_json")
    finally:
        spark.sql("DROP TABLE of_json")


def test_an_entry_of_other_partitions_is_refused(spark, path):
    spark.range(3).write.option("path", path).format("parquet").saveAsTable("to_convert")
    try:
        with pytest.raises(InvalidRequest) as caught:
            spark.sql("CONVERT TO DELTA to_convert PARTITIONED BY (p INT)")
        assert caught.value.getErrorClass() == "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER"
    finally:
        spark.sql("DROP TABLE to_convert")


def test_a_folder_that_a_stream_wrote_has_the_files_of_its_log(spark, path, tmp_path):
    source, checkpoint = tmp_path / "source", str(tmp_path / "checkpoint")
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")
    try:
        for number in range(5):
            spark.range(number, number + 1).write.mode("append").parquet(str(source))
            stream = spark.readStream.schema("id bigint").parquet(str(source)).writeStream.format("parquet")
            stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(path).awaitTermination()
    finally:
        spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")
    assert (Path(path) / "_spark_metadata/2.compact").exists()
    spark.range(100, 101).coalesce(1).write.parquet(str(tmp_path / "failed"))
    stray = next((tmp_path / "failed").glob("*.parquet"))
    (Path(path) / "part-of-a-batch-that-failed.parquet").write_bytes(stray.read_bytes())
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == list(range(5))


def test_settings_decide_between_the_catalog_and_the_folder(spark, path, tmp_path):
    convert = "spark.databricks.delta.convert."
    frame = spark.range(4).selectExpr("id", "if(id = 3, 'x', cast(id % 2 as string)) as p")
    frame.write.partitionBy("p").option("path", path).format("parquet").saveAsTable("to_convert")
    off = [convert + name for name in ("useCatalogPartitions", "useCatalogSchema", "useMetadataLog", "metadataCheck.enabled")]
    try:
        spark.sql("ALTER TABLE to_convert DROP PARTITION (p = '1')")
        for name in off:
            spark.conf.set(name, "false")
        (tmp_path / "table" / "_spark_metadata").mkdir()
        (tmp_path / "table" / "_spark_metadata" / "0").write_text("v1")
        spark.sql("CONVERT TO DELTA to_convert")
        assert sorted({row.p for row in spark.table("to_convert").collect()}) == ["0", "1", "x"]
    finally:
        spark.sql("DROP TABLE to_convert")
        for name in off:
            spark.conf.unset(name)
    other = str(tmp_path / "other")
    frame.write.partitionBy("p").parquet(other)
    with pytest.raises(TahoeError, match="x"):
        spark.sql(f"CONVERT TO DELTA parquet.`{other}` PARTITIONED BY (p INT)")
    spark.conf.set(convert + "partitionValues.ignoreCastFailure", "true")
    try:
        spark.sql(f"CONVERT TO DELTA parquet.`{other}` PARTITIONED BY (p INT)")
    finally:
        spark.conf.unset(convert + "partitionValues.ignoreCastFailure")
    assert spark.read.format("delta").load(other).where("p IS NULL").count() == 1
