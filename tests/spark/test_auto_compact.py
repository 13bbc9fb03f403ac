"""Auto compaction after writes of Spark: the session's settings, and executors with the same result as the core."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.layout.auto_compact import AutoCompaction
from tahoe.spark.commands.upkeep import compaction_of

PREFIX = "spark.databricks.delta.autoCompact."


@pytest.fixture
def few(spark) -> Iterator[None]:
    """Five small files are enough."""
    spark.conf.set(PREFIX + "minNumFiles", "5")
    yield
    for name in ("minNumFiles", "enabled"):
        spark.conf.unset(PREFIX + name)


def operations(path: str) -> list[str]:
    return [commit["operation"] for commit in tahoe.Table(path).history()][::-1]


def test_a_write_is_followed_by_compaction_where_the_session_sets_it(spark, path, few):
    rows = spark.range(0, 100, 1, 5).selectExpr("id", "id % 2 p")
    rows.write.format("delta").partitionBy("p").save(path)
    assert operations(path) == ["WRITE"]
    spark.conf.set(PREFIX + "enabled", "true")
    spark.range(100, 101).selectExpr("id", "id % 2 p").write.format("delta").mode("append").save(path)
    assert operations(path)[1:] == ["WRITE", "OPTIMIZE"]
    files = tahoe.Table(path).files()
    assert sorted(values["p"] for values in map(dict, files["partitionValues"].to_pylist())) == ["0", *["1"] * 5]
    last = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").first()
    assert last.operationParameters == {"predicate": '["`p` <=> 0"]', "zOrderBy": "[]", "clusterBy": "[]", "auto": "true"}
    assert spark.read.format("delta").load(path).count() == 101
    assert tahoe.Table(path).check(deep=True) == []


def test_a_table_says_so_in_sql_and_is_compacted_after_update_and_merge(spark, path, few):
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'auto')")
    for statement in (
        f"INSERT INTO delta.`{path}` SELECT /*+ REPARTITION(5) */ id FROM range(50)",
        *[f"UPDATE delta.`{path}` SET id = id + 1000 WHERE id = {number}" for number in range(5)],
        f"MERGE INTO delta.`{path}` t USING (SELECT 3000 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    ):
        spark.sql(statement)
    assert operations(path)[:3] == ["CREATE TABLE", "WRITE", "OPTIMIZE"]
    assert spark.read.format("delta").load(path).count() == 51
    spark.conf.set(PREFIX + "enabled", "false")
    before = len(operations(path))
    spark.range(9000, 9050, 1, 5).write.format("delta").mode("append").save(path)
    assert len(operations(path)) == before + 1


def test_a_setting_that_is_no_value_fails_no_write_and_is_reported(spark, path, few, caplog):
    spark.conf.set(PREFIX + "enabled", "sometimes")
    spark.range(5).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 5
    assert "autoCompact.enabled = 'sometimes' is no value" in caplog.text


def test_settings_are_read_as_the_reference_reads_them():
    values = {"enabled": "TRUE", "maxFileSize": "1000", "minFileSize": "10", "minNumFiles": "3", "nonBlindAppend.enabled": "true"}
    values |= {"modifiedPartitionsOnly.enabled": "false", "maxNumModifiedPartitions": "7", "reservePartitions.enabled": "false"}
    assert compaction_of(values.get) == (AutoCompaction(True, 1000, 10, 3, False, 7, True), False)
    assert compaction_of({}.get) == (AutoCompaction(), True)
    assert compaction_of({"earlySkipPartitionTable.enabled": "false"}.get)[0].min_files == 0
    for name, code in (("enabled", "DELTA_INVALID_AUTO_COMPACT_TYPE"), ("minNumFiles", "DELTA_ILLEGAL_OPTION")):
        with pytest.raises(InvalidRequest) as refused:
            compaction_of({name: "many"}.get)
        assert refused.value.code == code
