"""Optimized writes: few files a partition, the same rows, and nothing else of a write changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException

import tahoe
from tahoe.base.exceptions import InvalidRequest

PREFIX = "spark.databricks.delta.optimizeWrite."


@pytest.fixture(autouse=True)
def unset(spark) -> Iterator[None]:
    yield
    for name in ("enabled", "binSize", "maxShufflePartitions"):
        spark.conf.unset(PREFIX + name)


def files_by_partition(path: str) -> Counter[str | None]:
    return Counter(dict(values).get("p") for values in tahoe.Table(path).files()["partitionValues"].to_pylist())


def rows_of(spark, tasks: int = 6, count: int = 600):
    return spark.range(0, count, 1, tasks).selectExpr("id", "cast(id % 3 as string) p", "concat('t', id) t")


def test_each_partition_gets_one_file_whoever_asks(spark, path):
    for asked in ({}, {"optimizeWrite": "true"}):
        rows_of(spark).write.format("delta").mode("overwrite").partitionBy("p").options(**asked).save(path)
        assert files_by_partition(path) == dict.fromkeys("012", 1 if asked else 6)
    spark.conf.set(PREFIX + "enabled", "true")
    rows_of(spark).write.format("delta").mode("append").save(path)
    assert files_by_partition(path) == dict.fromkeys("012", 2)
    rows_of(spark).write.format("delta").mode("append").option("optimizeWrite", "false").save(path)
    assert files_by_partition(path) == dict.fromkeys("012", 8)
    spark.conf.unset(PREFIX + "enabled")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')")
    spark.sql(f"INSERT OVERWRITE delta.`{path}` SELECT /*+ REPARTITION(5) */ id, cast(id % 2 as string) p, 'x' FROM range(100)")
    assert files_by_partition(path) == dict.fromkeys("01", 1)
    assert spark.read.format("delta").load(path).count() == 100
    assert tahoe.Table(path).check(deep=True) == []


def test_a_table_without_partitions_gets_one_file_and_keeps_the_order_of_its_rows(spark, path):
    rows_of(spark).write.format("delta").option("optimizeWrite", "true").save(path)
    assert files_by_partition(path) == {None: 1}
    assert tahoe.Table(path).to_arrow()["id"].to_pylist() == [*range(600)]


def test_a_file_holds_about_a_bin(spark, path):
    """Six megabytes of texts that no codec makes smaller, in bins of one."""
    spark.conf.set(PREFIX + "binSize", "1")
    texts = spark.range(0, 6000, 1, 12).selectExpr(
        "id", "'a' p", "concat_ws('', transform(sequence(1, 16), i -> sha2(concat(id, ' ', i), 256))) t"
    )
    for place, partition_by in ((path, ["p"]), (f"{path}-2", [])):
        texts.write.format("delta").option("optimizeWrite", "true").partitionBy(*partition_by).save(place)
        sizes = tahoe.Table(place).files()["size"].to_pylist()
        assert 3 <= len(sizes) <= 9
        assert spark.read.format("delta").load(place).selectExpr("count(distinct id)", "count(*)").first()[:] == (6000, 6000)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_constraints_generated_columns_and_statistics_are_as_ever(spark, path, mode):
    properties = {
        "delta.autoOptimize.optimizeWrite": "true",
        "delta.columnMapping.mode": mode,
        "delta.constraints.small": "id < 1000",
    }
    shown = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT NOT NULL, p STRING, d BIGINT GENERATED ALWAYS AS (id * 2)) USING delta "
        f"PARTITIONED BY (p) TBLPROPERTIES ({shown})"
    )
    rows = spark.range(0, 90, 1, 5).selectExpr("id", "if(id % 3 = 0, null, concat('a b/', id % 3)) p")
    rows.write.format("delta").mode("append").save(path)
    table = tahoe.Table(path)
    assert table.files().num_rows == 3
    actual = table.to_arrow().sort_by("id").to_pydict()
    assert actual == {"id": [*range(90)], "p": [f"a b/{i % 3}" if i % 3 else None for i in range(90)], "d": [*range(0, 180, 2)]}
    assert len(table.files("id > 88")) == 1
    with pytest.raises(PySparkException, match="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"):
        rows.selectExpr("id + 950 id", "p").write.format("delta").mode("append").save(path)
    with pytest.raises(PySparkException, match="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"):
        rows.selectExpr("nullif(id, 7) id", "p").write.format("delta").mode("append").save(path)
    assert table.check(deep=True) == []


def test_rows_that_are_copied_are_written_so_too_with_their_ids(spark, path):
    properties = {"delta.enableRowTracking": "true", "delta.autoOptimize.optimizeWrite": "true"}
    rows_of(spark).write.format("delta").partitionBy("p").options(**properties, optimizeWrite="false").save(path)
    table = tahoe.Table(path)
    before = dict(zip(*(table.to_arrow(row_ids=True)[name].to_pylist() for name in ("id", "_row_id")), strict=True))
    spark.sql(f"UPDATE delta.`{path}` SET t = 'new' WHERE id % 5 = 0")
    assert files_by_partition(path) == dict.fromkeys("012", 1)
    after = table.to_arrow(row_ids=True)
    assert dict(zip(after["id"].to_pylist(), after["_row_id"].to_pylist(), strict=True)) == before
    assert after["t"].to_pylist().count("new") == 120
    assert table.check(deep=True) == []


@pytest.mark.parametrize(("name", "value"), [("enabled", "often"), ("binSize", "large"), ("maxShufflePartitions", "0")])
def test_settings_that_are_no_value_are_refused(spark, path, name, value):
    spark.conf.set(PREFIX + "enabled", "true")
    spark.conf.set(PREFIX + name, value)
    with pytest.raises(InvalidRequest, match=rf"optimizeWrite.{name} = '{value}' is no value"):
        spark.range(5).write.format("delta").save(path)
