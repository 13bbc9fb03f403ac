"""A program with a Hive metastore (Derby), started by `test_hive`: ``write`` makes tables by name, ``read`` finds them in a later process.

Prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import tahoe
from tahoe.tables import DeltaTable


def main(step: str, folder: str) -> None:
    """Run one step; both are given the same folder."""
    spark = session(folder)
    try:
        reported = write(spark, folder) if step == "write" else read(spark)
        sys.stdout.write(f"TOLD {json.dumps(reported)}\n")
    finally:
        spark.stop()


def session(folder: str) -> SparkSession:
    """With a metastore in the folder; it is one process's at a time, as Derby is."""
    builder = SparkSession.builder.master("local[2]").enableHiveSupport()
    settings = {
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return tahoe.enable(builder.getOrCreate())


def write(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Tables of every kind, some renamed, moved or dropped."""
    spark.sql("CREATE DATABASE db")
    spark.sql("CREATE TABLE db.managed (id BIGINT NOT NULL, day STRING) USING delta PARTITIONED BY (day) COMMENT 'of days'")
    spark.sql("INSERT INTO db.managed VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"CREATE TABLE db.external USING delta LOCATION '{folder}/at a place' AS SELECT id FROM range(4)")
    spark.range(3).write.format("delta").saveAsTable("db.saved")
    spark.range(5).write.format("delta").mode("overwrite").saveAsTable("db.saved")
    DeltaTable.createIfNotExists(spark).tableName("db.built").addColumn("x", "int").property("a", "b").execute()
    spark.sql("CREATE TABLE db.like LIKE db.managed")
    spark.sql("ALTER TABLE db.saved RENAME TO db.renamed")
    spark.sql(f"CREATE TABLE db.adopted USING delta LOCATION '{folder}/at a place'")
    spark.sql("CREATE TABLE db.dropped USING delta AS SELECT 1 AS a")
    spark.sql("DROP TABLE db.dropped")
    spark.sql(f"CREATE TABLE db.gone USING delta LOCATION '{folder}/gone' AS SELECT 1 AS a")
    spark.sql("DROP TABLE db.gone")
    spark.sql("CREATE TABLE db.other (a INT) USING parquet")
    spark.sql("CREATE VIEW db.seen AS SELECT * FROM db.managed WHERE id > 1")
    return {"warehouse": sorted(os.listdir(f"{folder}/warehouse/db.db")), "kept": os.path.isdir(f"{folder}/gone/_delta_log")}


def read(spark: SparkSession) -> dict[str, Any]:
    """The result of another process, which continues from there."""
    spark.sql("USE db")
    spark.sql("INSERT INTO managed VALUES (3, 'c')")
    catalog = spark._jsparkSession.sessionState().catalog().externalCatalog()
    entries = {}
    for name in ("managed", "external", "renamed", "built", "like", "adopted"):
        entry = catalog.getTable("db", name)
        entries[name] = {
            "type": str(entry.tableType().name()),
            "provider": entry.provider().get(),
            "columns": entry.schema().length(),
            "partitions": entry.partitionColumnNames().size(),
            "location": str(entry.location().getPath()).rpartition("/")[2],
        }
    names = ("managed", "external", "renamed", "built", "like", "adopted", "seen")
    return {
        "tables": sorted(row.tableName for row in spark.sql("SHOW TABLES").collect()),
        "rows": {name: sorted(tuple(row) for row in spark.table(name).collect()) for name in names},
        "entries": entries,
        "columns": {name: spark.table(name).columns for name in names},
        "history": [row.operation for row in DeltaTable.forName(spark, "renamed").history().collect()],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
