"""A table's stream without Spark: `TailBatch`, one batch of rows, and the generator of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.method_options import values_of
from tahoe.log.history import parse_timestamp
from tahoe.protocol.actions import AddFile
from tahoe.schema.arrow import to_arrow_schema
from tahoe.snapshot.changes import ChangedFile, changed_files, changed_rows, feed_schema
from tahoe.snapshot.scan import BareVersion, Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.position import Position
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import IndexedFile
from tahoe.stream.tail_options import FollowOptions, TailOptions


@dataclass(frozen=True)
class TailBatch:
    """A batch of rows, and the position after them. Reads nothing until rows are requested.

    Args:
        position: store it (``str(position)``) after processing the rows; `tail` continues from it.
        files: the files with the rows; empty if the stream only skipped commits without rows for it.
    """

    source: Source = field(repr=False)
    start: Position | None
    position: Position
    files: tuple[IndexedFile, ...] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows: the table's, with three more columns for a change feed."""
        schema = self.source.read.schema
        return to_arrow_schema(feed_schema(schema) if self.source.options.read_change_feed else schema)

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, file by file, in `schema`.

        The reader raises `NotFound` if a file was vacuumed, and `CorruptTable` if one cannot be read.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(self._batches(), self.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        read = self.source.read
        if self.source.options.read_change_feed:
            changed = changes_in(self.source, self.files)
            yield from changed_rows(read.store, read.config, self.source.times(self.files), changed)
            return
        # Each version separately, so that the error for an unreadable file names its version.
        for version, files in groupby(self.files, lambda file: file.version):
            scan = Scan(BareVersion(read.store, version, read.config))
            yield from scan.batches_of([file.action for file in files if isinstance(file.action, AddFile)])


def changes_in(source: Source, files: tuple[IndexedFile, ...]) -> list[ChangedFile]:
    """Return the row changes of a change stream's files; files of the initial snapshot contain inserted rows."""
    changed = []
    for version, of_version in groupby(files, lambda file: file.version):
        actions = [file.action for file in of_version]
        # All rows of a snapshot count as inserted, whatever their files were last written for.
        came = [replace(action, data_change=True) if isinstance(action, AddFile) else action for action in actions]
        changed += changed_files(came, version, source.read.config)
    return changed


def tail(source: Source, start: Position | None, clock: Clock, *, follow: bool, poll_seconds: float) -> Iterator[TailBatch]:
    """Yield one batch after another, from a position on.

    Args:
        follow: whether to wait for further commits, or to end with the table's current content.
        poll_seconds: how long to wait before checking again.
    """
    if start is not None:
        source.resume(start)
    end = None if follow else source.end_now()
    while True:
        position = source.plan(start, up_to=end)
        if position != start:
            yield TailBatch(source, start, position, tuple(source.files(start or source.begin, position)))
            start = position
        elif not follow:
            return
        else:
            clock.sleep(poll_seconds)


def tail_of(newest: Callable[[], Snapshot], options: TailOptions, clock: Clock, time_zone: str) -> Iterator[TailBatch]:
    """Return the batches of `Table.tail`.

    Args:
        newest: returns the newest version.
        time_zone: of a timestamp without one.
    """
    started_ms = None if options.from_timestamp is None else parse_timestamp(options.from_timestamp, time_zone)
    source_options = SourceOptions(
        starting_version=options.from_version, starting_timestamp_ms=started_ms, **values_of(options, FollowOptions)
    )
    start = Position.parse(options.position) if isinstance(options.position, str) else options.position
    source = Source(newest(), newest, source_options)
    return tail(source, start, clock, follow=options.follow, poll_seconds=options.poll_seconds)
