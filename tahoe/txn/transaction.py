"""`Transaction`: the reads and changes of one writer, collected before anything is checked.

    Transaction ──prepare──► PreparedCommit ──commit──► Committed, or a conflict's own error

The transaction is the only mutable one of the three. It records reads, on which conflict detection depends, and
changes. `tahoe.txn.prepare` turns it into a value, `tahoe.txn.commit` sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tahoe.base.clock import Clock, Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import Predicate
from tahoe.log.files.removed_files import AddedFiles, LiveFiles, RemovedFiles, joined
from tahoe.log.segment import no_table
from tahoe.protocol.actions import Action, AddFile, Metadata, Protocol, RemoveFile, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import NO_ROW_IDS
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64


SERIALIZABLE = "Serializable"
WRITE_SERIALIZABLE = "WriteSerializable"
SNAPSHOT_ISOLATION = "SnapshotIsolation"

FileKey = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Operation:
    """The user's operation, named as in the reference, for commitInfo and history.

    Args:
        name: ``WRITE``, ``CREATE TABLE``, …
        parameters: raw JSON values; collections are JSON text, as in the reference.
        metrics: counts and bytes; written as text.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """The reads of a transaction from its snapshot.

    Args:
        predicates: conditions on rows that were read; a concurrent commit's new rows for which one is true conflict.
        whole_table: everything was read.
        all_rows: any row may have been read, wherever it is: a concurrent commit that changes rows conflicts, one that only rearranges
            them does not.
        file_keys: logical files of which all rows were read.
        rows: logical files of which only some rows were read: by physical position, without deleted rows.
        app_ids: applications whose last version was read.
    """

    predicates: tuple[Predicate, ...] = ()
    whole_table: bool = False
    all_rows: bool = False
    file_keys: frozenset[FileKey] = frozenset()
    rows: Mapping[FileKey, BitMap64] = field(default_factory=dict)
    app_ids: frozenset[str] = frozenset()

    @property
    def has_read_data(self) -> bool:
        """Whether any row or file was read; application versions do not count."""
        return self.whole_table or self.all_rows or bool(self.predicates) or bool(self.file_keys) or bool(self.rows)


class Transaction:
    """One attempt to change a table, based on a snapshot.

    Args:
        store: the table's storage.
        snapshot: the version that the change is based on; None for a new table.
        clock: provides times and UUIDs.
        time_zone: of the session, in which expressions read the wall clock of a timestamp.

    Attributes:
        staged: the actions of the commit but protocol, metadata, `removed` and `added`.
        removed, added: further files to be removed or added, of which there may be millions.
        isolation_level: ``Serializable``, the only level that a table can request, or ``WriteSerializable``: concurrent blind appends
            do not count as read. `prepare` lowers it for a commit that only rearranges data.
        may_be_moved: False for a commit that must be the next version (a restored or cloned table).
        looks_for: the added files whose existence is checked before the commit (`tahoe.txn.vanished`): ``old`` ones; ``all`` for a
            commit with files from before its snapshot; ``none`` if files may be missing.
        row_id_mark: the highest row id of files from another table.
        row_ids_kept: whether rows that the commit moves to other files keep their row ids.
        enforces: the table features whose requirements on rows the writer has checked (`TableConfig.ensure_writable`).
        marks: by the physical name of identity columns, the last value assigned to staged rows.
        inputs: URLs of the tables and folders whose rows the transaction writes, as far as they are known. For lineage; not written.
        future: metadata, protocol and marks, and the resulting configuration; cached by `tahoe.txn.prepare.future_config`.
    """

    def __init__(self, store: LogStore, snapshot: Snapshot | None, clock: Clock, time_zone: str = "UTC") -> None:
        self.store = store
        self.snapshot = snapshot
        self.clock = clock
        self.time_zone = time_zone
        self.reads = ReadSet()
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.staged: list[Action] = []
        self.removed: list[RemovedFiles] = []
        self.added: list[AddedFiles] = []
        self.isolation_level = SERIALIZABLE
        self.may_be_moved = True
        self.looks_for: Literal["old", "all", "none"] = "old"
        self.row_ids_kept = False
        self.row_id_mark = NO_ROW_IDS
        self.enforces: frozenset[str] = frozenset()
        self.marks: Mapping[str, int] = {}
        self.inputs: tuple[str, ...] = ()
        self.future: tuple[tuple[object, ...], TableConfig] | None = None
        self._rows: dict[FileKey, BitMap64] = {}  # those of `reads`: one dictionary, as they may be of very many files
        self._writable: list[tuple[TableConfig, frozenset[str]]] = []

    def __repr__(self) -> str:
        version = "none" if self.snapshot is None else self.snapshot.version
        return f"Transaction({self.store.url}, read version {version}, {len(self.staged)} actions staged)"

    def moment(self) -> Moment:
        """Return the present time and the time zone."""
        return Moment(self.clock.now_ms(), self.time_zone)

    def existing(self) -> Snapshot:
        """Return the version that the change is based on. Raises `NotFound` (`DELTA_TABLE_NOT_FOUND`) if there is no table."""
        if self.snapshot is None:
            raise no_table(self.store.url)
        return self.snapshot

    def ensure_writable(self, config: TableConfig, enforced: frozenset[str]) -> None:
        """Like `TableConfig.ensure_writable`, called once per config: a writer that enforces more may write it too.

        Args:
            config: the configuration of the snapshot, or of the new version.
        """
        if not any(asked is config and less <= enforced for asked, less in self._writable):
            config.ensure_writable(enforced)
            self._writable.append((config, enforced))

    def read_whole_table(self) -> None:
        """Record that everything was read."""
        self.reads = replace(self.reads, whole_table=True)

    def read_all_rows(self) -> None:
        """Record that any row may have been read. The files that matter for another reason are recorded too."""
        self.reads = replace(self.reads, all_rows=True)

    def read(self, predicate: Predicate) -> None:
        """Record that rows matching `predicate` were read.

        The operation must not depend on rows for which it is not true, so a weaker predicate than its condition is safe and a
        stronger one is not. Every file that has such rows must be recorded too, by `read_files` or `read_rows`.
        """
        self.reads = replace(self.reads, predicates=(*self.reads.predicates, predicate))

    def read_files(self, keys: Iterable[FileKey]) -> None:
        """Record the logical files on all of whose rows the operation depends."""
        self.reads = replace(self.reads, file_keys=self.reads.file_keys | frozenset(keys))

    def read_rows(self, key: FileKey, positions: BitMap64) -> None:
        """Record that the operation depends only on these rows of a logical file, so that other rows may change concurrently.

        Args:
            positions: physical positions in the file: every row that was matched, whether it is changed or not. If empty, the file was
                read and no row mattered.
        """
        earlier = self.reads.rows.get(key)
        if self.reads.rows is not self._rows:
            self._rows = dict(self.reads.rows)
            self.reads = replace(self.reads, rows=self._rows)
        self._rows[key] = positions.copy() if earlier is None else earlier | positions

    def read_app(self, app_id: str) -> int | None:
        """Return the newest version that an application has written, or None, and record the read."""
        self.reads = replace(self.reads, app_ids=self.reads.app_ids | {app_id})
        written = self.snapshot.state.transactions.get(app_id) if self.snapshot else None
        return written.version if written else None

    def set_metadata(self, metadata: Metadata) -> None:
        """Replace the table's metadata; `prepare` raises the protocol as the metadata requires."""
        self.metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Replace the table's protocol; `prepare` raises it further if the metadata requires it."""
        self.protocol = protocol

    def number(self, column: str, last: int) -> None:
        """Record that values of an identity column were assigned to rows of this transaction.

        Args:
            column: its physical name.
            last: the last value in the direction of its step, beyond every one recorded before.
        """
        self.marks = {**self.marks, column: last}

    def stage(self, *actions: Action) -> None:
        """Add file actions, transaction identifiers or metadata domains to the commit."""
        for action in actions:
            if isinstance(action, (Protocol, Metadata)):
                raise InvalidRequest("Use set_metadata or set_protocol for these actions.", code="TAHOE_NOT_STAGED_SO")
        self.staged.extend(actions)

    def stage_files(self, removed: Sequence[AddFile], added: Sequence[AddFile]) -> None:
        """Add files of the table, or of another version or table, to the commit. `LiveFiles` and `AddedFiles` stay columns.

        Args:
            removed: live files to be removed, with all their rows.
        """
        now_ms = self.clock.now_ms()
        if isinstance(removed, LiveFiles):
            self.removed.append(RemovedFiles(removed, now_ms))
        else:
            self.stage(*(add.remove(now_ms) for add in removed))
        if isinstance(added, AddedFiles):
            self.added.append(added)
        else:
            self.stage(*added)

    def stage_app(self, app_id: str, version: int) -> None:
        """Record that the application `app_id` has written `version` with this commit."""
        self.stage(SetTransaction(app_id, version, self.clock.now_ms()))

    @property
    def adds(self) -> Sequence[AddFile]:
        """The staged files to be added."""
        return joined([action for action in self.staged if isinstance(action, AddFile)], *self.added)

    @property
    def removes(self) -> Sequence[RemoveFile]:
        """The staged files to be removed."""
        return joined([action for action in self.staged if isinstance(action, RemoveFile)], *self.removed)
