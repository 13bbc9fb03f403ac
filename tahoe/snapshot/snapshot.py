"""`Snapshot`: one version of one table. It is immutable; expensive values are computed on first use and cached."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.events import observed
from tahoe.base.exceptions import CorruptTable, NotFound, Unsupported
from tahoe.base.html import html_pairs, html_part, html_table
from tahoe.base.lazy import cached_property
from tahoe.base.secrets import shown_properties
from tahoe.expr.tree.expression import Expression
from tahoe.expr.tree.predicate import Predicate
from tahoe.log.checkpoints.checkpoint_reader import STORED_COLUMNS
from tahoe.log.commit_identity import check_identities, identity_of, no_in_commit_timestamp
from tahoe.log.commit_times import CommitTimes, in_commit_timestamp_of
from tahoe.log.files.commits import parse_commit, read_commit
from tahoe.log.files.paths import LOG_FOLDER, checksum_name, commit_name
from tahoe.log.files.removed_files import adds_in, joined, single_actions
from tahoe.log.intents import notice
from tahoe.log.origin import located_in_log
from tahoe.log.replay import (
    FILES_SCHEMA,
    LogReader,
    TableState,
    advance_files,
    advance_state,
    files_table,
    selected,
)
from tahoe.log.segment import LogSegment, newest_listed_segment, segment_for
from tahoe.log.totals import FileTotals
from tahoe.protocol.action_members import check_partition_values
from tahoe.protocol.actions import Action, CommitInfo, Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.protocols import check_coordinated
from tahoe.schema.types import StructType
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.side_by_side import both

if TYPE_CHECKING:
    from tahoe.snapshot.scan import Scan


logger = logging.getLogger(__name__)


class LostVersions(CorruptTable):
    """A log ends before a version that was read from it, or contains another commit under that version's name."""

    default_code = "DELTA_TXN_LOG_FAILED_INTEGRITY"


@dataclass(frozen=True)
@checked_arguments
class Snapshot:
    """One version of one table.

    Args:
        segment: the log files that give this version.
        state: protocol, metadata, transactions, domains.
        base: the live files of an earlier snapshot that are in memory, and the actions since; saves replaying the log.
        steps: the number of commits since the snapshot that was read from the log.
        log: the reader of the segment, with its cached results; created on first use by default.
    """

    store: LogStore
    segment: LogSegment
    state: TableState
    base: tuple[pa.Table, Sequence[Action]] | None = field(default=None, repr=False, compare=False)
    steps: int = field(default=0, repr=False, compare=False)
    log: LogReader | None = field(default=None, repr=False, compare=False)

    @classmethod
    def at(cls, store: LogStore, version: int | None = None) -> Snapshot:
        """Read the newest version, or version `version`.

        Raises:
            NotFound: no table, or no such version (the message names those that exist).
            CorruptTable: that version cannot be reconstructed from the log.
            Unsupported: the table needs reader features that this version of Tahoe lacks.
        """
        if version is None and not store.asks_cheaply:
            segment, is_newest = newest_listed_segment(store)
            log = LogReader(store, segment)
            state, later = both(store, log.state, lambda: None if is_newest else store.head(commit_name(segment.version + 1)))
            if later is None:
                return cls(store, segment, state, log=log)
        segment = segment_for(store, version)
        log = LogReader(store, segment)
        return cls(store, segment, log.state(), log=log)

    @classmethod
    def first(cls, store: LogStore, actions: Sequence[Action], entry: Entry) -> Snapshot:
        """Return version 0, built from its commit's actions without reading anything.

        Args:
            actions: the commit's, with protocol and metadata.
            entry: the commit's file in the log.
        """
        protocol = next(action for action in actions if isinstance(action, Protocol))
        metadata = next(action for action in actions if isinstance(action, Metadata))
        segment = LogSegment(0, None, (entry,), last_modified_ms=entry.modified_ms)
        state = advance_state(TableState(protocol, metadata, {}, {}), single_actions(actions))
        return cls(store, segment, state, (files_table(()), joined(actions)))

    def __repr__(self) -> str:
        return f"Snapshot({self.store.url}, version {self.version})"

    def _repr_html_(self) -> str:
        columns = html_table(
            ("column", "type", "nullable"), [(field.name, field.data_type, field.nullable) for field in self.schema]
        )
        facts = {
            "version": str(self.version),
            "partitioned by": ", ".join(self.partition_columns),
            **shown_properties(self.metadata.configuration),
        }
        return html_part(html_pairs(facts, title=self.store.url), columns)

    @property
    def version(self) -> int:
        """The number of the version."""
        return self.segment.version

    @property
    def protocol(self) -> Protocol:
        """The protocol in force at this version."""
        return self.state.protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata in force at this version."""
        return self.state.metadata

    @cached_property
    def config(self) -> TableConfig:
        """The configuration that follows from protocol and metadata, which are checked against each other."""
        return TableConfig(self.state.protocol, self.state.metadata, self.store.url)

    @property
    def schema(self) -> StructType:
        """The logical schema, partition columns included."""
        return self.config.schema

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Logical names, in the order of the partitioning."""
        return self.config.partition_columns

    @cached_property
    def timestamp_ms(self) -> int:
        """The time of the commit: its in-commit timestamp if the table has them enabled, else the commit file's modification time."""
        if self.config.in_commit_timestamps:
            if self.state.in_commit_timestamp is not None:
                return self.state.in_commit_timestamp
            stated = in_commit_timestamp_of(read_commit(self.store, self.version))
            if stated is None:
                raise no_in_commit_timestamp(self.store.url, self.version)
            return stated
        return self.segment.last_modified_ms

    @cached_property
    def times(self) -> CommitTimes:
        """The times of the commits up to this version."""
        return CommitTimes(self.store, self.config, self.version)

    @cached_property
    def _log(self) -> LogReader:
        return self.log or LogReader(self.store, self.segment)

    @cached_property
    def _files(self) -> pa.Table:
        if self.base is not None:
            with self.naming_origins():
                for add in adds_in(self.base[1]):
                    check_partition_values(add.path, add.partition_values, self.schema, self.partition_columns, self.store.url)
            return advance_files(*self.base, self.store.url)
        return self._log.files()

    @contextmanager
    def naming_origins(self) -> Iterator[None]:
        """Add the version and the log file of the faulty action to the errors about the log's contents that are raised inside."""
        try:
            yield
        except (CorruptTable, Unsupported) as error:
            located_in_log(error, self.store, self.segment)
            raise

    def files(self) -> pa.Table:
        """Return the live files, one row a file (`tahoe.log.replay.FILES_SCHEMA`). Read on first use and cached."""
        return self._files

    def stored_files(self) -> pa.Table:
        """Return the live files without statistics and tags (`STORED_COLUMNS`): not cached, unless `files` is in memory."""
        if self.has_files_in_memory or self.base is not None:
            return selected(self.files(), STORED_COLUMNS)
        return self._log.stored_files()

    def files_with_texts(self) -> pa.Table:
        """Return the live files for a single use, with one form of statistics: not cached, unless `files` is in memory."""
        if self.has_files_in_memory or self.base is not None or self.segment.checkpoint is None:
            return selected(self.files(), FILES_SCHEMA.names)
        return self._log.files_with_texts()

    @cached_property
    def totals(self) -> FileTotals:
        """The number and the sizes of the live files, without histograms."""
        return FileTotals.of(self.stored_files(), histograms=False)

    @property
    def has_files_in_memory(self) -> bool:
        """Whether `files` returns without reading the log."""
        return "_files" in self.__dict__

    def files_matching(self, predicate: Predicate | None) -> pa.Table:
        """Return the live files that may contain rows for which `predicate` is true: exact for partition values, conservative for statistics.

        Pushes the predicate into the read of the checkpoint unless the live files are in memory already. Conditions on a column from which a
        partition column is generated also apply to that partition column (`tahoe.protocol.column_values.partition_filters`).
        """
        with observed("plan", self.store.url) as observation:
            matching = self._matching(predicate)
            observation.record(self.version, lambda: {"files": len(matching), "filtered": predicate is not None})
        return matching

    def _matching(self, predicate: Predicate | None) -> pa.Table:
        if predicate is None:
            return self.files()
        predicate = self._with_implied(predicate)
        files = self._files if self.has_files_in_memory or self.base is not None else None
        return self._log.scan(predicate, self.schema, self.partition_columns, files=files)

    def _with_implied(self, predicate: Predicate) -> Predicate:
        if not any(self.schema.field(name).is_generated for name in self.partition_columns):
            return predicate
        from tahoe.protocol.column_values.partition_filters import generated_partitions, with_implied  # few tables need it

        return with_implied(predicate, generated_partitions(self.schema, self.partition_columns))

    @property
    def num_files(self) -> int:
        """The number of live files; the first access reads the log."""
        return int(self.files().num_rows)

    def tombstones(self) -> pa.Table:
        """Return the removed files that still have a `remove` action in the log."""
        return self._log.tombstones()

    def scan(
        self,
        predicate: Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        row_ids: bool = False,
        condition: Expression | None = None,
    ) -> Scan:
        """Return a scan of `columns` (all when None) of the rows for which `predicate` is true; see `Scan` for the other arguments."""
        from tahoe.snapshot.scan import Scan  # queries of files, history or versions do not need the reader of data files

        return Scan(self, predicate, None if columns is None else tuple(columns), row_ids, condition)

    def with_metadata(self, metadata: Metadata) -> Snapshot:
        """Return this version with other metadata. What was read from the log is shared."""
        base = (self._files, ()) if self.has_files_in_memory else self.base
        return replace(self, state=replace(self.state, metadata=metadata), base=base, log=self._log)

    def after(self, actions: Sequence[Action], entry: Entry) -> Snapshot:
        """Return the next version, built from this one and the commit's actions without a listing.

        Args:
            entry: the commit's file in the log.
        """
        # Not listed: it probably has a checksum if this version has one.
        checksum = None if self.segment.checksum is None else replace(entry, name=checksum_name(self.version + 1))
        segment = replace(
            self.segment,
            version=self.version + 1,
            commits=(*self.segment.commits, entry),
            checksum=checksum,
            last_modified_ms=max(entry.modified_ms, self.segment.last_modified_ms + 1),
        )
        base = None
        if self.has_files_in_memory:
            base = (self._files, joined(actions))
        elif self.base is not None:
            base = (self.base[0], joined(self.base[1], actions))
        return Snapshot(self.store, segment, advance_state(self.state, single_actions(actions)), base, self.steps + 1)

    def refreshed(self) -> Snapshot:
        """Return the newest version: this value if nothing was committed since, else the result of applying the later commits to it.

        A table that was deleted and recreated in the same folder is recognized by its last commit's size and time, logged, and read again.

        Raises:
            LostVersions: the log has lost this version.
            CorruptTable: a commit file contains the commit of another version.
        """
        newest = self.segment.commits[-1] if self.segment.commits else None
        head, next_head = both(
            self.store,
            lambda: self.store.head(commit_name(self.version)),
            lambda: self.store.head(commit_name(self.version + 1)),
        )
        if newest is None or head is None or (head.size, head.modified_ms) != (newest.size, newest.modified_ms):
            return self._replaced()
        if self.steps > _MOST_STEPS and self.base is None and not self.has_files_in_memory:
            return Snapshot.at(self.store)  # reading its files would read every commit since
        following = [] if next_head is None else self._newer_commits(next_head)
        if not following:
            return self
        if len(following) > _MOST_STEPS:
            return Snapshot.at(self.store)
        snapshot = self
        bodies = self.store.get_many([entry.name for entry in following])
        identities = [identity_of(self.version + number, body) for number, body in enumerate(bodies, start=1)]
        check_identities([identity for identity in identities if identity is not None], self.store.url)
        for entry, body in zip(following, bodies, strict=True):
            snapshot = snapshot.after(parse_commit(entry.name, body, self.store.url), entry)
        with snapshot.naming_origins():
            snapshot.config.ensure_readable()
        check_coordinated(snapshot.protocol, self.store)
        return snapshot

    def _newer_commits(self, first_entry: Entry) -> list[Entry]:
        """Return the commits since this version; lists the log if that is cheaper than one request for each name.

        Args:
            first_entry: of the first one.
        """
        first = commit_name(self.version + 1)
        entries = [] if self.store.asks_cheaply else self.store.list_from(LOG_FOLDER, first.rpartition("/")[2])
        if entries:
            notice(self.store, entries)
        listed = {commits.name: commits for commits in entries}
        listed[first] = first_entry
        # A listing may lag behind the newest writes, so the name after its last commit is requested too.
        commits: list[Entry] = []
        while (entry := listed.get(commit_name(self.version + len(commits) + 1))) is not None:
            commits.append(entry)
        while (entry := self.store.head(commit_name(self.version + len(commits) + 1))) is not None:
            commits.append(entry)
        return commits

    def _replaced(self) -> Snapshot:
        """Return the newest version after this version's commit file has changed: it was cleaned up or copied, or the table was recreated."""
        latest = Snapshot.at(self.store)
        if latest.version == self.version and latest.metadata == self.metadata and latest.segment == self.segment:
            return self
        if latest.metadata.id != self.metadata.id:
            message = (
                "%s was deleted and created again: version %d of the table %s was read last, now it is version %d of the table %s"
            )
            logger.warning(message, self.store.url, self.version, self.metadata.id, latest.version, latest.metadata.id)
            return latest
        if latest.version < self.version:
            raise self._lost(f"the log ends with version {latest.version}", commit_name(latest.version + 1))
        before, after = self.state.transaction_id, latest.state.transaction_id
        if latest.version > self.version:
            after = _transaction_id(self.store, self.version)
        if before is not None and after is not None and before != after:
            raise self._lost(f"another transaction ({after} in place of {before}) has its name", commit_name(self.version))
        return latest

    def _lost(self, change: str, file: str) -> LostVersions:
        return LostVersions(
            f"Table {self.store.url}: version {self.version} was read here before, and now {change}, so the log has lost versions: "
            f"restore {file} and the commits after it from a backup. To continue with the log as it is now, open the table again.",
            table=self.store.url,
            version=self.version,
            file=file,
        )


def _transaction_id(store: LogStore, version: int) -> str | None:
    try:
        actions = read_commit(store, version)
    except NotFound:
        return None  # the log was cleaned
    return next((action.transaction_id for action in actions if isinstance(action, CommitInfo)), None)


# Beyond this many new commits a checkpoint is likely to be among them.
_MOST_STEPS = 32
