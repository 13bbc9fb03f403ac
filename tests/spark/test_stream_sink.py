"""``df.writeStream.format("delta")``: the table after each batch of a query."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import (
    ConcurrentTransactionException,
    InvalidRequest,
    InvariantViolation,
    MetadataChangedException,
    SchemaMismatch,
    TahoeWarning,
    Unsupported,
)
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.settings.warn_once import reset_warnings
from tahoe.spark.sink import sink
from tahoe.spark.sink.sink import write_batch
from tahoe.spark.sink.sink_request import sink_request
from tahoe.tables import DeltaTable
from tests.spark.written import actions, ids, info


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder in whose `in` rows land; checkpoints stand beside it."""
    (tmp_path / "in").mkdir()
    return tmp_path


def land(home: Path, *rows: dict[str, Any], folder: str = "in") -> None:
    """One file, which is one batch."""
    count = len(list((home / folder).iterdir()))
    file = home / folder / f"{count:04}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows)), file)
    # Spark takes files by their time.
    os.utime(file, (1_700_000_000 + count,) * 2)


def landing(spark: SparkSession, home: Path, columns: str = "id long", folder: str = "in") -> DataFrame:
    return spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(home / folder))


def run(data: DataFrame, home: Path, path: str, *, at: str = "at", mode: str = "append", **options: Any) -> Any:
    """Run until all that has landed is in the table; the query."""
    writer = data.writeStream.format("delta").option("checkpointLocation", str(home / at)).outputMode(mode)
    query = writer.options(**options).trigger(availableNow=True).start(path)
    query.awaitTermination(600)
    return query


def stopped(data: DataFrame, home: Path, path: str, **options: Any) -> BaseException:
    """The error of a query."""
    with pytest.raises(StreamingQueryException) as caught:
        run(data, home, path, **options)
    cause = caught.value._cause  # type: ignore[attr-defined]
    assert str(cause).splitlines()[0] in str(caught.value), "a query shows what it stopped with"
    return cause  # type: ignore[no-any-return]


class TestBatches:
    def test_each_is_one_commit_with_its_number_and_the_references_words(self, spark, home, path):
        land(home, {"id": 1}, {"id": 2})
        land(home, {"id": 3})
        query = run(landing(spark, home), home, path, userMetadata="of the night")
        assert ids(spark, path) == [1, 2, 3]
        assert Table(path).version() == 1
        first = info(path, 0)
        assert first["operation"] == "STREAMING UPDATE"
        assert first["operationParameters"] == {"outputMode": "Append", "queryId": query.id, "epochId": "0"}
        size = actions(path, 0, AddFile)[0].size
        assert first["operationMetrics"] == {
            "numAddedFiles": "1",
            "numRemovedFiles": "0",
            "numOutputRows": "2",
            "numOutputBytes": str(size),
        }
        assert (first["isBlindAppend"], first["userMetadata"]) == (True, "of the night")
        assert Table(path).snapshot().state.transactions[query.id].version == 1
        assert query.lastProgress["sink"]["description"] == f"DeltaSink[file:{path}]"

    def test_one_that_comes_twice_is_written_once(self, spark, home, path):
        land(home, {"id": 1})
        query = run(landing(spark, home), home, path)
        # As after a crash between the table's commit and the checkpoint's.
        for name in ("commits/0", "commits/.0.crc"):
            (home / "at" / name).unlink()
        land(home, {"id": 2})
        again = run(landing(spark, home), home, path)
        assert again.id == query.id and again.runId != query.runId
        assert ids(spark, path) == [1, 2]
        assert Table(path).version() == 1

    def test_a_column_that_is_new_needs_mergeschema(self, spark, home, path):
        land(home, {"id": 1, "name": "a"})
        run(landing(spark, home), home, path)
        land(home, {"id": 2, "name": "b"})
        wider = landing(spark, home, "id long, name string")
        error = stopped(wider, home, path)
        assert isinstance(error, SchemaMismatch) and isinstance(error, AnalysisException)
        assert error.code == "DELTA_METADATA_MISMATCH"
        run(wider, home, path, mergeSchema="true")
        rows = {tuple(row) for row in spark.read.format("delta").load(path).collect()}
        assert rows == {(1, None), (2, "b")}

    def test_values_are_stored_in_the_tables_types_or_the_query_stops(self, spark, home, path):
        spark.sql(f"CREATE TABLE delta.`{path}` (id INT, at STRING, s STRUCT<a: BIGINT, b: INT>) USING delta")
        land(home, {"id": 7, "at": 5, "s": {"a": 1}})
        data = landing(spark, home, "id long, at long, s struct<a: long>").withColumn(
            "s", sf.expr("CAST(s AS STRUCT<a: SMALLINT>)")
        )
        run(data, home, path)
        row = spark.read.format("delta").load(path).collect()[0]
        assert (row.id, row.at, row.s.asDict()) == (7, "5", {"a": 1, "b": None})
        land(home, {"id": 1 << 40, "at": 5, "s": {"a": 1}})
        error = stopped(data, home, path)
        assert error.code == "CAST_OVERFLOW_IN_TABLE_INSERT"
        assert Table(path).version() == 1

    def test_rules_of_the_table_apply_to_the_stream(self, spark, home, path):
        spark.sql(
            f"""CREATE TABLE delta.`{path}` (id BIGINT NOT NULL, Day DATE, c STRING, twice BIGINT GENERATED ALWAYS AS (id * 2))
            USING delta PARTITIONED BY (Day) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"""
        )
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (id < 10)")
        land(home, {"id": 3, "d": 0, "c": "x"})
        day = sf.expr("date_add(DATE'2026-01-01', CAST(d AS INT))").alias("day")
        data = landing(spark, home, "id long, d long, c string").select("id", day, "c")
        run(data, home, path)
        row = spark.read.format("delta").load(path).collect()[0]
        assert (row.id, str(row.Day), row.c, row.twice) == (3, "2026-01-01", "x", 6)
        land(home, {"id": 11, "d": 0, "c": "x"})
        error = stopped(data, home, path)
        assert isinstance(error, InvariantViolation) and "small" in str(error)
        assert Table(path).version() == 2

    def test_a_column_of_nothing_is_refused(self, spark, home, path):
        land(home, {"id": 1})
        error = stopped(landing(spark, home).withColumn("n", sf.array(sf.lit(None))), home, path)
        assert isinstance(error, InvalidRequest) and error.code == "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE"
        assert not Table(path).exists()

    def test_a_query_that_reads_its_target_says_so(self, spark, home, path):
        spark.range(3).write.format("delta").save(path)
        land(home, {"id": 1})
        run(landing(spark, home).join(spark.read.format("delta").load(path), "id"), home, path)
        assert ids(spark, path) == [0, 1, 1, 2]
        assert info(path, 1)["isBlindAppend"] is False

    def test_files_are_laid_out_as_the_table_wants_them(self, spark, home, path):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, p INT) USING delta PARTITIONED BY (p) TBLPROPERTIES "
            "('delta.autoOptimize.autoCompact' = 'true', 'delta.autoOptimize.optimizeWrite' = 'true')"
        )
        spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "3")
        try:
            for batch in range(3):
                land(home, *({"id": batch * 10 + item, "p": item % 2} for item in range(10)))
            run(landing(spark, home, "id long, p long").repartition(4), home, path)
        finally:
            spark.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
        assert len(actions(path, 1, AddFile)) == 2, "a file for each partition"
        history = {item["version"]: item["operation"] for item in Table(path).history()}
        compacted = [version for version, operation in history.items() if operation == "OPTIMIZE"]
        assert compacted and ids(spark, path) == list(range(30))
        for version in compacted:
            assert not any(item.data_change for kind in (AddFile, RemoveFile) for item in actions(path, version, kind))

    def test_a_cached_table_shows_rows_that_a_stream_adds(self, spark, home, path):
        spark.range(1).write.format("delta").save(path)
        cached = spark.read.format("delta").load(path).cache()
        assert cached.count() == 1
        land(home, {"id": 1})
        run(landing(spark, home), home, path)
        assert cached.count() == 2
        cached.unpersist()


class TestOutputModes:
    def test_complete_replaces_all_rows(self, spark, home, path):
        land(home, {"id": 1}, {"id": 1})
        land(home, {"id": 2})
        counts = landing(spark, home).groupBy("id").count()
        run(counts, home, path, mode="complete")
        assert {tuple(row) for row in spark.read.format("delta").load(path).collect()} == {(1, 2), (2, 1)}
        assert info(path, 1)["operationParameters"]["outputMode"] == "Complete"
        assert int(info(path, 1)["operationMetrics"]["numRemovedFiles"]) == len(actions(path, 0, AddFile))
        narrower = landing(spark, home).groupBy(sf.col("id").alias("other")).count()
        land(home, {"id": 3})
        assert stopped(narrower, home, path, at="other", mode="complete").code == "DELTA_METADATA_MISMATCH"
        run(narrower, home, path, at="other", mode="complete", overwriteSchema="true")
        assert spark.read.format("delta").load(path).columns == ["other", "count"]

    def test_a_table_that_is_only_appended_to_is_not_replaced(self, spark, home, path):
        spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT, count BIGINT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')"
        )
        land(home, {"id": 1})
        error = stopped(landing(spark, home).groupBy("id").count(), home, path, mode="complete")
        assert error.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"

    def test_windows_that_are_over_are_appended(self, spark, home, path):
        for seconds in ((100,), (104, 123), (140,)):
            land(home, *({"at": second} for second in seconds))
        times = landing(spark, home, "at long").select(sf.timestamp_seconds("at").alias("at")).withWatermark("at", "10 seconds")
        counts = times.groupBy(sf.window("at", "5 seconds")).count().select("window.start", "window.end", "count")
        run(counts, home, path)
        rows = {(row.start.timestamp(), row["count"]) for row in spark.read.format("delta").load(path).collect()}
        assert rows == {(100.0, 2), (120.0, 1)}
        assert "watermark" not in Table(path).snapshot().metadata.schema_string.lower()


class TestRefused:
    def test_before_the_query_starts(self, spark, home, path, tmp_path):
        writer = landing(spark, home).writeStream.format("delta").option("checkpointLocation", str(home / "at"))
        with pytest.raises(Unsupported) as caught:
            writer.outputMode("update").start(path)
        assert caught.value.code == "DELTA_UNSUPPORTED_OUTPUT_MODE" and isinstance(caught.value, AnalysisException)
        writer.outputMode("append")
        with pytest.raises(InvalidRequest, match="not specified"):
            writer.start()
        with pytest.raises(InvalidRequest, match="twice"):
            landing(spark, home).writeStream.format("delta").option("path", path).start(path)
        with pytest.raises(Unsupported, match="replaceWhere"):
            landing(spark, home).writeStream.format("delta").option("replaceWhere", "id = 1").start(path)
        with pytest.raises(AnalysisException, match="nowhere"):
            writer.partitionBy("nowhere").start(path)
        with pytest.raises(AnalysisException, match="checkpointLocation"):
            landing(spark, home).writeStream.format("delta").start(path)
        assert not Table(path).exists() and not (home / "at").exists()

    def test_unsupported_options_are_reported(self, spark, home, path):
        land(home, {"id": 1})
        reset_warnings()
        with pytest.warns(TahoeWarning) as warnings:
            run(landing(spark, home), home, path, txnAppId="mine", txnVersion="3", **{"delta.appendOnly": "true"})
        names = {re.findall(r"option '([\w.]+)'", str(item.message))[0] for item in warnings}
        assert names == {"txnAppId", "txnVersion", "delta.appendOnly"}
        assert Table(path).snapshot().metadata.configuration == {}


class TestNames:
    @pytest.fixture(autouse=True)
    def _dropped(self, spark: SparkSession) -> Iterator[None]:
        yield
        spark.sql("DROP TABLE IF EXISTS silver_events")
        spark.catalog.dropTempView("silver_view")

    def test_a_table_that_is_missing_is_made(self, spark, home):
        land(home, {"id": 1, "p": 1})
        data = landing(spark, home, "id long, p long")

        def start(name: str, **options: Any) -> Any:
            query = data.writeStream.trigger(availableNow=True).toTable(
                name, format="delta", partitionBy="P", checkpointLocation=str(home / "at"), **options
            )
            query.awaitTermination(600)
            return query

        start("silver_events")
        table = DeltaTable.forName(spark, "silver_events")
        assert table.detail().collect()[0].partitionColumns == ["p"]
        operations = [row.operation for row in table.history().orderBy("version").collect()]
        assert operations == ["CREATE TABLE", "STREAMING UPDATE"]
        land(home, {"id": 2, "p": 0})
        start("silver_events")
        assert {tuple(row) for row in spark.table("silver_events").collect()} == {(1, 1), (2, 0)}

    def test_views_and_tables_of_other_formats_are_refused_by_spark(self, spark, home, path):
        spark.range(1).createOrReplaceTempView("silver_view")
        spark.sql("CREATE TABLE silver_events (id BIGINT) USING parquet")
        writer = landing(spark, home).writeStream.format("delta").option("checkpointLocation", str(home / "at"))
        for name in ("silver_view", "silver_events"):
            with pytest.raises(AnalysisException, match=name):
                writer.toTable(name)
        land(home, {"id": 1})
        query = writer.trigger(availableNow=True).toTable(f"delta.`{path}`")
        query.awaitTermination(600)
        assert ids(spark, path) == [1]


class TestOtherWriters:
    def test_the_files_of_a_batch_are_committed_again_where_another_wins(self, spark, path, monkeypatch):
        spark.range(10).coalesce(1).write.format("delta").save(path)
        write = sink.write_files
        runs = []

        def beaten(*arguments: Any, **named: Any) -> Any:
            adds = write(*arguments, **named)
            runs.append(adds)
            Table(path).delete("id = 3")
            return adds

        monkeypatch.setattr(sink, "write_files", beaten)
        request = sink_request("Complete", None, {}, {})
        version = write_batch(Table(path), "q", 0, spark.range(2), request)
        assert (version, len(runs)) == (2, 1)
        assert ids(spark, path) == [0, 1]

    def test_files_that_no_longer_fit_are_not_committed(self, spark, path, monkeypatch):
        spark.range(1).write.format("delta").save(path)
        write = sink.write_files

        def beaten(*arguments: Any, **named: Any) -> Any:
            adds = write(*arguments, **named)
            Table(path).add_constraint("small", "id < 10")
            return adds

        monkeypatch.setattr(sink, "write_files", beaten)
        with pytest.raises(MetadataChangedException):
            write_batch(Table(path), "q", 0, spark.range(20, 21), sink_request("append", None, {}, {}))
        assert ids(spark, path) == [0]

    def test_a_second_run_of_the_query_is_reported(self, spark, path, monkeypatch):
        spark.range(1).write.format("delta").save(path)
        write, request = sink.write_files, sink_request("append", None, {}, {})
        first = [True]

        def beaten(*arguments: Any, **named: Any) -> Any:
            adds = write(*arguments, **named)
            if first:
                first.clear()
                write_batch(Table(path), "q", 0, spark.range(7, 8), request)
            return adds

        monkeypatch.setattr(sink, "write_files", beaten)
        with pytest.raises(ConcurrentTransactionException):
            write_batch(Table(path), "q", 0, spark.range(7, 8), request)
        assert ids(spark, path) == [0, 7]
        assert write_batch(Table(path), "q", 0, spark.range(7, 8), request) is None


class TestForeachBatch:
    def test_merge_update_and_delete_of_a_batch_that_comes_twice_are_done_once(self, spark, home, path):
        spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, n BIGINT) USING delta")
        land(home, {"id": 1})
        land(home, {"id": 1})
        app = "spark.databricks.delta.write.txnAppId"
        number = "spark.databricks.delta.write.txnVersion"

        def upsert(frame: DataFrame, batch: int) -> None:
            session = frame.sparkSession
            table = DeltaTable.forPath(session, path)
            for _ in range(2):
                session.conf.set(app, "upserts")
                session.conf.set(number, str(batch))
                merge = table.alias("t").merge(frame.alias("s"), "t.id = s.id")
                merge.whenMatchedUpdate(set={"n": "t.n + 1"}).whenNotMatchedInsert(values={"id": "s.id", "n": "1"}).execute()
                session.conf.set(app, "updates")
                table.update(set={"n": "n + 10"})
                session.conf.set(app, "deletes")
                table.delete("id = 7")
                session.conf.unset(app)
                session.conf.unset(number)
                # Comes after the first run of the DELETE, so a second run would take it.
                session.sql(f"INSERT INTO delta.`{path}` VALUES (7, 7)")

        query = landing(spark, home).writeStream.foreachBatch(upsert).option("checkpointLocation", str(home / "at"))
        query.trigger(availableNow=True).start().awaitTermination(600)
        rows = sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())
        assert rows == [(1, 22), (7, 7), (7, 7)]
        assert {app: item.version for app, item in Table(path).snapshot().state.transactions.items()} == {
            "upserts": 1,
            "updates": 1,
            "deletes": 1,
        }

    def test_an_error_in_it_is_the_querys_and_reported_by_its_class(self, spark, home, path):
        spark.range(1).write.format("delta").save(path)
        land(home, {"id": 1})

        def fails(frame: DataFrame, _batch: int) -> None:
            frame.withColumn("more", sf.lit(1)).write.format("delta").mode("append").save(path)

        query = landing(spark, home).writeStream.foreachBatch(fails).option("checkpointLocation", str(home / "at")).start()
        with pytest.raises(StreamingQueryException, match="DELTA_METADATA_MISMATCH"):
            query.awaitTermination(600)


class TestTwoQueriesOnOneCheckpoint:
    def test_the_second_stops_the_first_or_is_refused_and_no_row_comes_twice(self, spark, home, path):
        land(home, {"id": 1})
        writer = landing(spark, home).writeStream.format("delta").option("checkpointLocation", str(home / "at"))
        first = writer.start(path)
        first.processAllAvailable()
        spark.conf.set("spark.sql.streaming.stopActiveRunOnRestart", "false")
        try:
            with pytest.raises(Exception, match="same id is already active"):
                writer.start(path)
        finally:
            spark.conf.unset("spark.sql.streaming.stopActiveRunOnRestart")
        assert first.isActive
        second = writer.start(path)
        assert not first.isActive and first.exception() is None
        land(home, {"id": 2})
        second.processAllAvailable()
        second.stop()
        assert second.exception() is None
        assert ids(spark, path) == [1, 2]
        assert json.loads((home / "at" / "metadata").read_text())["id"] == first.id


def test_columns_that_rows_lack_are_filled_in(spark: SparkSession, home: Path) -> None:
    path = str(home / "table")
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT, n BIGINT GENERATED ALWAYS AS IDENTITY, s STRING DEFAULT 'none') USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    for number in range(3):
        land(home, {"id": number * 2}, {"id": number * 2 + 1})
    run(landing(spark, home), home, path)
    rows = Table(path).to_arrow().to_pylist()
    assert [row["id"] for row in sorted(rows, key=lambda row: row["n"])] == list(range(6))
    assert {row["s"] for row in rows} == {"none"}
    assert len({row["n"] for row in rows}) == 6
