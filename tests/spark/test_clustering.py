"""Clustered tables on Spark: CLUSTER BY in every statement and builder that has it, and OPTIMIZE, which clusters new files."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

import tahoe
from tahoe.base.exceptions import InvalidRequest, TahoeError
from tahoe.tables import DeltaTable

MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"


@pytest.fixture
def named(spark: SparkSession) -> Iterator[str]:
    """A name that no table has."""
    yield "clustered"
    spark.sql("DROP TABLE IF EXISTS clustered")
    spark.sql("DROP TABLE IF EXISTS like_clustered")


def columns(spark: SparkSession, name: str) -> list[str]:
    return list(spark.sql(f"DESCRIBE DETAIL {name}").first().clusteringColumns)


def last(spark: SparkSession, name: str) -> tuple[str, dict[str, str]]:
    row = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").first()
    return row.operation, row.operationParameters


def test_a_table_is_made_and_replaced_by_sql(spark, named):
    spark.sql(
        f"CREATE TABLE {named} (id INT, s STRUCT<x: INT>, `odd name` STRING) USING delta CLUSTER BY (ID, s.x, `odd name`) {MAPPED}"
    )
    assert columns(spark, named) == ["id", "s.x", "`odd name`"]
    assert json.loads(last(spark, named)[1]["clusterBy"]) == ["id", "s.x", "`odd name`"]
    spark.sql(f"CREATE OR REPLACE TABLE {named} USING delta CLUSTER BY (b) AS SELECT 1 AS a, 2 AS b")
    assert columns(spark, named) == ["b"]
    assert last(spark, named)[0] == "CREATE OR REPLACE TABLE AS SELECT"
    spark.sql(f"REPLACE TABLE {named} (a INT) USING delta")
    assert columns(spark, named) == []
    with pytest.raises(InvalidRequest) as refused:
        spark.sql(f"REPLACE TABLE {named} (a INT, p INT) USING delta PARTITIONED BY (p)")
    assert refused.value.code == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"


def test_it_is_altered_and_shown(spark, named):
    spark.sql(f"CREATE TABLE {named} (id INT, t STRING COMMENT 'text') USING delta")
    spark.sql(f"ALTER TABLE {named} CLUSTER BY (t, id)")
    assert last(spark, named) == ("CLUSTER BY", {"oldClusteringColumns": "", "newClusteringColumns": "t,id"})
    described = [tuple(row) for row in spark.sql(f"DESCRIBE {named}").collect()]
    assert described == [
        ("id", "int", None),
        ("t", "string", "text"),
    ]  # as delta-spark, which has clustering columns in DETAIL alone
    assert "\nCLUSTER BY (t, id)\n" in spark.sql(f"SHOW CREATE TABLE {named}").first()[0]
    spark.sql(f"CREATE TABLE like_clustered LIKE {named}")
    assert columns(spark, "like_clustered") == []
    spark.sql(f"ALTER TABLE {named} CLUSTER BY NONE")
    assert columns(spark, named) == []
    assert "CLUSTER BY" not in spark.sql(f"SHOW CREATE TABLE {named}").first()[0]


def test_writers_and_builders_know_it(spark, named, path):
    rows = spark.range(10).selectExpr("id", "id % 3 AS k")
    rows.write.format("delta").clusterBy("k", "id").save(path)
    assert tahoe.Table(path).detail()["clusteringColumns"] == ["k", "id"]
    rows.write.format("delta").mode("append").save(path)
    with pytest.raises(InvalidRequest) as refused:
        rows.write.format("delta").clusterBy("id").mode("append").save(path)
    assert refused.value.code == "DELTA_CLUSTERING_COLUMNS_MISMATCH"
    rows.write.format("delta").clusterBy("id").saveAsTable(named)
    assert columns(spark, named) == ["id"]
    with pytest.raises(InvalidRequest) as refused:
        rows.write.format("delta").clusterBy("k").mode("append").saveAsTable(named)
    assert refused.value.code == "TAHOE_OTHER_LAYOUT" and isinstance(refused.value, IllegalArgumentException)
    rows.write.format("delta").mode("append").saveAsTable(named)
    rows.write.format("delta").mode("overwrite").option("replaceWhere", "id >= 0").saveAsTable(named)
    assert columns(spark, named) == ["id"]
    rows.write.format("delta").mode("overwrite").saveAsTable(named)
    assert columns(spark, named) == []
    rows.write.format("delta").mode("overwrite").clusterBy("k").saveAsTable(named)
    assert columns(spark, named) == ["k"]
    assert last(spark, named)[1]["clusterBy"] == '["k"]'
    rows.writeTo(named).using("delta").clusterBy("id", "k").createOrReplace()
    assert columns(spark, named) == ["id", "k"]
    made = DeltaTable.replace(spark).tableName(named).addColumns(rows.schema).clusterBy(["k"]).execute()
    assert made.detail().first().clusteringColumns == ["k"]
    with pytest.raises(InvalidRequest) as refused:
        DeltaTable.createOrReplace(spark).tableName(named).addColumns(rows.schema).clusterBy("k").partitionedBy("id").execute()
    assert refused.value.code == "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"


def test_a_table_that_is_adopted_is_clustered_as_was_said(spark, named, path):
    spark.range(3).write.format("delta").clusterBy("id").save(path)
    with pytest.raises(InvalidRequest) as refused:
        spark.sql(f"CREATE TABLE {named} (id BIGINT) USING delta LOCATION '{path}'")
    assert refused.value.code == "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"
    spark.sql(f"CREATE TABLE {named} (id BIGINT) USING delta CLUSTER BY (id) LOCATION '{path}'")
    assert columns(spark, named) == ["id"]


def test_optimize_clusters_new_files(spark, named):
    spark.sql(
        f"CREATE TABLE {named} (id BIGINT, t STRING) USING delta CLUSTER BY (id, t) TBLPROPERTIES ('delta.targetFileSize' = '2500')"
    )
    insert = f"INSERT INTO {named} SELECT id * 7919 % 2000, concat('t', id * 31 % 100) FROM range({{}}, {{}}, 1, 2)"
    spark.sql(insert.format(0, 1000))
    before = sorted(map(tuple, spark.table(named).collect()))
    metrics = spark.sql(f"OPTIMIZE {named}").first().metrics
    assert (metrics.zOrderStats, metrics.clusteringStats.inputNumZCubes, metrics.clusteringStats.numOutputZCubes) == (None, 0, 1)
    assert metrics.clusteringStats.mergedFiles.numFiles == metrics.numFilesRemoved == 2
    assert metrics.numFilesAdded > 1
    assert sorted(map(tuple, spark.table(named).collect())) == before
    assert spark.sql(f"OPTIMIZE {named}").first().metrics.numFilesAdded == 0
    spark.sql(insert.format(1000, 1200))
    key = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."
    spark.conf.set(f"{key}threshold", "1000")
    try:
        alone = spark.sql(f"OPTIMIZE {named}").first().metrics.clusteringStats
    finally:
        spark.conf.unset(f"{key}threshold")
    assert (alone.inputNumZCubes, alone.inputOtherFiles.numFiles, alone.mergedFiles.numFiles) == (1, 2, 2)
    operation, parameters = last(spark, named)
    assert (operation, parameters["clusterBy"], parameters["isFull"]) == ("OPTIMIZE", '["id","t"]', "false")
    spark.sql(f"ALTER TABLE {named} CLUSTER BY (t)")
    assert spark.sql(f"OPTIMIZE {named}").first().metrics.numFilesAdded == 0
    assert DeltaTable.forName(spark, named).optimize().executeCompaction().first().metrics.numFilesAdded == 0
    full = spark.sql(f"OPTIMIZE {named} FULL").first().metrics
    assert full.totalFilesSkipped == 0
    assert full.clusteringStats.inputNumZCubes == 2
    assert last(spark, named)[1]["isFull"] == "true"
    assert spark.table(named).count() == 1200


REFUSED = [
    ("OPTIMIZE {t} WHERE id = 1", "DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"),
    ("OPTIMIZE {t} ZORDER BY (id)", "DELTA_CLUSTERING_WITH_ZORDER_BY"),
    ("ALTER TABLE {t} CLUSTER BY (nowhere)", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ("ALTER TABLE {t} CLUSTER BY (id, ID)", "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY"),
    ("ALTER TABLE {t} CLUSTER BY (a)", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
    ("ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.clustering' = 'supported')",
     "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"),
    ("CREATE OR REPLACE TABLE {t} (id INT) USING delta TBLPROPERTIES ('delta.feature.clustering' = 'supported')",
     "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_statements_that_the_reference_refuses_are_refused(spark, path, text, code):
    table = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {table} (id INT, a ARRAY<INT>) USING delta CLUSTER BY (id)")
    with pytest.raises(TahoeError) as refused:
        spark.sql(text.format(t=table))
    assert refused.value.code == code
    assert tahoe.Table(path).version() == 0
