"""`Source`: a table as a stream, with the three operations that every reader needs.

    source.end_now()                 the table's current end: the end of a run that stops by itself (`Trigger.AvailableNow`)
    source.plan(start, limits)       the end of the next batch
    source.files(start, end)         the files of the batch

The files between two positions never change, so a batch that is read again after a crash is the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tahoe.base.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.log.commit_identity import no_in_commit_timestamp
from tahoe.log.commit_times import in_commit_timestamps_from
from tahoe.log.files.paths import commit_name
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.changes import check_feed_is_on
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.admission import UNLIMITED, Limits, Room
from tahoe.stream.commit_reader import CommitReader
from tahoe.stream.event_time_order import Bucket, EventTimeOrder, check_no_order
from tahoe.stream.position import (
    METADATA_CHANGE_INDEX,
    POST_METADATA_CHANGE_INDEX,
    Position,
    check_moves_on,
    check_same_table,
)
from tahoe.stream.schema_changes import ReadSchema
from tahoe.stream.schema_tracking import SchemaTracking, barrier_after, barrier_before
from tahoe.stream.source_options import IgnoredChanges, SourceOptions
from tahoe.stream.streamed_commit import IndexedFile, InitialFiles, StreamedCommit, without_vanished


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unread files of a stream, and their bytes."""

    files: int
    bytes: int


class Source:
    """One table, read as a stream with one schema.

    Args:
        read: the version whose schema all rows have; also the initial snapshot if the options set no start.
        newest: returns the newest version of the table.
        options: the reader's options.
        tracking: the stream's schema log, which then provides the schema; None for a stream without one.
        event_time: the event time column of the initial snapshot; None to read it file by file. With it, readers of a batch's files
            must also filter by its `bucket`.
    """

    def __init__(
        self,
        read: Snapshot,
        newest: Callable[[], Snapshot],
        options: SourceOptions,
        tracking: SchemaTracking | None = None,
        event_time: str | None = None,
    ) -> None:
        self._at_start = read
        self._tracking = tracking
        self.read = read if tracking is None else tracking.read_with(read)
        self.options = options
        self.store = read.store
        self._newest = newest
        # If the schema is not tracked.
        self._read_as = ReadSchema(read.config, read.version, options.has_start, options.ignored_changes)
        self._commits = CommitReader(read.store, options, self._check_metadata)
        self._is_checked = False
        self._seen: Snapshot | None = None
        self._initial: tuple[Snapshot, InitialFiles] | None = None
        self._order = None if event_time is None else EventTimeOrder(self.read.config, event_time)

    @cached_property
    def begin(self) -> Position:
        """The start of a stream without a position: constant for this object.

        Raises:
            NotFound: ``DELTA_VERSION_NOT_FOUND`` and ``DELTA_TIMESTAMP_GREATER_THAN_COMMIT`` if the log has no such version.
        """
        version = self.options.starting_version
        if version == "latest":
            return self.end_now()
        if self._starts_late():
            return self.end_now()
        if self.options.starting_timestamp_ms is not None:
            version = self.latest().times.first_version_from(self.options.starting_timestamp_ms)
        if version is None:
            return Position(self.read.metadata.id, self.read.version, is_initial_snapshot=True)
        if self.store.head(commit_name(version)) is None:
            raise NotFound(
                f"The commit of version {version} is not in the log of table {self.store.url}, whose newest version is "
                f"{self.latest().version}: it was cleaned up, or does not exist yet. Start at another version, or without one.",
                code="DELTA_VERSION_NOT_FOUND",
                table=self.store.url,
                version=version,
            )
        return self._before(version)

    def _starts_late(self) -> bool:
        """Return whether the start is after the newest commit, and may be."""
        options = self.options
        if not options.may_start_late:
            return False
        if options.starting_timestamp_ms is None:
            return options.starting_version == self.latest().version + 1
        newest = self.latest().times.latest
        return newest is not None and options.starting_timestamp_ms > newest.timestamp_ms

    def latest(self) -> Snapshot:
        """Return the newest version. Raises `InvalidRequest` if the table was replaced by another one."""
        snapshot = self._newest()
        check_same_table(self.read.metadata.id, snapshot.metadata.id, self.store.url)
        self._seen = snapshot
        return snapshot

    def end_now(self) -> Position:
        """Return the position after the table's current content. Does not check the commits: errors stop the stream when it reaches
        them."""
        return self._before(self.latest().version + 1)

    def resume(self, done: Position) -> None:
        """Resume a stream from a position, maybe with another schema: rows already read and rows to come must be compatible.

        Raises: like `plan`, if the table is another one, or has lost or renamed a column since.
        """
        done.check_table(self.read.metadata.id, self.store.url)
        version = _last_read(done)
        if self._tracking is not None and not self._tracking.has_begun:
            self._begin_tracking(max(version, 0))
        if 0 <= version <= self.latest().version:
            self._check_version(version)

    def done(self, end: Position) -> None:
        """Mark a batch as done.

        Raises `InvalidRequest` (``DELTA_STREAMING_METADATA_EVOLUTION``) if the stream tracks the schema and reaches a change: it is in
        the log now, and the stream must be restarted.
        """
        if self._tracking is not None and end.index in (METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX):
            self._tracking.evolve(self._commits.read(end.version), self.read.config)

    def plan(self, start: Position | None, limits: Limits | None = None, up_to: Position | None = None) -> Position:
        """Return the end of the batch after `start`; `start` itself if there is nothing new.

        Args:
            start: None for a new stream. A stream that starts with ``latest`` first returns its start, so that the stored position
                records it.
            limits: the limits of the batch; None for those of the options.
            up_to: the position not to exceed (`end_now`).

        A commit that stops the stream raises when a batch would begin with it; the batch before it ends there.

        Raises:
            InvalidRequest: another table, or a commit that a stream with these options cannot read past: see
                `tahoe.stream.streamed_commit` and `tahoe.stream.schema_changes`.
            NotFound: commits are missing (``DELTA_MISSING_FILES_UNEXPECTED_VERSION``, ``DELTA_STREAMING_TRAILING_COMMIT_MISSING``).
        """
        begin = where = start or self.begin
        newest = self.latest().version  # read second: it must not be older than the start
        self._check_start(begin, newest)
        if self._tracking is not None:
            if not self._tracking.has_begun:
                self._begin_tracking(min(begin.version, newest))
            barrier = barrier_after(begin)
            if barrier is not None:
                return barrier
            # Spark reports late that a batch is done: if the query was killed before, neither the source nor the log knows.
            self.done(begin)
        if start is None and self.options.starting_version == "latest":
            return where
        room = (self.options.limits if limits is None else limits).room
        if where.is_initial_snapshot:
            where, room, is_done = self._plan_initial(where, room, up_to)
            if not is_done:
                return where
        else:
            self._initial = None  # the stream is past it
        return self._plan_commits(begin, where, room, newest, up_to)

    def files(self, start: Position | None, end: Position) -> list[IndexedFile]:
        """Return the files after `start`, up to and including `end`.

        Args:
            start: None for the first batch of a stream.

        Raises: like `plan`; `NotFound` (``DELTA_FILE_NOT_FOUND``) if a file is missing from storage and the options do not skip it.
        """
        end.check_table(self.read.metadata.id, self.store.url)
        where = start or self._begin_of(end)
        check_moves_on(where, end)
        if not where < end:
            return []
        self._check_start(where, end.version)
        self._check_order(end)
        if self._tracking is not None and not self._tracking.has_begun:
            self._begin_tracking(max(_last_read(end), where.version), since=where.version)
        files_between = []
        if where.is_initial_snapshot:
            files = self._initial_files(where.version)
            inside = end.is_initial_snapshot and end.version == where.version
            if self._order is not None:
                files_between = files.matching(self._order.bucket(where, end).may_be_in(files.files, self.read.config))
            else:
                files_between = files.between(max(where.index + 1, 0), end.index + 1 if inside else len(files))
            where = self._before(where.version + 1)
        # The commit at the end is not read if the end is before all of its files, or inside the initial snapshot.
        last = end.version if end.index >= 0 else end.version - 1
        for commit in self._commits.between(where.version, last):
            files_between += [file for file in commit.files if where.key < (file.version, file.index) <= end.key]
        self._commits.forget_before(end.version)
        included = [file for file in files_between if not self.options.excludes(file.action.path)]
        if self.options.ignored_changes != IgnoredChanges():
            included = [file.with_partition_columns(self.read.config) for file in included]
        newest = self._seen or self.latest()
        return without_vanished(self.store, included, newest, fail_on_data_loss=self.options.fail_on_data_loss)

    def bucket(self, start: Position | None, end: Position) -> Bucket | None:
        """Return the filter for rows of the initial snapshot's files in a batch, in event time order; None for all rows.

        Args:
            start, end: as for `files`.
        """
        where = start or self._begin_of(end)
        return None if self._order is None or not where.is_initial_snapshot else self._order.bucket(where, end)

    def waiting(self, after: Position, newest: int, most_commits: int) -> Backlog | None:
        """Return the unread part of the table after a position.

        Args:
            newest: the last version to count.
            most_commits: the maximum number of commits to read; returns None if more are needed. Commits are cached for the next batches.
        """
        if newest - after.version > most_commits:
            return None
        backlog, where = Backlog(0, 0), after
        if where.is_initial_snapshot:
            backlog, where = self._waiting_in_snapshot(where), self._before(where.version + 1)
        try:
            for commit in self._commits.between(where.version, newest):
                ahead = [file for file in commit.files if (file.version, file.index) > where.key]
                backlog = Backlog(backlog.files + len(ahead), backlog.bytes + sum(file.size for file in ahead))
        except (InvalidRequest, NotFound, Unsupported):
            # The stream will stop there with this error, and will not read the commits after it.
            return backlog
        return backlog

    def _waiting_in_snapshot(self, where: Position) -> Backlog:
        files = self._initial_files(where.version)
        if self._order is not None:
            left = files.matching(
                self._order.bucket(where, self._before(where.version + 1)).may_be_in(files.files, self.read.config)
            )
            return Backlog(len(left), sum(file.size for file in left))
        first = max(where.index + 1, 0)
        return Backlog(len(files) - first, files.bytes_from(first))

    def times(self, files: Sequence[IndexedFile]) -> Mapping[int, int]:
        """Return the commit times of these files' versions, in milliseconds since the epoch.

        Raises `CorruptTable` for a commit without its required timestamp.
        """
        timed_from = in_commit_timestamps_from(self.latest().config)
        times: dict[int, int] = {}
        versions = sorted({file.version for file in files})
        if self._initial is not None and self._initial[0].version in versions:
            times[self._initial[0].version] = self._initial[0].timestamp_ms
        untimed = []
        for version in versions:
            if version in times:
                continue
            if timed_from is None or version < timed_from:
                untimed.append(version)
                continue
            stated = self._commits.read(version).in_commit_timestamp
            if stated is None:
                raise no_in_commit_timestamp(self.store.url, version)
            times[version] = stated
        if untimed:
            times |= self.latest().times.between(untimed[0], untimed[-1])
        return times

    def _plan_initial(self, where: Position, room: Room, up_to: Position | None) -> tuple[Position, Room, bool]:
        """Return the end of the batch in the initial snapshot, the remaining room, and whether the batch continues past the snapshot."""
        files = self._initial_files(where.version)
        if self._order is not None:
            end, room = self._order.end_of_batch(where, files.files, room)
            return (self._before(where.version + 1), room, True) if end is None else (end, room, False)
        first, stop = max(where.index + 1, 0), len(files)
        ends_inside = up_to is not None and up_to.is_initial_snapshot
        if up_to is not None and ends_inside:
            stop = min(stop, up_to.index + 1)
        taken, room = (max(stop - first, 0), room) if room == UNLIMITED.room else room.take(files.sizes(first, stop))
        if first + taken == len(files) and not ends_inside:
            return self._before(where.version + 1), room, True
        return (replace(where, index=first + taken - 1) if taken else where), room, False

    def _plan_commits(self, start: Position, where: Position, room: Room, newest: int, up_to: Position | None) -> Position:
        """Return the end of a batch that began at `start` and has reached `where`, after the initial snapshot."""
        last = newest if up_to is None else min(newest, up_to.version if up_to.index >= 0 else up_to.version - 1)
        try:
            for commit in self._commits.between(where.version, last):
                if self._tracking is not None and self._stops_before(commit, where):
                    return barrier_before(where, commit.version)
                pending = [file for file in commit.files if (file.version, file.index) > where.key]
                if up_to is not None:
                    pending = [file for file in pending if (file.version, file.index) <= up_to.key]
                taken, room = _taken(commit, pending, room)
                if taken < len(pending):
                    return replace(where, version=commit.version, index=pending[taken - 1].index) if taken else where
                is_end = up_to is not None and up_to.version == commit.version
                where = up_to if up_to is not None and is_end else self._before(commit.version + 1)
        except (InvalidRequest, NotFound, Unsupported):
            # The batch before a commit that stops the stream is returned first, so that it always stops at the same position.
            if where == start:
                raise
        return where

    def _check_start(self, start: Position, newest: int) -> None:
        """Raise if the stream cannot continue from there."""
        start.check_table(self.read.metadata.id, self.store.url)
        self._check_order(start)
        if start.version > newest + 1:
            raise NotFound(
                f"The position {start} is after version {newest}, the newest of table {self.store.url}: the log has lost versions, or was "
                "restored from an older copy. Restore the commits, or start a new stream without the position or the checkpoint.",
                code="DELTA_STREAMING_TRAILING_COMMIT_MISSING",
                table=self.store.url,
                version=start.version,
            )
        if not self._is_checked and start.version <= newest:
            self._check_version(start.version)
            self._is_checked = True

    def _check_order(self, position: Position) -> None:
        if self._order is None:
            check_no_order(position, self.store.url)
        else:
            self._order.check(position, self.store.url)

    def _check_version(self, version: int) -> None:
        """Check the metadata at the stream's start: the commits after it contain only changes."""
        if self._tracking is not None and not self.options.read_change_feed:
            return  # the schema log determines the schema for reading
        config = self._config_at(version)
        if config is not None:
            if self._tracking is None:
                self._read_as.check(config, version, is_start=True)
            if self.options.read_change_feed:
                check_feed_is_on(version, config)

    def _config_at(self, version: int) -> TableConfig | None:
        """Return the configuration of a version; None if the log cannot reconstruct it, though it may still have later commits."""
        if version == self._at_start.version:
            return self._at_start.config
        try:
            return Snapshot.at(self.store, version).config
        except (NotFound, CorruptTable) as error:
            checks_columns = self._tracking is None and not self.options.ignored_changes.column_mapping
            if not checks_columns or self.read.config.column_mapping_mode == "none":
                return None
            raise NotFound(
                f"The log of table {self.store.url} cannot reconstruct version {version} any more, so it is unknown whether columns were "
                "renamed or dropped since. Start at a newer version, or without the position or the checkpoint.",
                code="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                table=self.store.url,
                version=version,
            ) from error

    def _check_metadata(self, commit: StreamedCommit) -> None:
        """Check a commit's changes of metadata and protocol."""
        # A commit has the protocol only if it changes it; a later protocol allows everything that an earlier one did.
        later = self._at_start if commit.version <= self._at_start.version else self._newest()
        data = TableConfig(commit.protocol or later.protocol, commit.metadata or self._at_start.metadata, self.store.url)
        if commit.metadata is None or self._tracking is not None:
            data.ensure_readable()
        else:
            self._read_as.check(data, commit.version)
        if commit.metadata is None:
            return
        if self.options.read_change_feed:
            check_feed_is_on(commit.version, data)

    def _begin_tracking(self, version: int, since: int | None = None) -> None:
        """Write the first file of the schema log.

        Args:
            version: the version whose metadata the log begins with.
            since: the start of a batch that was planned before there was a log, and ends at `version`; all metadata in between must be
                readable with the same schema.
        """
        assert self._tracking is not None
        config = self._at_start.config if version == self._at_start.version else self._snapshot(version).config
        if since is not None:
            self._check_one_schema(config, since, version)
        self._tracking.begin(config, version, self.read.config)

    def _check_one_schema(self, config: TableConfig, first: int, last: int) -> None:
        read_as = ReadSchema(config, last)
        try:
            read_as.check(self._snapshot(first).config, first)
            for commit in self._commits.between(first, last):
                if commit.metadata is not None:
                    read_as.check(TableConfig(config.protocol, commit.metadata, self.store.url), commit.version)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"The stream has planned a batch of table {self.store.url} from version {first} to version {last}, but no single schema "
                f"reads all of it, so its schema log cannot be started: {error.message} Start a new stream, without the old checkpoint.",
                code="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
                table=self.store.url,
                version=last,
            ) from error

    def _stops_before(self, commit: StreamedCommit, where: Position) -> bool:
        assert self._tracking is not None
        return where.key < (commit.version, METADATA_CHANGE_INDEX) and self._tracking.stops_at(commit, self.read.config)

    def _initial_files(self, version: int) -> InitialFiles:
        if self._initial is None or self._initial[0].version != version:
            snapshot = self._at_start if version == self._at_start.version else self._snapshot(version)
            if self._tracking is not None:
                self._tracking.check_initial(snapshot.config, version, self.read.config)
            self._initial = snapshot, InitialFiles.of(snapshot)
        return self._initial[1]

    def _snapshot(self, version: int) -> Snapshot:
        try:
            return Snapshot.at(self.store, version)
        except NotFound as error:
            raise NotFound(
                f"The stream needs version {version} of table {self.store.url}, with whose snapshot or metadata it began, but the "
                "log cannot reconstruct that version any more. Start a new stream without the position or the checkpoint, and "
                "keep the table's log longer (delta.logRetentionDuration).",
                code="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                table=self.store.url,
                version=version,
            ) from error

    def _begin_of(self, end: Position) -> Position:
        """Return the start of a first batch for which only the end was stored."""
        if self.options.starting_version == "latest":
            # The latest version at that time is unknown; but the batch reached into this version.
            return self._before(end.version)
        if self.options.has_start:
            return self.begin
        version = end.version if end.is_initial_snapshot else end.version - 1
        return Position(end.table_id, version, is_initial_snapshot=True)

    def _before(self, version: int) -> Position:
        return Position(self.read.metadata.id, version)


def _last_read(done: Position) -> int:
    """Return the last version of which a stream has read something; -1 for none."""
    return done.version if done.is_initial_snapshot or done.index >= 0 else done.version - 1


def _taken(commit: StreamedCommit, pending: Sequence[IndexedFile], room: Room) -> tuple[int, Room]:
    """Return how many of a commit's files fit into the room."""
    if commit.is_atomic:
        fits, room = room.take_together([file.size for file in pending])
        return (len(pending) if fits else 0), room
    return room.take(file.size for file in pending)
