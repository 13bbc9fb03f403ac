"""The portable data source: what works with no code at all, in classic sessions, on Spark Connect, and on executors of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tahoe.table import Table

ROOT = Path(__file__).parents[2]


def run(program: str, *arguments: str) -> list[str]:
    """The lines that a Python program of its own prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONWARNINGS": "ignore"}
    outcome = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=environment, timeout=240, check=False
    )
    assert outcome.returncode == 0, outcome.stderr[-4000:]
    return [line for line in outcome.stdout.splitlines() if line.startswith("= ")]


class TestInAClassicSession:
    def test_append_and_overwrite_and_versions(self, plain, path):
        frame = plain.range(10).selectExpr("id", "cast(id % 2 as int) p", "named_struct('a', array(id)) s")
        frame.write.format("delta").mode("append").save(path)
        frame.write.format("delta").mode("append").save(path)
        frame.write.format("delta").mode("overwrite").save(path)
        assert plain.read.format("delta").load(path).count() == 10
        assert plain.read.format("delta").option("versionAsOf", 1).load(path).count() == 20
        assert plain.read.format("delta").load(path + "@v0").count() == 10
        assert sorted(map(str, plain.read.format("delta").load(path).collect())) == sorted(map(str, frame.collect()))
        assert [row["operationParameters"]["mode"] for row in Table(path).history()] == ["Overwrite", "Append", "Append"]
        assert Table(path).check() == []

    def test_options_of_a_new_table(self, plain, path):
        writer = plain.range(4).selectExpr("id", "id % 2 p").write.format("delta").mode("append")
        writer.option("partitionBy", "p").option("delta.checkpointInterval", "3").option("userMetadata", "why").save(path)
        snapshot = Table(path).snapshot()
        assert snapshot.partition_columns == ("p",)
        assert snapshot.metadata.configuration == {"delta.checkpointInterval": "3"}
        assert Table(path).history()[0]["userMetadata"] == "why"

    def test_merge_schema_and_idempotent_writes(self, plain, path):
        plain.range(1).write.format("delta").mode("append").save(path)
        for _ in range(2):
            frame = plain.sql("select 2L id, 'x' more")
            options = {"mergeSchema": "true", "txnAppId": "job", "txnVersion": "1"}
            frame.write.format("delta").mode("append").options(**options).save(path)
        assert {tuple(row) for row in plain.read.format("delta").load(path).collect()} == {(0, None), (2, "x")}

    @pytest.mark.parametrize(
        ("condition", "rows"),
        [
            ("id > 90", 9),
            ("id = 5 and p = 1", 1),
            ("p in (0, 7)", 50),
            ("p is null", 0),
            ("not (p = 1)", 50),
            ("t like 't9%'", 11),
            ("d = date'2026-01-06'", 1),
            ("z >= timestamp'1970-01-01 00:01:30'", 10),
        ],
    )
    def test_filters_that_are_pushed_change_no_answer(self, plain, tmp_path_factory, condition, rows):
        path = str(tmp_path_factory.getbasetemp() / "pushed")
        if not Table(path).exists():
            frame = plain.range(100).selectExpr(
                "id",
                "cast(id % 2 as int) p",
                "concat('t', id) t",
                "date_add(date'2026-01-01', cast(id as int)) d",
                "timestamp_seconds(id) z",
            )
            frame.write.format("delta").mode("append").option("partitionBy", "p").save(path)
        assert plain.read.format("delta").option("pushFilters", "true").load(path).where(condition).count() == rows

    def test_a_write_that_does_not_fit_leaves_the_table_as_it_was(self, plain, path):
        plain.range(1).write.format("delta").mode("append").save(path)
        with pytest.raises(Exception, match="DELTA_METADATA_MISMATCH"):
            plain.sql("select 'x' other").write.format("delta").mode("append").save(path)
        assert Table(path).version() == 0

    @pytest.mark.parametrize("option", [{"replaceWhere": "id = 1"}, {"replaceOn": "id = 1"}])
    def test_what_it_cannot_do_is_named(self, plain, path, option):
        with pytest.raises(Exception, match=next(iter(option))):
            plain.range(1).write.format("delta").mode("overwrite").options(**option).save(path)


ON_CONNECT = """
import sys
from pyspark.sql import SparkSession
import tahoe
path, java_options = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", java_options).getOrCreate()
frame = spark.range(100).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= read", spark.read.format("delta").load(path).count())
assert tahoe.enable(spark) is spark
frame.write.format("delta").mode("append").save(path)
print("= filtered", spark.read.format("delta").load(path).where("id >= 90").count())
print("= version", spark.read.format("delta").option("versionAsOf", 0).load(path).count())
from tahoe.tables import DeltaTable
table = DeltaTable.forPath(spark, path)
print("= table", table.toDF().count(), table.history().count(), table.detail().first().numFiles > 0)
DeltaTable.create(spark).location(path + "2").addColumn("x", "int").execute()
print("= made", spark.read.format("delta").load(path + "2").columns)
from tahoe.spark.slice_encoder import SparkSlices
from tahoe.process import UNIFORM_RUNTIME
class Watched(SparkSlices):
    def encode(self, order, parts):
        for found in super().encode(order, parts):
            yield found
            print("= encoded there", found.number)
table = tahoe.Table(path)
table.uniform.upgrade()
table.uniform.sync()
UNIFORM_RUNTIME.slices = Watched(spark, least_files=1)
print("= converted", table.uniform.sync(rebuild=True).files_added == len(table.snapshot().files()))
"""

ON_A_CLUSTER = """
import sys
from pyspark.sql import SparkSession
import tahoe
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.log.level", "OFF").config("spark.ui.enabled", "false")
path, java_options = sys.argv[1:]
builder = builder.config("spark.driver.extraJavaOptions", java_options).config("spark.executor.extraJavaOptions", java_options)
plain = builder.config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", "2").getOrCreate()
frame = plain.range(1000).repartition(2).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= portable", plain.read.format("delta").load(path).count())
spark = tahoe.enable(plain)
frame = spark.range(1000).repartition(2).selectExpr("id", "cast(id % 2 as int) p")
frame.write.format("delta").mode("append").save(path)
print("= native", spark.read.format("delta").load(path).count())
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import inline_descriptor
from tahoe.txn.transaction import Operation
from tahoe.table import Table
from pyroaring import BitMap64
from dataclasses import replace
table = Table(path)
table.set_properties({"delta.enableDeletionVectors": "true"})
transaction = table.begin()
add = table.snapshot().scan().add_files()[0]
transaction.stage(add.remove(1), replace(add, deletion_vector=inline_descriptor(BitMap64([0, 1, 2]))))
table.commit(transaction, Operation("DELETE"))
print("= alive", spark.read.format("delta").load(path).count())
import tahoe.spark.write.writer
tahoe.spark.write.writer._FOOTERS_ON_DRIVER = 0
spark.range(10).repartition(2).selectExpr("id", "cast(id % 2 as int) p").write.format("delta").mode("append").save(path)
print("= footers", spark.read.format("delta").load(path).count())
"""


# Over five seconds: a server of Spark Connect of its own, and a Python process for each kind of step that Spark asks of a data source.
@pytest.mark.own_jvm
def test_on_spark_connect_reading_and_appending_need_no_code(path, java_options):
    assert run(ON_CONNECT, path, java_options) == [
        "= read 100",
        "= filtered 20",
        "= version 100",
        "= table 200 2 True",
        "= made ['x']",
        "= encoded there 0",
        "= converted True",
    ]
    assert Table(path).check() == []


# Over five seconds: a driver, a worker's two executors and their Python processes are started; only so is it seen what travels to executors.
@pytest.mark.own_jvm
def test_on_executors_of_their_own_both_ways_work(path, java_options):
    assert run(ON_A_CLUSTER, path, java_options) == [
        "= portable 1000",
        "= native 2000",
        "= alive 1997",
        "= footers 2007",
    ]
    assert Table(path).check() == []
