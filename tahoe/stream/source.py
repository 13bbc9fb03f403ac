"""`Source`: a table as a stream, by the three questions that every reader of it asks.

    source.end_now()                 how far the table is now: the end of a run that stops by itself (`Trigger.AvailableNow`)
    source.plan(start, limits)       how far the next batch goes
    source.files(start, end)         what is to be read for it

What lies between two positions never changes, so a batch that is read again after a crash is the same batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tahoe.exceptions import CorruptTable, InvalidRequest, NotFound, Unsupported
from tahoe.log.files.paths import commit_name
from tahoe.log.history import commit_times, first_version_from, in_commit_timestamps_from
from tahoe.log.places import no_in_commit_timestamp
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.changes import check_feed_is_on
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.admission import UNLIMITED, Limits, Room
from tahoe.stream.commit_reader import CommitReader
from tahoe.stream.event_time_order import Bucket, EventTimeOrder, check_no_order
from tahoe.stream.initial_files import InitialFiles
from tahoe.stream.position import (
    METADATA_CHANGE_INDEX,
    POST_METADATA_CHANGE_INDEX,
    Position,
    check_moves_on,
    check_same_table,
)
from tahoe.stream.schema_changes import ReadAs
from tahoe.stream.schema_tracking import SchemaTracking, barrier_after, barrier_before
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.streamed_commit import IndexedFile, StreamedCommit
from tahoe.stream.vanished_files import without_vanished

__all__ = ["Source", "Waiting"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a stream has before it: files, and their bytes."""

    files: int
    bytes: int


class Source:
    """One table, read as a stream with one schema.

    Args:
        read: the version whose schema all rows have; without a start in the options also what the stream begins with.
        newest: gives the newest version of the table.
        options: what is wanted.
        tracking: the stream's schema log, which has the schema then; None for a stream that keeps none.
        event_time: the column by whose times the initial snapshot is read; None where it is read file by file. Who reads the files of a
            batch must ask then for its `bucket` too.
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
        self._read_as = ReadAs(read.config, read.version, options.names_a_start)  # where nothing is tracked
        self._commits = CommitReader(read.store, options, self._check_metadata)
        self._is_checked = False
        self._seen: Snapshot | None = None
        self._initial: tuple[Snapshot, InitialFiles] | None = None
        self._order = None if event_time is None else EventTimeOrder(self.read.config, event_time)

    @cached_property
    def begin(self) -> Position:
        """Where a stream without a position begins: the same for the life of this value.

        Raises:
            NotFound: ``DELTA_VERSION_NOT_FOUND`` and ``DELTA_TIMESTAMP_GREATER_THAN_COMMIT`` where the log has no such version.
        """
        version = self.options.starting_version
        if version == "latest":
            return self.end_now()
        if self.options.starting_timestamp_ms is not None:
            version = first_version_from(self.store, self.latest().config, self.options.starting_timestamp_ms)
        if version is None:
            return Position(self.read.metadata.id, self.read.version, is_initial_snapshot=True)
        if self.store.head(commit_name(version)) is None:
            raise NotFound(
                f"The commit of version {version} is not in the log of table {self.store.url}, whose newest version is "
                f"{self.latest().version}: it was cleaned away, or is yet to come. Begin at another version, or without one.",
                code="DELTA_VERSION_NOT_FOUND",
                table=self.store.url,
                version=version,
            )
        return self._before(version)

    def latest(self) -> Snapshot:
        """The newest version. Raises `InvalidRequest` where another table lies in the place of the one that is read."""
        snapshot = self._newest()
        check_same_table(self.read.metadata.id, snapshot.metadata.id, self.store.url)
        self._seen = snapshot
        return snapshot

    def end_now(self) -> Position:
        """The position after all that is in the table now. Commits up to there are not looked at: what stops a stream stops it there."""
        return self._before(self.latest().version + 1)

    def resume(self, done: Position) -> None:
        """A stream goes on that has read up to there, maybe with another schema: what was read and what comes must go together.

        Raises: as `plan`, where the table is another one, or lost or renamed a column since.
        """
        done.check_table(self.read.metadata.id, self.store.url)
        version = _last_read(done)
        if self._tracking is not None and not self._tracking.has_begun:
            self._begin_tracking(max(version, 0))
        if 0 <= version <= self.latest().version:
            self._check_version(version)

    def done(self, end: Position) -> None:
        """A batch is dealt with.

        Raises `InvalidRequest` (``DELTA_STREAMING_METADATA_EVOLUTION``) where the stream tracks the schema and comes to a change of it: the
        log has it now, and the stream is to be begun again.
        """
        if self._tracking is not None and end.index in (METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX):
            self._tracking.evolve(self._commits.read(end.version), self.read.config)

    def plan(self, start: Position | None, limits: Limits | None = None, up_to: Position | None = None) -> Position:
        """How far the batch after `start` goes; `start` itself where there is nothing yet.

        Args:
            start: None for a stream that begins. One that begins with ``latest`` is first given the place where it begins, so that a
                stored position tells it.
            limits: of the batch; None for those of the options.
            up_to: no further than there (`end_now`).

        A commit that stops the stream is an error when a batch would begin with it; the batch before it ends there.

        Raises:
            InvalidRequest: another table, or a commit that no stream of these options goes past: see `tahoe.stream.streamed_commit` and
                `tahoe.stream.schema_changes`.
            NotFound: commits are gone (``DELTA_MISSING_FILES_UNEXPECTED_VERSION``, ``DELTA_STREAMING_TRAILING_COMMIT_MISSING``).
        """
        begin = where = start or self.begin
        newest = self.latest().version  # asked for second: it may not be older than the beginning
        self._check_start(begin, newest)
        if self._tracking is not None:
            if not self._tracking.has_begun:
                self._begin_tracking(min(begin.version, newest))
            barrier = barrier_after(begin)
            if barrier is not None:
                return barrier
            # Spark tells a source late that a batch is done: a query killed just then has not heard of it, and neither has the log.
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
        """The files after `start`, up to and with that of `end`.

        Args:
            start: None for the first batch of a stream.

        Raises: as `plan`; `NotFound` (``DELTA_FILE_NOT_FOUND``) where one of them is gone from storage, unless the options pass over that.
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
        found = []
        if where.is_initial_snapshot:
            files = self._initial_files(where.version)
            inside = end.is_initial_snapshot and end.version == where.version
            if self._order is not None:
                found = files.matching(self._order.bucket(where, end).may_be_in(files.files, self.read.config))
            else:
                found = files.between(max(where.index + 1, 0), end.index + 1 if inside else len(files))
            where = self._before(where.version + 1)
        # Of a version that the end lies before, not even the commit is looked at; nor of one whose snapshot the end lies in.
        last = end.version if end.index >= 0 else end.version - 1
        for commit in self._commits.between(where.version, last):
            found += [file for file in commit.files if where.place < (file.version, file.index) <= end.place]
        self._commits.forget_before(end.version)
        wanted = [file for file in found if not self.options.excludes(file.action.path)]
        newest = self._seen or self.latest()
        return without_vanished(self.store, wanted, newest, fail_on_data_loss=self.options.fail_on_data_loss)

    def bucket(self, start: Position | None, end: Position) -> Bucket | None:
        """Which rows of the initial snapshot's files belong to a batch: some, where it is read by the time of its events; None for all.

        Args:
            start, end: as for `files`.
        """
        where = start or self._begin_of(end)
        return None if self._order is None or not where.is_initial_snapshot else self._order.bucket(where, end)

    def waiting(self, after: Position, newest: int, most_commits: int) -> Waiting | None:
        """How much of the table a stream has not read yet that has come to a position.

        Args:
            newest: version up to which is counted.
            most_commits: that are read for it; None is the answer where it would take more. What is read is kept for the batches to come.
        """
        if newest - after.version > most_commits:
            return None
        found, where = Waiting(0, 0), after
        if where.is_initial_snapshot:
            found, where = self._waiting_in_snapshot(where), self._before(where.version + 1)
        try:
            for commit in self._commits.between(where.version, newest):
                ahead = [file for file in commit.files if (file.version, file.index) > where.place]
                found = Waiting(found.files + len(ahead), found.bytes + sum(file.size for file in ahead))
        except (InvalidRequest, NotFound, Unsupported):
            # The stream will stop there, and say so when it comes to it; what lies behind is not its to read.
            return found
        return found

    def _waiting_in_snapshot(self, where: Position) -> Waiting:
        files = self._initial_files(where.version)
        if self._order is not None:
            left = files.matching(
                self._order.bucket(where, self._before(where.version + 1)).may_be_in(files.files, self.read.config)
            )
            return Waiting(len(left), sum(file.size for file in left))
        first = max(where.index + 1, 0)
        return Waiting(len(files) - first, files.bytes_from(first))

    def times(self, files: Sequence[IndexedFile]) -> Mapping[int, int]:
        """When the versions of these files were committed, in milliseconds since the epoch.

        Raises `CorruptTable` for a commit that must state its time and does not.
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
            times |= {time.version: time.timestamp_ms for time in commit_times(self.store, self.read.config)}
        return times

    def _plan_initial(self, where: Position, room: Room, up_to: Position | None) -> tuple[Position, Room, bool]:
        """How far the batch goes in the initial snapshot, the room then, and whether it goes past it."""
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
        """How far a batch goes that began at `start` and has come to `where`, behind the initial snapshot."""
        last = newest if up_to is None else min(newest, up_to.version if up_to.index >= 0 else up_to.version - 1)
        try:
            for commit in self._commits.between(where.version, last):
                if self._tracking is not None and self._stops_before(commit, where):
                    return barrier_before(where, commit.version)
                pending = [file for file in commit.files if (file.version, file.index) > where.place]
                if up_to is not None:
                    pending = [file for file in pending if (file.version, file.index) <= up_to.place]
                taken, room = _taken(commit, pending, room)
                if taken < len(pending):
                    return replace(where, version=commit.version, index=pending[taken - 1].index) if taken else where
                is_end = up_to is not None and up_to.version == commit.version
                where = up_to if up_to is not None and is_end else self._before(commit.version + 1)
        except (InvalidRequest, NotFound, Unsupported):
            # What comes before a commit that stops the stream is given first, so that it always stops at the same place.
            if where == start:
                raise
        return where

    def _check_start(self, start: Position, newest: int) -> None:
        """Raise where the stream cannot go on from there."""
        start.check_table(self.read.metadata.id, self.store.url)
        self._check_order(start)
        if start.version > newest + 1:
            raise NotFound(
                f"The position {start} lies after version {newest}, the newest of table {self.store.url}: the log has lost versions, or was "
                "restored from an older copy. Restore the commits, or begin anew without the position or the checkpoint.",
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
        """What was in force where the stream starts: the commits after it tell only what they change."""
        if self._tracking is not None and not self.options.read_change_feed:
            return  # the schema log tells what rows are read with
        config = self._config_at(version)
        if config is not None:
            if self._tracking is None:
                self._read_as.check(config, version)
            if self.options.read_change_feed:
                check_feed_is_on(version, config)

    def _config_at(self, version: int) -> TableConfig | None:
        """None where the log cannot give that version any more, though it may still have the commits after it."""
        if version == self._at_start.version:
            return self._at_start.config
        try:
            return Snapshot.at(self.store, version).config
        except (NotFound, CorruptTable) as error:
            if self._tracking is not None or self.read.config.column_mapping_mode == "none":
                return None
            raise NotFound(
                f"The log of table {self.store.url} cannot give version {version} any more, so it is not known whether columns were renamed "
                "or dropped since. Begin at a newer version, or anew without the position or the checkpoint.",
                code="DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT",
                table=self.store.url,
                version=version,
            ) from error

    def _check_metadata(self, commit: StreamedCommit) -> None:
        """What a commit changes of metadata and protocol."""
        # A commit tells the protocol only where it changes it; what holds later allows all that held before.
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
            version: what was in force there is what the log begins with.
            since: where a batch begins that was planned before there was a log, and ends at `version`; what was in force in between must
                be read with the same schema.
        """
        assert self._tracking is not None
        config = self._at_start.config if version == self._at_start.version else self._snapshot(version).config
        if since is not None:
            self._check_one_schema(config, since, version)
        self._tracking.begin(config, version, self.read.config)

    def _check_one_schema(self, config: TableConfig, first: int, last: int) -> None:
        read_as = ReadAs(config, last)
        try:
            read_as.check(self._snapshot(first).config, first)
            for commit in self._commits.between(first, last):
                if commit.metadata is not None:
                    read_as.check(TableConfig(config.protocol, commit.metadata, self.store.url), commit.version)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"The stream has planned a batch of table {self.store.url} from version {first} to version {last}, and no one schema reads "
                f"all of it, so its schema log cannot be begun: {error.message} Start a new stream, without the old checkpoint.",
                code="DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
                table=self.store.url,
                version=last,
            ) from error

    def _stops_before(self, commit: StreamedCommit, where: Position) -> bool:
        assert self._tracking is not None
        return where.place < (commit.version, METADATA_CHANGE_INDEX) and self._tracking.stops_at(commit, self.read.config)

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
                f"The stream needs version {version} of table {self.store.url} as it was, for it began with that snapshot or with what was "
                "in force then, and the log cannot give that version any more. Begin anew without the position or the checkpoint, and let "
                "the table keep its log longer (delta.logRetentionDuration).",
                code="DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE",
                table=self.store.url,
                version=version,
            ) from error

    def _begin_of(self, end: Position) -> Position:
        """Where a first batch began whose end alone was stored."""
        if self.options.starting_version == "latest":
            # What was the latest then is not known; that the batch reached into this version is.
            return self._before(end.version)
        if self.options.names_a_start:
            return self.begin
        version = end.version if end.is_initial_snapshot else end.version - 1
        return Position(end.table_id, version, is_initial_snapshot=True)

    def _before(self, version: int) -> Position:
        return Position(self.read.metadata.id, version)


def _last_read(done: Position) -> int:
    """The last version of which a stream has read something; -1 for none."""
    return done.version if done.is_initial_snapshot or done.index >= 0 else done.version - 1


def _taken(commit: StreamedCommit, pending: Sequence[IndexedFile], room: Room) -> tuple[int, Room]:
    """How many of a commit's files go into the room."""
    if commit.is_one:
        fits, room = room.take_together([file.size for file in pending])
        return (len(pending) if fits else 0), room
    return room.take(file.size for file in pending)
