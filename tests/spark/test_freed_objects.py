"""A long-lived session: versions, copies of sessions and writable tables are freed after the operation that needed them.

Neither Python's garbage collector nor the JVM's sees a cycle through both, so a Python object that refers to its JVM counterpart is never
freed.
"""

from __future__ import annotations

import gc
import time

import pytest

from tahoe.spark.scan.file_index import FileIndex
from tahoe.tables import DeltaTable

MERGE = "MERGE INTO freed t USING (SELECT 7L id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"


@pytest.fixture
def table(spark, path):
    spark.sql(f"CREATE TABLE freed (id BIGINT) USING delta LOCATION '{path}'")
    spark.sql("ALTER TABLE freed ADD CONSTRAINT small CHECK (id < 9000)")
    spark.sql("INSERT INTO freed VALUES (1)")
    yield path
    spark.sql("DROP TABLE freed")


def append(spark, path):
    spark.range(3).write.format("delta").mode("append").save(path)


def insert_and_read(spark, path):
    spark.sql("INSERT INTO freed VALUES (2), (3)")
    spark.read.format("delta").load(path).where("id > 1").collect()
    spark.sql("SELECT count(*), max(id) FROM freed").collect()


def overwrite(spark, path):
    spark.sql("INSERT OVERWRITE freed VALUES (2), (3)")


def update(spark, path):
    spark.sql("UPDATE freed SET id = id + 1")


def update_with_vectors(spark, path):
    spark.sql("ALTER TABLE freed SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    spark.sql("INSERT INTO freed VALUES (8)")
    DeltaTable.forPath(spark, path).update("id = 8", {"id": "9"})


def merge(spark, path):
    spark.sql(MERGE)


def read_old_versions(spark, path):
    spark.sql("SELECT * FROM freed VERSION AS OF 1").collect()
    spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 3).load(path).collect()


def cache(spark, path):
    """Spark caches the rows of a copy of the session."""
    rows = spark.read.format("delta").load(path).cache()
    rows.count()
    rows.unpersist(True)


def stream(spark, path):
    rows = spark.readStream.format("delta").load(path)
    rows.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()


OPERATIONS = [append, insert_and_read, overwrite, update, update_with_vectors, merge, read_old_versions, cache, stream]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_repeated_operation_leaves_no_object(spark, table, operation):
    """Objects of Python that the JVM refers to."""

    def count() -> int:
        return len(spark.sparkContext._gateway.gateway_property.pool)

    spark.sql("ALTER TABLE freed SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    for _ in range(3):
        append(spark, table)
    operation(spark, table)
    before = count()
    for _ in range(8):
        operation(spark, table)
    assert settled(spark, count, before) < before + 8


def test_only_the_newest_versions_of_a_table_stay_in_memory(spark, table):
    def count() -> int:
        return len(
            {
                index.snapshot.version
                for index in gc.get_objects()
                if type(index) is FileIndex and index.snapshot.store.url.endswith(table)
            }
        )

    for _ in range(8):
        insert_and_read(spark, table)
    assert settled(spark, count, 3) <= 3


def settled(spark, count, enough: int) -> int:
    """Collect garbage until at most this number of objects is left, or for half a minute; return the number."""
    end = time.monotonic() + 30
    while count() > enough and time.monotonic() < end:
        gc.collect()
        spark._jvm.System.gc()
        time.sleep(0.1)
    return count()
