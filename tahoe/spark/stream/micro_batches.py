"""`MicroBatches`: what Spark asks of a source while a query runs, answered by `tahoe.stream.source.Source`.

Spark asks on the query's own thread, one question after another; several queries of one table have a `MicroBatches` each.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tahoe.log.files.paths import commit_name
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.stream.batch_frames import batch_frame
from tahoe.store.stream_records import record_stream
from tahoe.stream.admission import UNLIMITED
from tahoe.stream.position import Position
from tahoe.stream.schema_tracking import SchemaTracking
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.table import Table

__all__ = ["MicroBatches"]

_UNTOLD_MS = 60_000
_MOST_COMMITS = 256
"""Ahead of a query that are read to tell what waits there; to be read they are anyway."""


class MicroBatches:
    """One table in one query.

    Args:
        spark: the session that read the table as a stream; the query runs in a copy of it.
        hadoop: options of the reader for Hadoop (``fs.…``).
        checkpoint: the query's folder for this source, by which the table knows it.
        newest: version of the table.
        tracking: the query's schema log for this source, if it keeps one.
        event_time: the column of the query's watermark, where the initial snapshot is read by it.
    """

    def __init__(
        self,
        spark: SparkSession,
        table: Table,
        options: SourceOptions,
        hadoop: Mapping[str, str],
        checkpoint: str,
        newest: Snapshot,
        tracking: SchemaTracking | None,
        event_time: str | None,
    ) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._told: tuple[int, int] | None = None
        self._table = table
        self._hadoop = hadoop
        self._newest = newest
        self._source = Source(newest, self._look, options, tracking, event_time)
        self._end: Position | None = None

    @property
    def read(self) -> Snapshot:
        """The version whose schema all rows have."""
        return self._source.read

    def _look(self) -> Snapshot:
        self._newest = self._table.snapshot()
        return self._newest

    def resume(self, _start: None, end: str) -> None:
        """The query is started again, and all up to there is done."""
        self._source.resume(Position.parse(end))

    def prepare_for_available_now(self, _start: None, _end: None) -> None:
        """The query runs up to what is in the table now, and stops then."""
        self._end = self._source.end_now()

    def latest_offset(self, start: str | None, limit: str) -> str:
        """How far the next batch goes; `start` itself where there is nothing.

        Args:
            limit: ``all`` for all that there is.
        """
        begin = None if start is None else Position.parse(start)
        end = self._source.plan(begin, UNLIMITED if limit == "all" else None, self._end)
        self._tell(self._source.read.version if begin is None else begin.version, is_idle=end == begin)
        # Spark compares offsets by their text, and another writer's text of one position may be another.
        return start if start is not None and end == begin else str(end)

    def _tell(self, version: int, *, is_idle: bool) -> None:
        """Let the table know which version is still to be read: once in a while, and when all is read."""
        now = self._table.clock.now_ms()
        if self._told is not None and (version == self._told[0] or not (is_idle or now - self._told[1] > _UNTOLD_MS)):
            return
        record_stream(self._table.store, self._checkpoint, version)
        self._told = version, now

    def newest(self, _start: None, _end: None) -> str:
        """The position after all that the last look at the log found."""
        return str(Position(self._newest.metadata.id, self._newest.version + 1))

    def batch(self, start: str | None, end: str) -> JavaObject:
        """The rows between two positions."""
        places = None if start is None else Position.parse(start), Position.parse(end)
        return batch_frame(
            self._spark, self._source, self._source.files(*places), self._hadoop, self._source.bucket(*places)
        )._jdf

    def commit(self, _start: None, end: str) -> None:
        """The rows up to there are dealt with."""
        self._source.done(Position.parse(end))

    def metrics(self, consumed: str | None, _end: None) -> str:
        """How far behind the query is, for its progress: names and values, a line each.

        The version that it has come to, the table's newest, how many versions it has not read whole, for how long the first of them has
        been there, and how many files and bytes wait, where that can be told without reading more than some commits.
        """
        if consumed is None:
            return ""
        position, newest = Position.parse(consumed), self._newest.version
        is_whole = position.index < 0 and not position.is_initial_snapshot
        behind = max(newest - position.version + 1, 0)
        told = {
            "version": position.version - 1 if is_whole else position.version,
            "newestVersion": newest,
            "versionsBehind": behind,
            "millisecondsBehind": self._milliseconds_behind(position) if behind else 0,
        }
        waiting = self._source.waiting(position, newest, _MOST_COMMITS)
        if waiting is not None:
            told |= {"numFilesOutstanding": waiting.files, "numBytesOutstanding": waiting.bytes}
        return "\n".join(f"{name}\n{value}" for name, value in told.items())

    def _milliseconds_behind(self, position: Position) -> int:
        """For how long the first commit that is not read whole has been there, by the storage's clock."""
        first = self._table.store.head(commit_name(position.version))
        return 0 if first is None else max(self._table.clock.now_ms() - first.modified_ms, 0)
