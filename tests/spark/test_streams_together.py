"""Streams beside other writers: a second process at the same checkpoint, UniForm, clustering and auto compaction, SQL."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import __version__ as SPARK_VERSION  # noqa: N812 - a constant
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tests.race.processes import REPOSITORY
from tests.race.stream_rival import query
from tests.spark.written import ids, info


class Rival:
    """The other process (`tests.race.stream_rival`)."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process, self.lines = process, queue.Queue[str]()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def shows(self) -> str:
        return self.lines.get(timeout=600)

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()


@contextmanager
def rival(folder: Path) -> Iterator[Rival]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.race.stream_rival"],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"folder": str(folder), "scratch": str(folder / "scratch")}) + "\n")
            process.stdin.flush()
            yield Rival(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def until(holds: Callable[[], bool], seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def land(folder: Path, first: int, rows: int = 3) -> None:
    Table(str(folder / "a")).append(pa.table({"id": range(first, first + rows)}))


def test_two_processes_at_one_checkpoint_write_every_row_once_and_one_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    target = str(tmp_path / "b")
    land(tmp_path, 0)
    with rival(tmp_path) as other:
        # Both are at batch 0, whose offsets are written: the other one has its files, and this one commits.
        assert other.shows() == "halted"
        mine = query(spark, str(tmp_path))
        mine.processAllAvailable()
        assert ids(spark, target) == [0, 1, 2]
        other.go_on()
        reported = other.shows()
        assert "DELTA_CONCURRENT_TRANSACTION" in reported and "two runs share a checkpoint" in reported, reported
        assert ids(spark, target) == [0, 1, 2]
        # Both run, and wait for rows: the second one to write the offsets of the next batch fails.
        assert other.shows() == "running"
        for batch in (1, 2, 3):
            land(tmp_path, 3 * batch)
        until(lambda: not mine.isActive or not other.lines.empty())
        if mine.isActive:
            reported = other.shows()
            mine.processAllAvailable()
            mine.stop()
        else:
            reported = str(mine.exception())
            until(lambda: len(ids(spark, target)) >= 12)
            other.go_on()
            assert other.shows() == "None"
    # Spark's own words: the file was there, or came while it was being written.
    assert "CONCURRENT_STREAM_LOG_UPDATE" in reported or "Multiple streaming queries are concurrently using" in reported, reported
    assert ids(spark, target) == list(range(12))
    commits = [info(target, version)["operationParameters"]["epochId"] for version in range(Table(target).version() + 1)]
    assert sorted(map(int, commits)) == list(range(len(commits)))


def written(rows: Any, folder: Path, path: str) -> Any:
    writer = rows.writeStream.format("delta").option("checkpointLocation", str(folder / "at"))
    started = writer.trigger(availableNow=True).start(path)
    started.awaitTermination(600)
    return started


def batches(spark: SparkSession, folder: Path) -> Any:
    return spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(str(folder / "a"))


def test_uniform_lags_behind_a_stream_and_catches_up(spark: SparkSession, path: str, tmp_path: Path, monkeypatch: Any) -> None:
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.universalFormat.enabledFormats' = 'iceberg', 'delta.enableIcebergCompatV2' = 'true')"
    )
    table = Table(path)
    table.uniform.wait()
    before = table.version()
    for number in range(3):
        land(tmp_path, 3 * number)
    with monkeypatch.context() as patched:
        # No conversion begins while the stream runs.
        patched.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_, **__: None)
        written(batches(spark, tmp_path), tmp_path, path)
    status = table.uniform.status()
    assert (status.delta_version, status.iceberg_version, status.lag_versions) == (before + 3, before, 3)
    assert status.lag_seconds is not None and status.lag_seconds > 0
    # The next batch brings the commits that lagged with it, in one conversion.
    land(tmp_path, 9)
    written(batches(spark, tmp_path), tmp_path, path)
    status = table.uniform.wait()
    assert (status.iceberg_version, status.lag_versions, status.lag_seconds) == (before + 4, 0, 0.0)
    assert table.to_arrow().num_rows == 12


def test_a_stream_makes_a_clustered_table_that_the_sessions_auto_compaction_clusters(
    spark: SparkSession, path: str, tmp_path: Path
) -> None:
    prefix = "spark.databricks.delta.autoCompact."
    settings = {"enabled": "true", "minNumFiles": "3"}
    for number in range(3):
        land(tmp_path, 3 * number)
    for name, value in settings.items():
        spark.conf.set(prefix + name, value)
    try:
        rows = batches(spark, tmp_path).selectExpr("id", "id % 2 p")
        writer = rows.writeStream.clusterBy("p").format("delta").option("checkpointLocation", str(tmp_path / "at"))
        writer.trigger(availableNow=True).start(path).awaitTermination(600)
    finally:
        for name in settings:
            spark.conf.unset(prefix + name)
    table = Table(path)
    assert table.detail()["clusteringColumns"] == ["p"]
    assert [item["operation"] for item in table.history()][::-1] == [*["STREAMING UPDATE"] * 3, "OPTIMIZE"]
    assert info(path, 3)["operationParameters"]["auto"] is True
    assert json.loads(info(path, 3)["operationParameters"]["clusterBy"]) == ["p"]
    assert table.files().num_rows == 1 and ids(spark, path) == list(range(9))
    # Another stream goes on in that table, and may not ask for other columns.
    land(tmp_path, 9)
    again = batches(spark, tmp_path).selectExpr("id", "id % 2 p").writeStream.clusterBy("id").format("delta")
    with pytest.raises(Exception, match="DELTA_CLUSTERING_COLUMNS_MISMATCH"):
        again.option("checkpointLocation", str(tmp_path / "at")).trigger(availableNow=True).start(path).awaitTermination(600)
    assert table.version() == 3


def streamed(frame: Any, folder: Path, at: str) -> list[int]:
    """The column ``id`` of all that a streaming DataFrame gives."""
    frame.select("id").writeStream.format("delta").option("checkpointLocation", str(folder / at)).trigger(
        availableNow=True
    ).start(str(folder / f"{at}.out")).awaitTermination(600)
    return ids(frame.sparkSession, str(folder / f"{at}.out"))


WRITES, MAKES = "INSERT cannot .*writeStream", "view cannot .*createOrReplaceTempView"
NOT_QUERIES = {
    "INSERT INTO from_stream SELECT * FROM STREAM from_stream": WRITES,
    "insert overwrite from_stream with s as (select * from stream(from_stream)) select * from s": WRITES,
    "CREATE TABLE no_such USING delta AS SELECT * FROM STREAM from_stream": "CREATE cannot",
    "DELETE FROM from_stream WHERE id IN (SELECT id FROM STREAM from_stream)": "DELETE cannot",
    "CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM from_stream": MAKES,
    "CREATE OR REPLACE VIEW v AS SELECT * FROM STREAM from_stream": MAKES,
}


@pytest.mark.skipif(SPARK_VERSION < "4.1", reason="FROM STREAM came with Spark 4.1")
def test_a_query_in_sql_reads_tables_as_streams_by_name_and_path(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("CREATE TABLE from_stream (id BIGINT) USING delta")
    try:
        for first in (0, 3):
            spark.range(first, first + 3).write.format("delta").mode("append").saveAsTable("from_stream")
        path = spark.sql("DESCRIBE DETAIL from_stream").first().location
        both = f"SELECT x.id FROM STREAM(from_stream) x UNION ALL SELECT id + 10 FROM STREAM delta.`{path}` WITH (startingVersion = 2)"
        assert spark.sql(both).isStreaming
        assert streamed(spark.sql(both), tmp_path, "both") == [0, 1, 2, 3, 4, 5, 13, 14, 15]
        named = "WITH s AS (SELECT from_stream.id FROM STREAM from_stream WHERE id > 1) SELECT s.id FROM s JOIN from_stream t ON s.id = t.id"
        assert streamed(spark.sql(named), tmp_path, "named") == [2, 3, 4, 5]
        with pytest.raises(InvalidRequest, match="DELTA_ILLEGAL_OPTION"):
            spark.sql("SELECT * FROM STREAM from_stream WITH (startingVersion = 'soon')")
        # A word of that name is no stream.
        assert spark.sql("SELECT stream.id FROM from_stream AS stream").count() == 6
        for statement, instead in NOT_QUERIES.items():
            with pytest.raises(Unsupported, match=instead) as caught:
                spark.sql(statement)
            assert caught.value.code == "TAHOE_STREAM_IN_STATEMENT"
        with pytest.raises(AnalysisException, match=r"writeStream\.start"):  # Spark's error for its own streams
            spark.sql("FROM STREAM from_stream INSERT INTO from_stream SELECT *")
        assert spark.table("from_stream").count() == 6
    finally:
        spark.sql("DROP TABLE from_stream")
