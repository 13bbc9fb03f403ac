"""`MicroBatches`: answers Spark's calls to a source while a query runs, through `tahoe.stream.source.Source`.

Spark calls it on the query's own thread, one call after another; each query of a table has its own `MicroBatches`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.log.files.paths import commit_name
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.names.settings import is_on
from tahoe.spark.stream.batch_frames import batch_frame
from tahoe.spark.stream.schema_logs import tracking_of
from tahoe.spark.stream.stream_options import with_ignored_changes
from tahoe.store.stream_records import record_stream
from tahoe.stream.admission import UNLIMITED
from tahoe.stream.position import Position
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions

_RECORD_INTERVAL_MS = 60_000
_MOST_COMMITS = 256
"""The maximum number of commits to read ahead for the progress; the query reads them later anyway."""


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A table that ``spark.readStream`` reads.

    Args:
        spark: the session that read the table as a stream; the queries run in copies of it.
        hadoop: reader options for Hadoop (``fs.…``).
    """

    spark: SparkSession
    table: Table
    options: SourceOptions
    hadoop: Mapping[str, str]


class MicroBatches:
    """One table in one query.

    Args:
        checkpoint: the query's folder for this source, which identifies it to the table.
        event_time: the column of the query's watermark, if the initial snapshot is read in its order.
        is_completed: returns whether the last batch in the query's checkpoint is completed.

    Raises: the errors of `tahoe.spark.stream.schema_logs.tracking_of`.
    """

    def __init__(
        self, streamed: StreamedTable, checkpoint: str, event_time: str | None, is_completed: Callable[[], bool]
    ) -> None:
        self._streamed, self._checkpoint, self._is_completed = streamed, checkpoint, is_completed
        self._newest = streamed.table.snapshot()
        options = with_ignored_changes(streamed.options, partial(is_on, streamed.spark))
        tracking = tracking_of(streamed.spark, self._newest, options, streamed.hadoop, checkpoint)
        self._source = Source(self._newest, self._look, options, tracking, event_time)
        self._end: Position | None = None
        self._has_planned = False
        self._recorded: tuple[int, int] | None = None

    @property
    def read(self) -> Snapshot:
        """The version whose schema all rows have."""
        return self._source.read

    def _look(self) -> Snapshot:
        self._newest = self._streamed.table.snapshot()
        return self._newest

    def prepare_for_available_now(self, _start: None, _end: None) -> None:
        """Read up to the current end of the table, and then stop."""
        self._end = self._source.end_now()

    def latest_offset(self, start: str | None, limit: str) -> str:
        """Return the end of the next batch; `start` itself if there are no new rows.

        Args:
            limit: ``all`` for no limit.
        """
        self._has_planned = True
        begin = None if start is None else Position.parse(start)
        end = self._source.plan(begin, UNLIMITED if limit == "all" else None, self._end)
        self._record(self._source.read.version if begin is None else begin.version, is_idle=end == begin)
        # Spark compares offsets as text, and another writer may format the same position differently.
        return start if start is not None and end == begin else str(end)

    def _record(self, version: int, *, is_idle: bool) -> None:
        """Record in the table which version is still to be read: periodically, and when all is read."""
        now, recorded = self._streamed.table.clock.now_ms(), self._recorded
        if recorded is not None and (version == recorded[0] or not (is_idle or now - recorded[1] > _RECORD_INTERVAL_MS)):
            return
        record_stream(self._streamed.table.store, self._checkpoint, version)
        self._recorded = version, now

    def newest(self, _start: None, _end: None) -> str:
        """Return the position after the newest version that was read."""
        return str(Position(self._newest.metadata.id, self._newest.version + 1))

    def batch(self, start: str | None, end: str) -> JavaObject | None:
        """Return the rows between two positions; None for a completed batch, which a restarted query requests once and ignores.

        The commits of that batch may be gone by now, and it may be a whole table. All other requests follow a call of `latest_offset`, or
        are for a batch that was planned before the restart, but not completed.
        """
        first, last = None if start is None else Position.parse(start), Position.parse(end)
        if not self._has_planned and self._is_completed():
            self._source.resume(last)
            return None
        files, bucket = self._source.files(first, last), self._source.bucket(first, last)
        return batch_frame(self._streamed.spark, self._source, files, self._streamed.hadoop, bucket)._jdf

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
        lag = {
            "version": position.version - 1 if is_whole else position.version,
            "newestVersion": newest,
            "versionsBehind": behind,
            "millisecondsBehind": self._milliseconds_behind(position) if behind else 0,
        }
        waiting = self._source.waiting(position, newest, _MOST_COMMITS)
        if waiting is not None:
            lag |= {"numFilesOutstanding": waiting.files, "numBytesOutstanding": waiting.bytes}
        return "\n".join(f"{name}\n{value}" for name, value in lag.items())

    def _milliseconds_behind(self, position: Position) -> int:
        """Return the age of the first commit that is not completely read, by the storage's clock."""
        table = self._streamed.table
        first = table.store.head(commit_name(position.version))
        return 0 if first is None else max(table.clock.now_ms() - first.modified_ms, 0)
