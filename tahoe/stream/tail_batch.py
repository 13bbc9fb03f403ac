"""The rows of a stream without Spark: `TailBatch`, one batch, and what gives one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.protocol.actions import AddFile
from tahoe.schema.arrow import to_arrow_schema
from tahoe.snapshot.changes import ChangedFile, changed_files, changed_rows, feed_schema
from tahoe.snapshot.scan import BareVersion, Scan
from tahoe.stream.position import Position
from tahoe.stream.source import Source
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["TailBatch", "changes_in", "tail"]


@dataclass(frozen=True)
class TailBatch:
    """Rows of a stream, and the place in the table after them. Nothing is read before rows are asked for.

    Args:
        position: to be stored (``str(position)``) when the rows are dealt with; `tail` goes on from there.
        files: that hold the rows; none where the stream only moved past commits that have none for it.
    """

    source: Source = field(repr=False)
    start: Position | None
    position: Position
    files: tuple[IndexedFile, ...] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Of the rows: the table's, and of a change feed with its three columns more."""
        schema = self.source.read.schema
        return to_arrow_schema(feed_schema(schema) if self.source.options.read_change_feed else schema)

    def to_batches(self) -> pa.RecordBatchReader:
        """The rows as a stream, file by file, in `schema`.

        Its reader raises `NotFound` where a file was vacuumed away, and `CorruptTable` where one cannot be read.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def to_arrow(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(self._batches(), self.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        read = self.source.read
        if self.source.options.read_change_feed:
            changed = changes_in(self.source, self.files)
            yield from changed_rows(read.store, read.config, self.source.times(self.files), changed)
            return
        # Each version apart, so that a file that cannot be read is told with the version that has it.
        for version, files in groupby(self.files, lambda file: file.version):
            scan = Scan(BareVersion(read.store, version, read.config))
            yield from scan.batches_of([file.action for file in files if isinstance(file.action, AddFile)])


def changes_in(source: Source, files: tuple[IndexedFile, ...]) -> list[ChangedFile]:
    """What files of a stream of changes say of rows; those of the initial snapshot hold rows that came."""
    changed = []
    for version, of_version in groupby(files, lambda file: file.version):
        actions = [file.action for file in of_version]
        # The rows of a snapshot came at some time or other, whatever their files were last written for.
        came = [replace(action, data_change=True) if isinstance(action, AddFile) else action for action in actions]
        changed += changed_files(came, version, source.read.config)
    return changed


def tail(source: Source, start: Position | None, clock: Clock, *, follow: bool, poll_seconds: float) -> Iterator[TailBatch]:
    """One batch after another, from a position on.

    Args:
        follow: whether to wait for further commits, or to end with what is in the table now.
        poll_seconds: how long to wait before looking again.
    """
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
