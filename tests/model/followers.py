"""Readers that follow a table as a stream while it changes, and the rows that they must see according to the model.

The log's file, read as plain JSON, decides the kind of a commit for a stream; the rows of the model decide its rows. So nothing
of `tahoe.stream` is on both sides of the comparison.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.log.files.paths import commit_name
from tahoe.stream.position import BASE_INDEX, Position
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import IndexedFile
from tahoe.stream.tail_batch import TailBatch
from tahoe.testing.modelled_table import ModelledTable
from tahoe.testing.row_model import Row, counted, rows_of
from tahoe.testing.table_laws import SIGNS

__all__ = ["KINDS", "Feed", "Follower"]

KINDS = {
    "plain": SourceOptions(),
    "deletes passed over": SourceOptions(ignore_deletes=True),
    "changes passed over": SourceOptions(skip_change_commits=True),
    "changes told again": SourceOptions(ignore_changes=True),
}
_DELETES, _CHANGES = "DELTA_SOURCE_IGNORE_DELETE", "DELTA_SOURCE_TABLE_IGNORE_CHANGES"
_MOST_KEPT = 8


@dataclass(frozen=True)
class ReadBatch:
    """A batch that was read: it must be the same whenever it is read again."""

    start: Position
    end: Position
    files: tuple[IndexedFile, ...]


class Follower:
    """A stream of a table's rows.

    Args:
        options: one of `KINDS`, maybe with limits and a start.
    """

    def __init__(self, table: ModelledTable, options: SourceOptions) -> None:
        self.table, self.options = table, options
        self.begin()

    def begin(self) -> None:
        """A new stream, which has not read anything."""
        self.source = self.new_source()
        self.first = self.source.begin.version
        # A reader of future commits stores its offset before the first of them.
        self.position = self.source.plan(None) if self.options.starting_version == "latest" else None
        self.seen = self.expected = self.before_all()
        self.told_to = self.first
        self.read_batches: list[ReadBatch] = []
        self.has_stopped = False

    def new_source(self) -> Source:
        session = self.table.session()
        return Source(session.snapshot(), session.snapshot, self.options)

    def starts_again(self) -> None:
        """From its position, as text, in a session that knows nothing."""
        if self.position is None:
            self.begin()
            return
        self.source, self.position = self.new_source(), Position.parse(str(self.position))

    def read(self, most_batches: int | None = None) -> None:
        """Read some batches, or all that there is; stop where the model says that it must."""
        read = 0
        while not self.has_stopped and (most_batches is None or read < most_batches):
            try:
                end = self.source.plan(self.position)
            except InvalidRequest as error:
                self.stop(error)
                return
            if end == self.position:
                self.check_whole()
                newest = len(self.table.versions) - 1
                assert end.version == newest + 1 and self.is_whole(end), (end, newest)
                return
            start = self.position or self.source.begin
            batch = TailBatch(self.source, self.position, end, tuple(self.source.files(start, end)))
            self.keep(ReadBatch(start, end, batch.files))
            self.take(batch)
            self.position = end
            read += 1
            self.check_whole()

    def stop(self, error: InvalidRequest) -> None:
        """It stops where the model says, and has given all that comes before."""
        where = self.position or self.source.begin
        assert self.position is None or self.is_whole(where), where
        self.check_whole()
        assert self.stop_at(where.version) == error.code, (where, error)
        self.has_stopped = True

    def keep(self, batch: ReadBatch) -> None:
        assert batch.start < batch.end or not batch.files
        limit = self.options.max_files_per_trigger
        assert limit is None or len(batch.files) <= limit or self.options.read_change_feed
        self.read_batches = [*self.read_batches[-_MOST_KEPT:], batch]

    def check_again(self) -> None:
        """Every later reader gets the same rows."""
        source = self.new_source()
        for batch in self.read_batches:
            again = source.files(batch.start, batch.end)
            assert _reported(again) == _reported(batch.files), batch

    @staticmethod
    def is_whole(position: Position) -> bool:
        """Whether it lies between two versions."""
        return position.index == BASE_INDEX and not position.is_initial_snapshot

    # ---- expected rows
    def before_all(self) -> Counter[Row]:
        return Counter()

    def take(self, batch: TailBatch) -> None:
        self.seen = self.seen + counted(rows_of(batch.to_arrow()))

    def check_whole(self) -> None:
        """Compare the rows seen so far with the model, if the offset is between two versions."""
        if self.position is None or not self.is_whole(self.position):
            return
        for version in range(self.told_to, self.position.version):
            assert self.stop_at(version) is None, version
            self.expected = self.expected + self.brought(version)
        self.told_to = self.position.version
        if self.options.ignore_changes:
            newest = counted(self.table.versions[self.told_to - 1]) if self.options.starting_version is None else Counter()
            assert not newest - self.seen, self.told_to
            assert not self.expected - self.seen, self.told_to
        else:
            assert self.seen == self.expected, self.told_to

    def brought(self, version: int) -> Counter[Row]:
        """The rows that the stream must give for a version, of commits that only append."""
        rows = counted(self.table.versions[version])
        if version == self.first and self.options.starting_version is None:
            return rows
        before = counted(self.table.versions[version - 1]) if version else Counter[Row]()
        if self.commit_kind(version) != "appends":
            return Counter()
        assert not before - rows, f"version {version} has no remove, and rows went"
        return rows - before

    def stop_at(self, version: int) -> str | None:
        """The error that a stream stops with at a version."""
        if version == self.first and self.options.starting_version is None:
            return None
        kind = self.commit_kind(version) if version < len(self.table.versions) else "appends"
        if kind == "appends" or self.options.ignore_changes or self.options.skip_change_commits:
            return None
        if kind == "changes":
            return _CHANGES
        return None if self.options.ignore_deletes else _DELETES

    def commit_kind(self, version: int) -> str:
        """Whether a commit ``appends``, ``deletes`` or ``changes``, according to its file actions."""
        lines = [json.loads(line) for line in self.table.store.get(commit_name(version)).splitlines()]
        adds = [line["add"] for line in lines if "add" in line and line["add"]["dataChange"]]
        if not any("remove" in line and line["remove"]["dataChange"] for line in lines):
            return "appends"
        return "changes" if adds else "deletes"


class Feed(Follower):
    """A stream of a table's changes: applied one after another they make the table at each version."""

    def before_all(self) -> Counter[Row]:
        version = self.options.starting_version
        if version is None or version == "latest":
            return Counter() if version is None else counted(self.table.rows)
        assert isinstance(version, int)
        return counted(self.table.versions[version - 1]) if version else Counter()

    def take(self, batch: TailBatch) -> None:
        now = Counter(self.seen)
        changes: list[dict[str, Any]] = batch.to_arrow().to_pylist()
        at = None
        for change in changes:
            assert at is None or at <= change["_commit_version"], "versions are told in order"
            if at is not None and at < change["_commit_version"]:
                self.check_version(now, at)
            at = change["_commit_version"]
            now[(change["k"], change["p"], change["v"])] += SIGNS[change["_change_type"]]
        self.seen = Counter({row: count for row, count in now.items() if count})

    def check_version(self, rows: Counter[Row], version: int) -> None:
        """After the last change of a version, whatever follows in the batch."""
        assert {row: count for row, count in rows.items() if count} == counted(self.table.versions[version]), version

    def check_whole(self) -> None:
        """After all versions before the position."""
        if self.position is None or not self.is_whole(self.position):
            return
        for version in range(self.told_to, self.position.version):
            assert self.stop_at(version) is None, version
        self.told_to = self.position.version
        before = self.told_to - 1
        if before >= self.first:
            self.check_version(self.seen, before)

    def stop_at(self, version: int) -> str | None:
        """A feed stops at the first version that keeps none."""
        is_on = version >= len(self.table.versions) or self.table.feed_is_on[version]
        return None if is_on else "DELTA_MISSING_CHANGE_DATA"


def _reported(files: Sequence[IndexedFile]) -> list[tuple[Any, ...]]:
    """The members that determine the rows of a file; a checkpoint has fewer members of a file than its commit."""
    return [(file.version, file.index, type(file.action), file.action.path, _vector(file.action)) for file in files]


def _vector(action: Any) -> Any:
    return getattr(action, "deletion_vector", None)
