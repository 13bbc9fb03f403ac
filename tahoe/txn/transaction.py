"""`Transaction`: what one writer has read and wants, collected before anything is decided.

    Transaction ──prepare──► PreparedCommit ──commit──► Committed, or a conflict's own error

The transaction is the only mutable one of the three. It notes what was read, since conflict checking rests on that, and
what shall be written. `tahoe.txn.prepare` turns it into a value, `tahoe.txn.commit` sends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from tahoe.clock import Clock
from tahoe.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import Predicate
from tahoe.log.segment import no_table
from tahoe.protocol.actions import Action, AddFile, Metadata, Protocol, RemoveFile, SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import NO_ROW_IDS
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from pyroaring import BitMap64

__all__ = ["SERIALIZABLE", "SNAPSHOT_ISOLATION", "WRITE_SERIALIZABLE", "FileKey", "Operation", "ReadSet", "Transaction"]

SERIALIZABLE = "Serializable"
WRITE_SERIALIZABLE = "WriteSerializable"
SNAPSHOT_ISOLATION = "SnapshotIsolation"

FileKey = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Operation:
    """What the user did, in the reference's words, for commitInfo and history.

    Args:
        name: ``WRITE``, ``CREATE TABLE``, …
        parameters: raw JSON values; collections are JSON text, as the reference has them.
        metrics: counts and bytes; written as text.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What a transaction has read of its snapshot.

    Args:
        predicates: each says which rows were looked for; a winner's new rows for which one is true conflict.
        whole_table: everything was read.
        file_keys: logical files all of whose rows were read.
        rows: logical files of which only some rows were read: by physical position, deleted rows left out.
        app_ids: applications whose last version was asked for.
    """

    predicates: tuple[Predicate, ...] = ()
    whole_table: bool = False
    file_keys: frozenset[FileKey] = frozenset()
    rows: Mapping[FileKey, BitMap64] = field(default_factory=dict)
    app_ids: frozenset[str] = frozenset()

    @property
    def has_read_data(self) -> bool:
        """Whether any row or file was looked at; what only applications have written does not count."""
        return self.whole_table or bool(self.predicates) or bool(self.file_keys) or bool(self.rows)


class Transaction:
    """One attempt to change a table, on the snapshot that it started from.

    Args:
        store: the table's storage.
        snapshot: the version that the change starts from; None for a table that is not there yet.
        clock: time and names.

    Attributes:
        isolation_level: ``Serializable``, the only one that a table can ask for, or ``WriteSerializable``: blind appends that
            win a race do not count as read. `prepare` lowers it where a commit only rearranges data.
        may_be_moved: False for a commit that may take no other version than the next (a restored or cloned table).
        looks_for: which of the files that it adds are looked for before it is sent (`tahoe.txn.vanished`): ``old`` ones; ``all`` of a
            commit with files from before its snapshot; ``none``, where files may be gone.
        row_id_mark: the highest row id that files bring with them from another table.
        row_ids_kept: whether rows that the commit moves to other files have their row ids with them.
        enforces: the table features whose demands on rows the writer has checked (`TableConfig.ensure_writable`).
        marks: by the physical name of identity columns the last value that the staged rows have been handed out.
        future: metadata, protocol and marks, and the table as it will be with them; kept by `tahoe.txn.prepare.future_config`.
    """

    def __init__(self, store: LogStore, snapshot: Snapshot | None, clock: Clock) -> None:
        self.store = store
        self.snapshot = snapshot
        self.clock = clock
        self.reads = ReadSet()
        self.protocol: Protocol | None = None
        self.metadata: Metadata | None = None
        self.staged: list[Action] = []
        self.isolation_level = SERIALIZABLE
        self.may_be_moved = True
        self.looks_for: Literal["old", "all", "none"] = "old"
        self.row_ids_kept = False
        self.row_id_mark = NO_ROW_IDS
        self.enforces: frozenset[str] = frozenset()
        self.marks: Mapping[str, int] = {}
        self.future: tuple[tuple[object, ...], TableConfig] | None = None
        self._writable: list[tuple[TableConfig, frozenset[str]]] = []

    def __repr__(self) -> str:
        version = "none" if self.snapshot is None else self.snapshot.version
        return f"Transaction({self.store.url}, read version {version}, {len(self.staged)} actions staged)"

    def existing(self) -> Snapshot:
        """The version that the change starts from. Raises `NotFound` (`DELTA_TABLE_NOT_FOUND`) where there is no table."""
        if self.snapshot is None:
            raise no_table(self.store.url)
        return self.snapshot

    def ensure_writable(self, config: TableConfig, enforced: frozenset[str]) -> None:
        """As `TableConfig.ensure_writable`, which is asked once of a config: whoever enforces more may write it too.

        Args:
            config: of the version that the change starts from, or of the one that it makes.
        """
        if not any(asked is config and less <= enforced for asked, less in self._writable):
            config.ensure_writable(enforced)
            self._writable.append((config, enforced))

    def read_whole_table(self) -> None:
        """Note that everything was read."""
        self.reads = replace(self.reads, whole_table=True)

    def read(self, predicate: Predicate) -> None:
        """Note that rows matching `predicate` were looked for.

        The operation must not depend on rows for which it is not true, so a weaker predicate than its condition is safe and a
        stronger one is not. Every file that has such rows is noted too, by `read_files` or `read_rows`.
        """
        self.reads = replace(self.reads, predicates=(*self.reads.predicates, predicate))

    def read_files(self, keys: Iterable[FileKey]) -> None:
        """Note the logical files on all of whose rows the operation depends."""
        self.reads = replace(self.reads, file_keys=self.reads.file_keys | frozenset(keys))

    def read_rows(self, key: FileKey, positions: BitMap64) -> None:
        """Note that the operation depends on no rows of a logical file but these, so that others may change beside it.

        Args:
            positions: physical positions in the file: every row that was matched, whether it is changed or not. None at all says
                that the file was looked at and nothing in it mattered.
        """
        known = self.reads.rows.get(key)
        both = positions.copy() if known is None else known | positions
        self.reads = replace(self.reads, rows={**self.reads.rows, key: both})

    def read_app(self, app_id: str) -> int | None:
        """The newest version that an application has written, None for none; noted as read."""
        self.reads = replace(self.reads, app_ids=self.reads.app_ids | {app_id})
        found = self.snapshot.state.transactions.get(app_id) if self.snapshot else None
        return found.version if found else None

    def set_metadata(self, metadata: Metadata) -> None:
        """Exchange the table's metadata; the protocol is raised by `prepare` where the metadata needs it."""
        self.metadata = metadata

    def set_protocol(self, protocol: Protocol) -> None:
        """Exchange the table's protocol; `prepare` raises it further where the metadata needs more."""
        self.protocol = protocol

    def number(self, column: str, last: int) -> None:
        """Note that values of an identity column were handed out to rows of this transaction.

        Args:
            column: its physical name.
            last: the value that lies furthest in the direction of its step, further than every one noted before.
        """
        self.marks = {**self.marks, column: last}

    def stage(self, *actions: Action) -> None:
        """Add file actions, transaction identifiers or metadata domains to the commit."""
        for action in actions:
            if isinstance(action, (Protocol, Metadata)):
                raise InvalidRequest("Use set_metadata or set_protocol for these actions.", code="TAHOE_NOT_STAGED_SO")
        self.staged.extend(actions)

    def stage_app(self, app_id: str, version: int) -> None:
        """Record that the application `app_id` has written `version` with this commit."""
        self.stage(SetTransaction(app_id, version, self.clock.now_ms()))

    @property
    def adds(self) -> list[AddFile]:
        """The files staged to join the table."""
        return [action for action in self.staged if isinstance(action, AddFile)]

    @property
    def removes(self) -> list[RemoveFile]:
        """The files staged to leave it."""
        return [action for action in self.staged if isinstance(action, RemoveFile)]
