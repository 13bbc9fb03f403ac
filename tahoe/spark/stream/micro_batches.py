"""`MicroBatches`: answers Spark's calls to a source while a query runs, through `tahoe.stream.source.Source`.

Spark calls it on the query's own thread, one call after another; each query of a table has its own `MicroBatches`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tahoe.api.table import Table
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

__all__ = ["MicroBatches"]

_UNTOLD_MS = 60_000
_MOST_COMMITS = 256
"""The maximum number of commits to read ahead for the progress; the query reads them later anyway."""


class MicroBatches:
    """One table in one query.

    Args:
        spark: the session that read the table as a stream; the query runs in a copy of it.
        hadoop: reader options for Hadoop (``fs.…``).
        checkpoint: the query's folder for this source, which identifies it to the table.
        newest: the newest version of the table.
        tracking: the query's schema log for this source, if it keeps one.
        event_time: the column of the query's watermark, if the initial snapshot is read in its order.
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
        """Continue after a restart: all rows up to the position are processed."""
        self._source.resume(Position.parse(end))

    def prepare_for_available_now(self, _start: None, _end: None) -> None:
        """Read up to the current end of the table, and then stop."""
        self._end = self._source.end_now()

    def latest_offset(self, start: str | None, limit: str) -> str:
        """Return the end of the next batch; `start` itself if there are no new rows.

        Args:
            limit: ``all`` for no limit.
        """
        begin = None if start is None else Position.parse(start)
        end = self._source.plan(begin, UNLIMITED if limit == "all" else None, self._end)
        self._tell(self._source.read.version if begin is None else begin.version, is_idle=end == begin)
        # Spark compares offsets as text, and another writer may format the same position differently.
        return start if start is not None and end == begin else str(end)

    def _tell(self, version: int, *, is_idle: bool) -> None:
        """Record in the table which version is still to be read: periodically, and when all is read."""
        now = self._table.clock.now_ms()
        if self._told is not None and (version == self._told[0] or not (is_idle or now - self._told[1] > _UNTOLD_MS)):
            return
        record_stream(self._table.store, self._checkpoint, version)
        self._told = version, now

    def newest(self, _start: None, _end: None) -> str:
        """Return the position after the newest version that was read."""
        return str(Position(self._newest.metadata.id, self._newest.version + 1))

    def batch(self, start: str | None, end: str) -> JavaObject:
        """Return the rows between two positions."""
        places = None if start is None else Position.parse(start), Position.parse(end)
        return batch_frame(
            self._spark, self._source, self._source.files(*places), self._hadoop, self._source.bucket(*places)
        )._jdf

    def commit(self, _start: None, end: str) -> None:
        """Mark the rows up to the position as processed."""
        self._source.done(Position.parse(end))

    def metrics(self, consumed: str | None, _end: None) -> str:
        """Return the query's lag, for its progress: names and values, one per line.

        The query's version, the table's newest version, the number of versions that are not completely read, the age of the first of them,
        and the number of waiting files and bytes, if only some commits must be read for it.
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
        """Return the age of the first commit that is not completely read, by the storage's clock."""
        first = self._table.store.head(commit_name(position.version))
        return 0 if first is None else max(self._table.clock.now_ms() - first.modified_ms, 0)
