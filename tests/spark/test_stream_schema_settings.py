"""Streams that the session lets read past changes of the schema, in classic sessions and over Spark Connect.

Which change each setting lets pass is in `tests/conformance/cases/stream_schema_settings.toml` and the unit tests of `schema_changes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeError
from tests.session_settings import with_settings

COLUMNS = {"spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled": "true"}
START = {"spark.databricks.delta.streaming.unsafeReadOnIncompatibleSchemaChangesDuringStreamStart.enabled": "true"}
NULLS = {"spark.databricks.delta.streaming.unsafeReadOnNullabilityChange.enabled": "true"}
PARTITIONS = {"spark.databricks.delta.streaming.unsafeReadOnPartitionColumnChanges.enabled": "true"}
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name', 'delta.enableChangeDataFeed' = 'true')"


@pytest.fixture
def session(either_session: Any) -> Iterator[Any]:
    """A session without the table `streamed`."""
    either_session.sql("DROP TABLE IF EXISTS streamed")
    yield either_session
    either_session.sql("DROP TABLE IF EXISTS streamed")


def made(session: Any, clauses: str = "", columns: str = "id INT, v STRING") -> None:
    session.sql(f"CREATE TABLE streamed ({columns}) USING delta {clauses}")
    session.sql("INSERT INTO streamed VALUES (1, 'a')")


def rows_of(session: Any, stream: Any, folder: Path) -> list[tuple[Any, ...]]:
    """Return the rows of a stream that stops by itself; its checkpoint and its target are in the folder."""
    writer = stream.writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint")
    assert writer.option("mergeSchema", "true").trigger(availableNow=True).start(f"{folder}/copy").awaitTermination(120)
    return sorted(map(tuple, session.read.format("delta").load(f"{folder}/copy").collect()), key=str)


def read(session: Any, **options: str) -> Any:
    return session.readStream.options(startingVersion="0", **options).table("streamed").select("id", "w")


def test_older_rows_have_the_newer_name(session: Any, tmp_path: Path) -> None:
    made(session, MAPPED)
    session.sql("ALTER TABLE streamed RENAME COLUMN v TO w")
    session.sql("INSERT INTO streamed VALUES (2, 'b')")
    for options in ({}, {"readChangeFeed": "true"}):
        stream = read(session, **options)
        with pytest.raises((StreamingQueryException, TahoeError), match="INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"):
            rows_of(session, stream, tmp_path / f"stops-{len(options)}")
        with with_settings(session, COLUMNS):
            rows = rows_of(session, read(session, **options), tmp_path / str(len(options)))
        assert rows == [(1, "a"), (2, "b")]


def test_partition_columns_that_a_file_had_not_are_null(session: Any, tmp_path: Path) -> None:
    made(session)
    overwrite = session.sql("SELECT 2 AS id, 'b' AS v").write.format("delta").mode("overwrite").partitionBy("v")
    overwrite.option("overwriteSchema", "true").saveAsTable("streamed")
    with with_settings(session, PARTITIONS):
        reader = session.readStream.options(startingVersion="0", ignoreChanges="true")
        assert rows_of(session, reader.table("streamed"), tmp_path) == [(1, None), (2, "b")]


def test_a_feed_continues_past_a_change_that_a_batch_cannot_read(session: Any, tmp_path: Path) -> None:
    made(session, MAPPED)
    session.sql("ALTER TABLE streamed DROP COLUMN v")
    session.sql("INSERT INTO streamed VALUES (2)")

    def read_feed() -> list[tuple[Any, ...]]:
        reader = session.readStream.options(readChangeFeed="true", startingVersion="0")
        return rows_of(session, reader.table("streamed").select("id", "_commit_version"), tmp_path)

    with with_settings(session, COLUMNS):
        assert read_feed() == [(1, 1), (2, 3)]
    session.sql("INSERT INTO streamed VALUES (3)")
    assert read_feed() == [(1, 1), (2, 3), (3, 4)], "its checkpoint is past the change"


def test_the_setting_of_the_start_of_a_query_counts(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS streamed")
    made(spark)
    stream = spark.readStream.option("ignoreChanges", "true").table("streamed")
    assert rows_of(spark, stream, tmp_path) == [(1, "a")]
    spark.sql("SELECT 7 AS id").write.format("delta").mode("overwrite").option("overwriteSchema", "true").saveAsTable("streamed")
    stream = spark.readStream.option("ignoreChanges", "true").table("streamed")
    with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
        rows_of(spark, stream, tmp_path)
    with with_settings(spark, START):
        assert rows_of(spark, stream, tmp_path) == [(1, "a"), (7, None)]
    spark.sql("DROP TABLE streamed")


def test_rows_may_have_nulls_that_the_schema_excludes(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("DROP TABLE IF EXISTS streamed")
    made(spark, columns="id INT NOT NULL, v STRING")
    for settings, folder, expected in ((START, "stops", [(1, "a")]), (NULLS, "continues", [(1, "a"), (2, "b")])):
        with with_settings(spark, settings):
            stream = spark.readStream.table("streamed")
            writer = stream.writeStream.format("delta").option("checkpointLocation", f"{tmp_path}/{folder}/checkpoint")
            query = writer.start(f"{tmp_path}/{folder}/copy")
            try:
                query.processAllAvailable()
                spark.sql("ALTER TABLE streamed ALTER COLUMN id DROP NOT NULL")
                spark.sql("INSERT INTO streamed VALUES (2, 'b')")
                if settings is NULLS:
                    query.processAllAvailable()
                else:
                    with pytest.raises(StreamingQueryException, match="DELTA_SCHEMA_CHANGED_WITH_VERSION"):
                        query.processAllAvailable()
            finally:
                query.stop()
        copy = spark.read.format("delta").load(f"{tmp_path}/{folder}/copy")
        assert sorted(map(tuple, copy.collect())) == expected
        spark.sql("DROP TABLE streamed")
        made(spark, columns="id INT NOT NULL, v STRING")
    spark.sql("DROP TABLE streamed")
