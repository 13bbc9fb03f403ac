"""Commands whose tasks run in Python workers that have no Tahoe: PySpark starts the `python3` of the executors' path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.own_spark import ROOT, run

PROGRAM = """
import os, sys

master, folder, java_options, nowhere = sys.argv[1:]
os.environ["PYTHONPATH"] = nowhere  # of the JVM, and so of local workers
os.chdir(folder)  # a worker looks for modules in the folder that it starts in
import pyarrow as pa
from pyspark.sql import SparkSession
import tahoe
from tahoe import DeltaTable, Table
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.spark.copies import clone
from tahoe.spark.executors.shard_encoder import SparkShards
from tahoe.spark.write import spread, writer

builder = SparkSession.builder.master(master).config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.driver.extraJavaOptions", java_options)
builder = builder.config("spark.executor.memory", "512m").config("spark.executorEnv.PYTHONPATH", nowhere)
spark = tahoe.enable(builder.getOrCreate())


def importable(_):
    try:
        import tahoe
    except ImportError as error:
        yield str(error)


def made(name, files=4, **options):
    table = Table.create(f"{folder}/{name}", pa.schema({"id": pa.int64(), "s": pa.string()}), **options)
    for number in range(files):
        table.append(pa.table({"id": [number, number + 100], "s": ["a", "b"]}))
    return table


def jobs():
    return spark._jsc.sc().dagScheduler().numTotalJobs()


def told(name, table, act, rows):
    before = jobs()
    act(f"delta.`{table.url[7:]}`")
    table = Table(table.url[7:])
    assert jobs() > before, (name, "no task ran")
    assert table.to_arrow().num_rows == rows and table.check(deep=True) == [], name
    print("=", name, table.history(1)[0]["operation"], len(table.files()))


print("= workers:", spark.sparkContext.parallelize([1], 1).mapPartitions(importable).collect())
sql = spark.sql
vectors = made("vectors", properties={"delta.enableDeletionVectors": "true"})
vectors.delete("id = 3")
told("compact", vectors, lambda t: sql(f"OPTIMIZE {t}"), 7)
told("cluster", made("zorder"), lambda t: DeltaTable.forPath(spark, t[7:-1]).optimize().executeZOrderBy("id"), 8)
told("clustered table", made("liquid", cluster_by=["id"]), lambda t: sql(f"OPTIMIZE {t}"), 8)
spread._LEAST_FILES, spread._LEAST_FILES_OF_A_PART, spread._LEAST_BYTES = 2, 1, 0
told("join by many", made("join"), lambda t: sql(f"OPTIMIZE {t}"), 8)
many = made("many", 1, properties={"delta.targetFileSize": "200kb"})
numbers = pa.array(range(200_000), pa.int64())
for _ in range(2):
    many.append(pa.table({"id": numbers, "s": numbers.cast(pa.string())}))
told("cluster by many", many, lambda t: sql(f"OPTIMIZE {t} ZORDER BY (id)"), 400_002)
blank = made("blank", properties={"delta.dataSkippingNumIndexedCols": "0"})
blank.set_properties({"delta.dataSkippingNumIndexedCols": "2"})
told("analyze", blank, lambda t: sql(f"ANALYZE TABLE {t} COMPUTE DELTA STATISTICS"), 8)
writer._FOOTERS_ON_DRIVER = 1
rows = spark.range(12).selectExpr("id", "cast(id AS string) s").repartition(3)
told("append", made("append"), lambda t: rows.write.format("delta").mode("append").save(t[7:-1]), 20)
clone._FEW = 1
told("clone", Table(f"{folder}/clone"), lambda t: sql(f"CREATE TABLE {t} DEEP CLONE delta.`{folder}/append`"), 20)
spark.conf.set("spark.databricks.delta.autoCompact.enabled", "true")
spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
told("auto compact", made("auto"), lambda t: rows.write.format("delta").mode("append").save(t[7:-1]), 20)
UNIFORM_RUNTIME.shards = SparkShards(spark, least_files=1)
iceberg = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
uniform = made("uniform", properties={**iceberg, "delta.universalFormat.enabledFormats": "iceberg"})
told("convert to Iceberg", uniform, lambda t: uniform.uniform.sync(rebuild=True), 8)
# Spark looks for the format "delta" in the workers' Python if it loads a table that no query has read.
for statement in (
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id LONG) USING delta",
    "CREATE TABLE d.u (id LONG) USING delta",
    "CREATE TABLE d.v (id LONG) USING delta",
    "CREATE TABLE d.w (id LONG) USING delta",
    "DROP TABLE d.t",
    "ALTER TABLE d.u RENAME TO d.x",
    "DROP TABLE IF EXISTS d.x",
    "DROP TABLE d.w PURGE",
    "DROP TABLE IF EXISTS d.t",
):
    sql(statement)
print("= names", [row.tableName for row in sql("SHOW TABLES IN d").collect()])
sql("DROP DATABASE d CASCADE")
broken = made("broken")
os.unlink(f"{folder}/broken/" + broken.files()["path"][0].as_py())
try:
    sql(f"OPTIMIZE delta.`{folder}/broken`")
except tahoe.NotFound as error:
    print("= a lost file:", error.code, broken.version())
"""

REPORTED = [
    "= workers: ['no Tahoe here']",
    "= compact OPTIMIZE 1",
    "= cluster OPTIMIZE 1",
    "= clustered table OPTIMIZE 1",
    "= join by many OPTIMIZE 1",
    "= cluster by many OPTIMIZE 16",
    "= analyze COMPUTE STATS 4",
    "= append WRITE 7",
    "= clone CLONE 7",
    "= auto compact OPTIMIZE 1",
    "= convert to Iceberg WRITE 4",
    "= names ['v']",
    "= a lost file: DELTA_FILE_NOT_FOUND 4",
]


@pytest.mark.own_jvm
@pytest.mark.long
@pytest.mark.parametrize("master", ["local[2]", pytest.param("local-cluster[2,1,1024]", marks=pytest.mark.soak)])
def test_every_command_works_where_workers_cannot_import_tahoe(tmp_path: Path, java_options: str, master: str) -> None:
    nowhere = tmp_path / "nowhere"
    (nowhere / "tahoe").mkdir(parents=True)
    (nowhere / "tahoe/__init__.py").write_text("raise ImportError('no Tahoe here')")
    assert run(PROGRAM, master, str(tmp_path), java_options, str(nowhere)) == REPORTED


BLOCKED = """
import sys

if sys.orig_argv[-1] == "pyspark.worker":  # one that runs tasks; those that plan and commit belong to the driver

    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "tahoe":
                raise ImportError("no Tahoe here")

    sys.meta_path.insert(0, Blocked())
"""

DATA_SOURCE = """
import os, sys

folder, java_options, paths = sys.argv[1:]
os.environ["PYTHONPATH"] = paths
os.chdir(folder)
import pyarrow as pa
from pyspark.sql import SparkSession
from tahoe import Table

builder = SparkSession.builder.master("local[2]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()


def importable(_):
    try:
        import tahoe
    except ImportError as error:
        yield str(error)


print("= workers:", spark.sparkContext.parallelize([1], 1).mapPartitions(importable).collect())
path, copy = f"{folder}/t", f"{folder}/copy"
table = Table.create(path, pa.schema({"id": pa.int64(), "p": pa.string()}), partition_by=["p"])
table.append(pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]}))
table.set_properties({"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"})
table.delete("id = 1")
print("= read", sorted(map(tuple, spark.read.format("delta").load(path).collect())))
changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", "3").load(path)
print("= changes", [(row.id, row._change_type) for row in changes.collect()])
spark.range(5, 7).selectExpr("id", "'c' AS p").write.format("delta").mode("append").save(path)
print("= written", Table(path).to_arrow().num_rows, Table(path).check())
query = spark.readStream.format("delta").load(path).writeStream.format("delta").option("partitionBy", "p")
query.option("checkpointLocation", f"{folder}/checkpoint").trigger(once=True).start(copy).awaitTermination()
print("= streamed", Table(copy).to_arrow().num_rows, Table(copy).check())
"""


@pytest.mark.own_jvm
@pytest.mark.long
def test_the_data_source_works_where_tasks_cannot_import_tahoe(tmp_path: Path, java_options: str) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(BLOCKED)
    paths = os.pathsep.join([str(blocked), str(ROOT)])
    assert run(DATA_SOURCE, str(tmp_path), java_options, paths) == [
        "= workers: ['no Tahoe here']",
        "= read [(2, 'a'), (3, 'b')]",
        "= changes [(1, 'delete')]",
        "= written 4 []",
        "= streamed 4 []",
    ]
