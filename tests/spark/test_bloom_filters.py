"""Bloom filters of the columns that a table names, in the files that Spark writes and reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tahoe


def filters(path: str) -> list[int]:
    """How many columns of each live file have a filter."""
    groups = [pq.read_metadata(Path(path, name)).row_group(0) for name in tahoe.Table(path).files()["path"].to_pylist()]
    return [sum(group.column(i).bloom_filter_offset is not None for i in range(group.num_columns)) for group in groups]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_files_of_spark_and_of_the_core_have_them_and_look_ups_find_their_rows(spark, path, mode):
    spark.sql(
        f"CREATE TABLE delta.`{path}` (key BIGINT, s STRUCT<t: STRING>) USING delta "
        f"TBLPROPERTIES ('tahoe.bloomFilterColumns' = 'key, s.t', 'delta.columnMapping.mode' = '{mode}')"
    )
    rows = spark.range(0, 2000, 1, 2).selectExpr("xxhash64(id) key", "struct(hex(xxhash64(id)) as t) s")
    rows.write.format("delta").mode("append").save(path)
    tahoe.Table(path).append(spark.range(2000, 3000).selectExpr("xxhash64(id) key", "struct(hex(xxhash64(id)) as t) s").toArrow())
    assert filters(path) == [2, 2, 2]
    frame = spark.read.format("delta").load(path)
    for number in (0, 1500, 2999):
        key = spark.range(number, number + 1).selectExpr("xxhash64(id) key").first().key
        assert frame.where(f"key = {key}").count() == frame.where(f"s.t = hex({key})").count() == 1
        assert frame.where(f"key = {key + 1}").count() == 0
    tahoe.Table(path).optimize()
    assert filters(path) == [2]


def test_a_writers_own_settings_win(spark, path):
    spark.range(10).write.format("delta").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('tahoe.bloomFilterColumns' = 'id')")
    spark.range(10).write.format("delta").mode("overwrite").option("parquet.bloom.filter.enabled#id", "false").save(path)
    assert set(filters(path)) == {0}
    spark.range(10).write.format("delta").mode("overwrite").save(path)
    assert set(filters(path)) == {1}
