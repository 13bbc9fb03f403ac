"""VACUUM and RESTORE by `DeltaTable` and by SQL: the reference's names, answers and errors."""

from __future__ import annotations

import os
from datetime import UTC
from pathlib import Path

import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.tables import DeltaTable

CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


@pytest.fixture
def table(spark, path) -> tahoe.Table:
    """At version 2: a file overwritten by another, and that by a third."""
    for number in range(3):
        spark.range(number * 10, number * 10 + 10, 1, 1).write.format("delta").mode("overwrite").save(path)
    return tahoe.Table(path)


@pytest.fixture
def unchecked(spark):
    """No check of the retention."""
    spark.conf.set(CHECK, "false")
    yield
    spark.conf.unset(CHECK)


def data_files(path: str) -> set[str]:
    return {actual.name for actual in Path(path).glob("*") if actual.is_file() and not actual.name.startswith(".")}


def test_vacuum_by_delta_table(spark, table, path, unchecked):
    assert DeltaTable.forPath(spark, path).vacuum().columns == []
    assert len(data_files(path)) == 3
    DeltaTable.forPath(spark, path).vacuum(0)
    assert data_files(path) == set(table.files()["path"].to_pylist())
    assert spark.read.format("delta").load(path).count() == 10
    start = DeltaTable.forPath(spark, path).history(2).collect()[1]
    assert start.operationParameters["specifiedRetentionMillis"] == "0"


def test_vacuum_by_path_and_by_name(spark, table, path, unchecked):
    planned = spark.sql(f"VACUUM '{path}' RETAIN 0 HOURS DRY RUN")
    assert planned.columns == ["path"]
    gone = data_files(path) - set(table.files()["path"].to_pylist())
    assert {row.path for row in planned.collect()} == {f"file:{path}/{name}" for name in gone}
    assert len(data_files(path)) == 3
    spark.sql(f"CREATE TABLE cleaned USING delta LOCATION '{path}'")
    try:
        assert [row.path for row in spark.sql("VACUUM cleaned LITE RETAIN 0 HOURS").collect()] == [f"file:{path}"]
        assert len(data_files(path)) == 1
        assert spark.sql(f"VACUUM delta.`{path}` DRY RUN").collect() == []
    finally:
        spark.sql("DROP TABLE cleaned")


def test_the_retention_is_checked(spark, table, path):
    with pytest.raises(InvalidRequest, match="at least 168 hours") as caught:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 1 HOURS")
    assert caught.value.getErrorClass() == "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"
    with pytest.raises(SqlSyntaxError):
        spark.sql(f"VACUUM delta.`{path}` DRY RUN DRY RUN")
    with pytest.raises(NotFound, match="nothing_of_this_name"):
        spark.sql("VACUUM nothing_of_this_name")


def test_settings_of_the_session(spark, table, path, unchecked):
    names = {"vacuum.logging.enabled": "false", "vacuum.retentionWindowIgnore.enabled": "true", "vacuum.lite.enabled": "true"}
    for name, value in names.items():
        spark.conf.set(f"spark.databricks.delta.{name}", value)
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0.0001 HOURS")  # the table's own counts
        assert len(data_files(path)) == 3
        (Path(path) / "orphan").write_bytes(b"?")
        os.utime(Path(path) / "orphan", (0, 0))
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
        assert len(data_files(path)) == 2
        spark.sql(f"VACUUM delta.`{path}` FULL")
        assert len(data_files(path)) == 1
    finally:
        for name in names:
            spark.conf.unset(f"spark.databricks.delta.{name}")
    assert table.version() == 2


def test_an_inventory_by_query_and_by_table(spark, table, path, unchecked):
    rows = [(f"file:{path}/{name}", 1, False, 0) for name in sorted(data_files(path))] + [(f"file:{path}/x", 0, True, 0)]
    spark.createDataFrame(rows, "path string, length bigint, isDir boolean, modificationTime bigint").createOrReplaceTempView(
        "listed"
    )
    assert len(spark.sql(f"VACUUM delta.`{path}` USING INVENTORY listed RETAIN 0 HOURS DRY RUN").collect()) == 2
    spark.sql(f"VACUUM delta.`{path}` USING INVENTORY (SELECT * FROM listed WHERE length > 0) RETAIN 0 HOURS")
    assert len(data_files(path)) == 1
    with pytest.raises(InvalidRequest) as caught:
        spark.sql(f"VACUUM delta.`{path}` USING INVENTORY (SELECT path, length FROM listed)")
    assert caught.value.getErrorClass() == "DELTA_INVALID_INVENTORY_SCHEMA"


def test_restore_by_delta_table_and_by_sql(spark, table, path):
    def ids():
        return sorted(row.id for row in spark.read.format("delta").load(path).collect())

    answer = DeltaTable.forPath(spark, path).restoreToVersion(0)
    assert answer.columns == [
        "table_size_after_restore",
        "num_of_files_after_restore",
        "num_removed_files",
        "num_restored_files",
        "removed_files_size",
        "restored_files_size",
    ]
    assert answer.first()[1:4] == (1, 1, 1)
    assert ids() == list(range(10))
    row = spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1").first()
    assert row.num_restored_files == 1
    assert ids() == list(range(10, 20))
    last = DeltaTable.forPath(spark, path).history(1).first()
    assert (last.operation, last.operationParameters) == ("RESTORE", {"version": "1", "timestamp": None})
    assert table.check(deep=True) == []


def test_restore_to_a_time_in_the_zone_of_the_session(spark, table, path):
    at = DeltaTable.forPath(spark, path).history().collect()[1].timestamp  # as PySpark gives it: in the zone of this process
    moment = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    spark.sql(f"RESTORE '{path}' TO TIMESTAMP AS OF '{moment}'")
    assert sorted(row.id for row in spark.read.format("delta").load(path).collect()) == list(range(10, 20))
    assert DeltaTable.forPath(spark, path).history(1).first().operationParameters["timestamp"] == moment
    with pytest.raises(InvalidRequest, match="cannot be converted to a valid timestamp"):
        DeltaTable.forPath(spark, path).restoreToTimestamp("05/04/1999")
    with pytest.raises(NotFound) as caught:
        DeltaTable.forPath(spark, path).restoreToTimestamp("1999-01-01")
    assert caught.value.getErrorClass() == "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"


@pytest.mark.damages_tables
def test_files_that_are_gone_are_reported(spark, table, path):
    (gone,) = table.files(version=0)["path"].to_pylist()
    (Path(path) / gone).unlink()
    with pytest.raises(NotFound, match=gone):
        DeltaTable.forPath(spark, path).restoreToVersion(0)
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        DeltaTable.forPath(spark, path).restoreToVersion(0)
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")
    assert table.version() == 3
