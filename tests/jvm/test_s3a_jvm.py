"""Tables on S3 in a session with hadoop-aws: Spark reads and writes the files itself, and sessions without it see the same rows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tahoe import Table
from tests.java_options import JAVA_OPTIONS
from tests.jvm.maven import fetched, hadoop_version
from tests.spark.own_spark import ROOT

pytestmark = pytest.mark.jvm

PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
import tahoe
from tahoe.spark.jvm.file_systems import moves_in_python
from tahoe.tables import DeltaTable

task = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]")
for name, value in task["settings"].items():
    builder = builder.config(name, value)
spark = tahoe.enable(builder.getOrCreate())
without = tahoe.enable(spark.newSession())
without.conf.set("fs.s3a.impl", "absent.FileSystem")
url = task["url"]
assert (moves_in_python(spark, url), moves_in_python(without, url)) == (False, True)

def rows(session, url=url, **options):
    return sorted(map(str, session.read.format("delta").options(**options).load(url).collect()))

for writer in (spark, without):
    writer.range(100).selectExpr("id", "id % 3 AS p", "named_struct('a', id) AS n").write.format("delta").option(
        "delta.enableDeletionVectors", "true").option("delta.enableChangeDataFeed", "true").mode("append").partitionBy("p").save(url)
    assert rows(spark) == rows(without)
for number, session in enumerate((spark, without)):
    table = DeltaTable.forPath(session, url)
    table.delete(f"id = {number}")
    table.update(f"id = {10 + number}", {"n": "named_struct('a', -1L)"})
    source = session.range(90 + number, 110).selectExpr("id", f"{number}L AS p", "named_struct('a', 0L) AS n").dropDuplicates(["id"])
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merge.execute()
    assert rows(spark) == rows(without)
    feed = {"readChangeFeed": "true", "startingVersion": "2"}
    assert rows(spark, **feed) == rows(without, **feed)
for number in (0, 1):
    assert rows(spark, versionAsOf=str(number)) == rows(without, versionAsOf=str(number))
print(json.dumps(len(rows(spark))))
spark.stop()
"""


def test_sessions_with_and_without_s3a_share_a_table(
    s3_url: str, s3_options: dict[str, str], s3a_settings: dict[str, str]
) -> None:
    version = hadoop_version()
    project = fetched(f"org/apache/hadoop/hadoop-project/{version}/hadoop-project-{version}.pom", "s3a").read_text()
    (sdk,) = re.findall(r"<aws-java-sdk-v2.version>(.*?)<", project)
    jars = [
        fetched(f"org/apache/hadoop/hadoop-aws/{version}/hadoop-aws-{version}.jar", "s3a"),
        fetched(f"software/amazon/awssdk/bundle/{sdk}/bundle-{sdk}.jar", "s3a"),
    ]
    settings = {
        "spark.driver.extraClassPath": ":".join(map(str, jars)),
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.log.level": "OFF",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        **{f"spark.hadoop.{name}": value for name, value in s3a_settings.items()},
    }
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", PROGRAM, json.dumps({"settings": settings, "url": s3_url})]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"{done.stdout[-1000:]} {done.stderr[-3000:]}"
    table = Table(s3_url, storage_options={**s3_options, "allow_http": "true"})
    assert table.to_arrow().num_rows == json.loads(done.stdout.splitlines()[-1])
    assert table.check(deep=True) == []
