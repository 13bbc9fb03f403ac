"""Tahoe enabled in a session that has delta-spark's JAR and catalog: all statements are Tahoe's."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tahoe

pytestmark = [pytest.mark.jvm, pytest.mark.filterwarnings("ignore:.*snapshotPartitions")]

CATALOG = "spark.sql.catalog.spark_catalog"


@pytest.mark.parametrize("named", ["a name", "a path"])
def test_all_statements_are_tahoes(jvm: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, named: str) -> None:
    with caplog.at_level(logging.WARNING):
        session = tahoe.enable(jvm.newSession())
    assert f"{CATALOG} = org.apache.spark.sql.delta.catalog.DeltaCatalog names a class of delta-spark's JAR" in caplog.text
    table = "enabled_beside" if named == "a name" else f"delta.`{tmp_path}/t`"
    session.sql(f"CREATE TABLE {table} (id INT, n INT) USING delta")
    session.sql(f"INSERT INTO {table} VALUES (1, 1), (2, 2)")
    session.sql(f"INSERT OVERWRITE {table} SELECT id, n + 1 FROM {table}")
    session.sql(f"DELETE FROM {table} WHERE id = 2")
    session.sql(f"MERGE INTO {table} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 5")
    session.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT * FROM {table}")
    session.table(table).write.format("delta").mode("append").saveAsTable(table)
    assert [tuple(row) for row in session.sql(f"SELECT * FROM {table}").collect()] == [(1, 5), (1, 5)]
    writers = {str(row.engineInfo).partition("/")[0] for row in session.sql(f"DESCRIBE HISTORY {table}").collect()}
    assert writers == {"Tahoe"}
    session.sql(f"CREATE OR REPLACE TABLE {table} (id INT, n INT) USING delta CLUSTER BY (n)")
    assert session.sql(f"DESCRIBE DETAIL {table}").first().clusteringColumns == ["n"]
    session.sql(f"DROP TABLE IF EXISTS {table}")
    # The session of delta-spark is as before.
    theirs = f"delta.`{tmp_path}/theirs`"
    jvm.sql(f"CREATE TABLE {theirs} USING delta AS SELECT 1 AS id")
    assert str(jvm.sql(f"DESCRIBE HISTORY {theirs}").first().engineInfo).startswith("Apache-Spark")
