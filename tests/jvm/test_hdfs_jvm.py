"""Tables on HDFS, on a real name node and data node: the contract of stores, Spark's commands, and commits beside delta-spark."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import tahoe
from tahoe import Table
from tahoe.base.exceptions import StorageFailure
from tahoe.spark.jvm.bridge import Jvm
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.tables import DeltaTable
from tahoe.testing.interleaving import in_threads
from tahoe.testing.store_suite import SPECIAL_NAMES, LogStoreContract
from tests.jvm.maven import fetched, hadoop_version

pytestmark = pytest.mark.jvm

JUNIT = [
    "junit/junit/4.13.2/junit-4.13.2.jar",
    "org/hamcrest/hamcrest-core/1.3/hamcrest-core-1.3.jar",
    "org/junit/jupiter/junit-jupiter-api/5.11.4/junit-jupiter-api-5.11.4.jar",
    "org/junit/platform/junit-platform-commons/1.11.4/junit-platform-commons-1.11.4.jar",
    "org/opentest4j/opentest4j/1.3.0/opentest4j-1.3.0.jar",
]
"""Hadoop's mini cluster refers to JUnit 4 or, since 3.5, JUnit 5."""


def jars_of_cluster() -> list[Path]:
    """Download Hadoop's mini cluster in the version of PySpark's own Hadoop; skip the tests without Maven Central."""
    version = hadoop_version()
    cluster = f"org/apache/hadoop/hadoop-client-minicluster/{version}/hadoop-client-minicluster-{version}.jar"
    return [*(fetched(path, "hdfs") for path in (cluster, *JUNIT)), Path(pyspark.__file__).parent / "jars" / "*"]


@pytest.fixture(scope="module")
def name_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a file system with one name node and one data node."""
    folder = tmp_path_factory.mktemp("hdfs")
    main = "org.apache.hadoop.test.MiniDFSClusterManager"
    command = [
        os.path.join(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java",
        "-Xmx400m",
        "-XX:TieredStopAtLevel=1",
        f"-Dtest.build.data={folder}",
    ]
    command += ["-cp", ":".join(map(str, jars_of_cluster())), main, "-format", "-datanodes", "1", "-nnport", "0"]
    details = folder / "details.json"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([*command, "-writeDetails", str(details)], cwd=folder, stdout=log, stderr=log)
    try:
        for _ in range(600):
            if details.exists() and details.stat().st_size:
                break
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            time.sleep(0.2)
        yield f"hdfs://localhost:{json.loads(details.read_text())['namenode_port']}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def spark(jvm: SparkSession) -> SparkSession:
    """A session with Tahoe, beside delta-spark's of the same JVM."""
    session = jvm.newSession()
    session.conf.unset("spark.databricks.delta.snapshotPartitions")  # tunes delta-spark alone, and Tahoe warns of it
    return tahoe.enable(session)


@pytest.fixture
def url(name_node: str) -> str:
    return f"{name_node}/{uuid4()}"


class TestTheContract(LogStoreContract):
    @pytest.fixture
    def store(self, spark: SparkSession, url: str) -> LogStore:
        return open_store(url)

    @pytest.mark.parametrize("name", [name for name in SPECIAL_NAMES if ":" not in name])
    def test_names_are_taken_literally(self, store: LogStore, name: str) -> None:
        """HDFS has no names with a colon."""
        super().test_names_are_taken_literally(store, name)

    def test_a_name_that_hdfs_refuses_is_an_error_with_the_name(self, store: LogStore) -> None:
        with pytest.raises(StorageFailure, match="could not write 'a:b'"):
            store.put("a:b", b"x")


def test_settings_of_a_writer_apply_to_the_log(spark: SparkSession, url: str) -> None:
    spark.range(3).write.format("delta").option("dfs.replication", "2").save(url)
    hadoop_path = spark._jvm.org.apache.hadoop.fs.Path(f"{url}/_delta_log/00000000000000000000.json")
    status = hadoop_path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()).getFileStatus(hadoop_path)
    assert status.getReplication() == 2


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_commands_of_spark(spark: SparkSession, url: str) -> None:
    at = f"delta.`{url}`"
    spark.range(100).selectExpr("id", "id % 4 AS p").write.format("delta").partitionBy("p").save(url)
    spark.sql(f"DELETE FROM {at} WHERE id < 10")
    spark.sql(f"ALTER TABLE {at} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql(f"DELETE FROM {at} WHERE id = 50")
    spark.sql(f"UPDATE {at} SET id = id + 1000 WHERE id % 10 = 7")
    source = spark.range(98, 103).selectExpr("id", "id % 4 AS p")
    merge = DeltaTable.forPath(spark, url).alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
    expected = sorted([id + 1000 if id % 10 == 7 else id for id in range(10, 98) if id != 50] + [100, 101, 102])
    table = Table(url)
    assert ids(table) == expected == sorted(row.id for row in spark.read.format("delta").load(url).select("id").collect())
    spark.sql(f"OPTIMIZE {at} ZORDER BY (id)")
    assert ids(table) == expected and table.history(1)[0]["operation"] == "OPTIMIZE"
    spark.sql(f"RESTORE TABLE {at} TO VERSION AS OF 0")
    assert ids(table) == list(range(100))
    assert table.check(deep=True) == []
    spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    spark.sql(f"VACUUM {at} RETAIN 0 HOURS")
    assert ids(table) == list(range(100)) and table.check(deep=True) == []


def test_a_stream_and_uniform(spark: SparkSession, url: str) -> None:
    spark.range(5).write.format("delta").save(url)
    stream = spark.readStream.format("delta").load(url).writeStream.format("delta").trigger(availableNow=True)
    stream.option("checkpointLocation", f"{url}/_checkpoint").start(f"{url}-out").awaitTermination()
    out = Table(f"{url}-out")
    assert ids(out) == list(range(5))
    out.set_properties(
        {
            "delta.columnMapping.mode": "name",
            "delta.enableIcebergCompatV2": "true",
            "delta.universalFormat.enabledFormats": "iceberg",
        }
    )
    assert out.uniform.wait(timeout=60)
    status = out.uniform.status()
    assert (status.iceberg_version, status.lag_versions) == (out.version(), 0)


def test_a_path_without_scheme_is_one_of_the_default_file_system(spark: SparkSession, url: str, name_node: str) -> None:
    """As in Spark: never a folder of this machine with the same name."""
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    before = configuration.get("fs.defaultFS")
    Jvm.of(spark)._cached.pop("fs.defaultFS", None)
    configuration.set("fs.defaultFS", name_node)
    try:
        path = url.removeprefix(name_node)
        spark.range(3).write.format("delta").save(path)
        assert ids(Table(url)) == [0, 1, 2] and not Path(path).exists()
        assert spark.sql(f"DESCRIBE DETAIL delta.`{path}`").collect()[0].location == url
    finally:
        configuration.set("fs.defaultFS", before)
        Jvm.of(spark)._cached.pop("fs.defaultFS", None)


def test_commits_beside_delta_spark_are_lost_by_neither(jvm: SparkSession, spark: SparkSession, url: str) -> None:
    """Both rename to the same names; each append of both is in the table once."""
    rows = pa.table({"id": pa.array([0], pa.int64())})
    Table.create(url, rows.schema)

    def by_tahoe(id: int) -> None:
        Table(url).append(pa.table({"id": pa.array([id], pa.int64())}))

    def by_delta_spark(id: int) -> None:
        jvm.range(id, id + 1).write.format("delta").mode("append").save(url)

    def appends(writer: int, append: Callable[[int], None]) -> None:
        for number in range(8):
            append(100 * writer + number)

    in_threads([partial(appends, writer, by_tahoe if writer < 3 else by_delta_spark) for writer in (1, 2, 3, 4)])
    expected = sorted(100 * writer + number for writer in (1, 2, 3, 4) for number in range(8))
    assert ids(Table(url)) == expected
    assert sorted(row.id for row in jvm.read.format("delta").load(url).collect()) == expected
    assert Table(url).version() == 32 and Table(url).check(deep=True) == []
