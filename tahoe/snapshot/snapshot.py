"""`Snapshot`: one version of one table. It never changes; what costs time is made on first use and kept."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.argument_checks import checked_arguments
from tahoe.exceptions import CorruptTable, NotFound, Unsupported
from tahoe.expr.tree.expression import Expression
from tahoe.expr.tree.predicate import Predicate
from tahoe.lazy import cached_property
from tahoe.log.files.commits import parse_commit, read_commit
from tahoe.log.files.paths import LOG_FOLDER, commit_name
from tahoe.log.intents import notice
from tahoe.log.origin import located_in_log
from tahoe.log.places import check_places, no_in_commit_timestamp, place_of
from tahoe.log.replay import (
    LogReader,
    TableState,
    advance_files,
    advance_state,
    files_table,
)
from tahoe.log.segment import LogSegment, segment_for
from tahoe.protocol.actions import Action, AddFile, CommitInfo, Metadata, Protocol
from tahoe.protocol.config import TableConfig
from tahoe.protocol.demanded import check_partition_values
from tahoe.protocol.features import check_coordinated
from tahoe.schema.types import StructType
from tahoe.store.log_store import Entry, LogStore

if TYPE_CHECKING:
    from tahoe.snapshot.scan import Scan

__all__ = ["LostVersions", "Snapshot"]

logger = logging.getLogger(__name__)


class LostVersions(CorruptTable):
    """A log ends before a version that was read of it, or has another commit in its place."""

    default_code = "DELTA_TXN_LOG_FAILED_INTEGRITY"


@dataclass(frozen=True)
@checked_arguments
class Snapshot:
    """One version of one table.

    Args:
        segment: the log files that give this version.
        state: protocol, metadata, transactions, domains.
        base: an earlier snapshot whose live files are in memory, and the actions since; saves replaying the log.
        steps: how many commits it is past the snapshot that was read from the log.
        log: what reads the segment, with what it has read already; made on first use where it is not given.
    """

    store: LogStore
    segment: LogSegment
    state: TableState
    base: tuple[pa.Table, tuple[Action, ...]] | None = field(default=None, repr=False, compare=False)
    steps: int = field(default=0, repr=False, compare=False)
    log: LogReader | None = field(default=None, repr=False, compare=False)

    @classmethod
    def at(cls, store: LogStore, version: int | None = None) -> Snapshot:
        """The newest version, or the version asked for.

        Raises:
            NotFound: no table, or no such version (the message says which there are).
            CorruptTable: the log cannot give that version.
            Unsupported: the table needs reader features that this version of Tahoe lacks.
        """
        segment = segment_for(store, version)
        log = LogReader(store, segment)
        return cls(store, segment, log.state(), log=log)

    @classmethod
    def first(cls, store: LogStore, actions: Sequence[Action], entry: Entry) -> Snapshot:
        """Version 0, made of its commit's actions, without reading anything.

        Args:
            actions: the commit's, with protocol and metadata.
            entry: the commit's file in the log.
        """
        protocol = next(action for action in actions if isinstance(action, Protocol))
        metadata = next(action for action in actions if isinstance(action, Metadata))
        segment = LogSegment(0, None, (entry,), last_modified_ms=entry.modified_ms)
        state = advance_state(TableState(protocol, metadata, {}, {}), actions)
        return cls(store, segment, state, (files_table(()), tuple(actions)))

    def __repr__(self) -> str:
        return f"Snapshot({self.store.url}, version {self.version})"

    @property
    def version(self) -> int:
        """Its number."""
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
        """Protocol and metadata checked against each other, and what follows from them."""
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
        """When this version was committed: its in-commit timestamp where those are on, else the commit file's modification time."""
        if self.config.in_commit_timestamps:
            if self.state.in_commit_timestamp is not None:
                return self.state.in_commit_timestamp
            for action in read_commit(self.store, self.version):
                if isinstance(action, CommitInfo) and action.in_commit_timestamp is not None:
                    return action.in_commit_timestamp
            raise no_in_commit_timestamp(self.store.url, self.version)
        return self.segment.last_modified_ms

    @cached_property
    def _log(self) -> LogReader:
        return self.log or LogReader(self.store, self.segment)

    @cached_property
    def _files(self) -> pa.Table:
        if self.base is not None:
            for action in self.base[1]:
                if isinstance(action, AddFile):
                    with self.naming_origins():
                        check_partition_values(
                            action.path, action.partition_values, self.schema, self.partition_columns, self.store.url
                        )
            return advance_files(*self.base, self.store.url)
        return self._log.files()

    @contextmanager
    def naming_origins(self) -> Iterator[None]:
        """Inside, an error about what the log says is told with the version, and the file of the log that says it."""
        try:
            yield
        except (CorruptTable, Unsupported) as error:
            located_in_log(error, self.store, self.segment)
            raise

    def files(self) -> pa.Table:
        """The live files: `tahoe.log.replay.FILES_SCHEMA`, one row a file. Made on first use and kept."""
        return self._files

    @property
    def has_files_in_memory(self) -> bool:
        """Whether `files` costs nothing more."""
        return "_files" in self.__dict__

    def files_matching(self, predicate: Predicate | None) -> pa.Table:
        """The live files that may hold rows for which `predicate` is true: partition values decide exactly, statistics keep too much.

        Pushes the predicate into the read of the checkpoint unless the live files are in memory already. What it says of a column from which
        a partition column is generated, it says of that one too (`tahoe.protocol.column_values.partition_filters`).
        """
        if predicate is None:
            return self.files()
        predicate = self._with_implied(predicate)
        files = self._files if self.has_files_in_memory or self.base is not None else None
        return self._log.scan(predicate, self.schema, self.partition_columns, files=files)

    def _with_implied(self, predicate: Predicate) -> Predicate:
        if not any("delta.generationExpression" in self.schema.field(name).metadata for name in self.partition_columns):
            return predicate
        from tahoe.protocol.column_values.partition_filters import generated_partitions, with_implied  # few tables need it

        return with_implied(predicate, generated_partitions(self.schema, self.partition_columns))

    @property
    def num_files(self) -> int:
        """How many files are live; made of `files`, so the first call reads the log."""
        return int(self.files().num_rows)

    def tombstones(self) -> pa.Table:
        """Files removed, and not yet forgotten by the log."""
        return self._log.tombstones()

    def scan(
        self,
        predicate: Predicate | None = None,
        columns: Sequence[str] | None = None,
        *,
        row_ids: bool = False,
        condition: Expression | None = None,
    ) -> Scan:
        """What must be read for `columns` (all when None) of the rows for which `predicate` is true; see `Scan` for the others."""
        from tahoe.snapshot.scan import Scan  # what reads data files is not needed to ask for files, history or versions

        return Scan(self, predicate, None if columns is None else tuple(columns), row_ids, condition)

    def after(self, actions: Sequence[Action], entry: Entry) -> Snapshot:
        """The next version, made of this one and the commit's actions, without a listing.

        Args:
            entry: the commit's file in the log.
        """
        segment = replace(
            self.segment,
            version=self.version + 1,
            commits=(*self.segment.commits, entry),
            checksum=None,
            last_modified_ms=max(entry.modified_ms, self.segment.last_modified_ms + 1),
        )
        base = None
        if self.has_files_in_memory:
            base = (self._files, tuple(actions))
        elif self.base is not None:
            base = (self.base[0], (*self.base[1], *actions))
        return Snapshot(self.store, segment, advance_state(self.state, actions), base, self.steps + 1)

    def refreshed(self) -> Snapshot:
        """The newest version: this value when nothing was committed since, else read from here on.

        A table that was deleted and made anew in the same place is noticed by its last commit's size and time, told, and read afresh.

        Raises:
            LostVersions: the log has lost this version.
            CorruptTable: commits are not in their places.
        """
        newest = self.segment.commits[-1] if self.segment.commits else None
        known = self.store.head(commit_name(self.version))
        if newest is None or known is None or (known.size, known.modified_ms) != (newest.size, newest.modified_ms):
            return self._replaced()
        if self.steps > _MOST_STEPS and self.base is None and not self.has_files_in_memory:
            return Snapshot.at(self.store)  # whoever asks for its files would read every commit since
        following = self._newer_commits()
        if not following:
            return self
        if len(following) > _MOST_STEPS:
            return Snapshot.at(self.store)
        snapshot = self
        bodies = self.store.get_many([entry.name for entry in following])
        places = [place_of(self.version + number, body) for number, body in enumerate(bodies, start=1)]
        check_places([place for place in places if place is not None], self.store.url)
        for entry, body in zip(following, bodies, strict=True):
            snapshot = snapshot.after(parse_commit(entry.name, body, self.store.url), entry)
        with snapshot.naming_origins():
            snapshot.config.ensure_readable()
        check_coordinated(snapshot.protocol, self.store)
        return snapshot

    def _newer_commits(self) -> list[Entry]:
        """The commits since this version. One question where there is none, which is the usual answer; else one listing more, where
        that costs less than to ask for one name after another."""
        first = commit_name(self.version + 1)
        entry = self.store.head(first)
        if entry is None:
            return []
        entries = [] if self.store.asks_cheaply else self.store.list_from(LOG_FOLDER, first.rpartition("/")[2])
        if entries:
            notice(self.store, entries)
        listed = {commits.name: commits for commits in entries}
        listed[first] = entry
        # A listing may lag behind what was written, so the name after its last commit is asked for too.
        commits: list[Entry] = []
        while (entry := listed.get(commit_name(self.version + len(commits) + 1))) is not None:
            commits.append(entry)
        while (entry := self.store.head(commit_name(self.version + len(commits) + 1))) is not None:
            commits.append(entry)
        return commits

    def _replaced(self) -> Snapshot:
        """What the log gives now that this version's commit is not as it was: cleaned away, copied, or that of a table made anew."""
        latest = Snapshot.at(self.store)
        if latest.version == self.version and latest.metadata == self.metadata and latest.segment == self.segment:
            return self
        if latest.metadata.id != self.metadata.id:
            message = (
                "%s was deleted and made anew: version %d of the table %s was read last, now it is version %d of the table %s"
            )
            logger.warning(message, self.store.url, self.version, self.metadata.id, latest.version, latest.metadata.id)
            return latest
        if latest.version < self.version:
            raise self._lost(f"the log ends with version {latest.version}", commit_name(latest.version + 1))
        own, now = self.state.transaction_id, latest.state.transaction_id
        if latest.version > self.version:
            now = _transaction_id(self.store, self.version)
        if own is not None and now is not None and own != now:
            raise self._lost(f"another transaction ({now} in place of {own}) has its name", commit_name(self.version))
        return latest

    def _lost(self, what: str, file: str) -> LostVersions:
        return LostVersions(
            f"Table {self.store.url}: version {self.version} was read here before, and now {what}, so the log has lost versions: "
            f"restore {file} and what followed from a backup. To go on with what the log gives now, open the table anew.",
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
