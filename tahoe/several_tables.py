"""Several tables at once, where one coordinator manages them: `transaction` writes all or none, `read_together` reads versions that belong
together (docs/design/034)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, overload

from tahoe.argument_checks import checked_arguments
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import Coordinator
from tahoe.exceptions import InvalidRequest
from tahoe.ops.merge.clauses import MergeBuilder
from tahoe.ops.rows.insert import ArrowData, WriteOptions
from tahoe.ops.rows.row_changes import RowsChanged, Staged
from tahoe.snapshot.readable import Readable
from tahoe.snapshot.snapshot import Snapshot
from tahoe.table import Table
from tahoe.txn.commit import Committed, RetryPolicy
from tahoe.txn.prepare import PreparedCommit, prepare
from tahoe.txn.together import commit_together
from tahoe.txn.transaction import Operation, Transaction

if TYPE_CHECKING:
    from tahoe.expr.condition_forms import Condition
    from tahoe.expr.tree.python_values import SqlValues

__all__ = ["HeldTable", "OnAnEngine", "TableInTransaction", "TablesInTransaction", "read_together", "transaction"]


class OnAnEngine(Protocol):
    """A table as an engine's own front door has it, as `tahoe.DeltaTable` is: what it must tell to be read and written with others."""

    def _plain_table(self) -> Table:
        """The table without the engine."""

    def _in_transaction(self, held: HeldTable) -> Any:
        """What stands for it in a transaction; changes are to be staged and committed through `held`."""

    def _at(self, snapshot: Snapshot) -> Any:
        """One version, as the engine shows it."""


@overload
def read_together(*tables: Table) -> tuple[Snapshot, ...]: ...


@overload
def read_together(*tables: Table | OnAnEngine) -> tuple[Any, ...]: ...


@checked_arguments
def read_together(*tables: Table | OnAnEngine) -> tuple[Any, ...]:
    """The newest versions of tables, all of one moment: no transaction over them is seen in part.

    ``a, b = tahoe.read_together(accounts, ledger); a.scan().to_arrow()``

    Args:
        tables: which one coordinator manages. A `tahoe.DeltaTable` gives a DataFrame of its version, a `tahoe.Table` a `Snapshot`.

    Raises:
        InvalidRequest: ``TAHOE_NOT_ONE_COORDINATOR`` for tables that no coordinator manages, or not one and the same.
    """
    snapshots = _together([_plain(table) for table in tables])
    return tuple(
        snapshot if isinstance(table, Table) else table._at(snapshot) for table, snapshot in zip(tables, snapshots, strict=True)
    )


@checked_arguments
@contextmanager
def transaction(*tables: Table | OnAnEngine, policy: RetryPolicy | None = None) -> Iterator[TablesInTransaction]:
    """A transaction over several tables: when the block ends, all of its changes are visible at once; where it raises, none is made.

    ::

        with tahoe.transaction(accounts, ledger) as t:
            t[accounts].update({"balance": "balance - 10"}, "id = 1")
            t[ledger].append(entry)
        t.versions[ledger.url]

    All reading in the block is of the versions that were the newest when it began, without what the block itself writes. Each table takes
    one change, for it gets one commit. A table that is only read, or only named, must not have changed by the end.

    On Spark the same with `tahoe.DeltaTable` and DataFrames (`tahoe.spark.in_transaction`), and both kinds in one transaction.

    Args:
        tables: which one coordinator manages.
        policy: how long is tried.

    Raises:
        InvalidRequest: ``TAHOE_NOT_ONE_COORDINATOR``, as `read_together`.
        DeltaConcurrentModificationException: another writer was faster with what this one may not be moved past; nothing is committed.
        CommitStateUnknown: see `tahoe.txn.together.commit_together`.
    """
    started_commit = TablesInTransaction(tables, _together([_plain(table) for table in tables]))
    try:
        yield started_commit
        started_commit._commit(policy or RetryPolicy())
    finally:
        started_commit._end()


@checked_arguments
class TablesInTransaction:
    """The tables of one transaction, by the table that was named: ``t[accounts]``."""

    def __init__(self, tables: Sequence[Table | OnAnEngine], snapshots: Sequence[Snapshot]) -> None:
        self._held: dict[str, HeldTable] = {}
        self._shown: dict[str, Any] = {}
        for table, snapshot in zip(tables, snapshots, strict=True):
            held = self._held[snapshot.store.url] = HeldTable(_plain(table), snapshot)
            self._shown[held.url] = TableInTransaction(held) if isinstance(table, Table) else table._in_transaction(held)
        self._versions: Mapping[str, int] | None = None

    @overload
    def __getitem__(self, table: Table) -> TableInTransaction: ...

    @overload
    def __getitem__(self, table: OnAnEngine) -> Any: ...

    def __getitem__(self, table: Table | OnAnEngine) -> Any:
        url = _plain(table).url
        if url not in self._shown:
            raise InvalidRequest(
                f"Table {url} is not in this transaction, which is over {', '.join(self._held)}. Name it where the transaction begins.",
                code="TAHOE_NOT_IN_TRANSACTION",
                table=url,
            )
        return self._shown[url]

    @property
    def versions(self) -> Mapping[str, int]:
        """By URL the version that each table has by this transaction: that of its commit, or the one that was read. Known once it is over."""
        if self._versions is None:
            raise InvalidRequest(
                "The transaction is not committed, so its versions are not known. Ask after its block.",
                code="TAHOE_NOT_IN_TRANSACTION",
            )
        return self._versions

    def _commit(self, policy: RetryPolicy) -> None:
        tables = self._held
        writing = [table for table in tables.values() if table.held is not None]
        versions = {url: table.read.version for url, table in tables.items()}
        if writing:
            committed = commit_together(
                [table.coordinated for table in writing],
                [table.prepared() for table in writing],
                {url: table.read.version for url, table in tables.items() if table.held is None},
                writing[0].clock,
                policy,
            )
            versions |= {table.url: one.version for table, one in zip(writing, committed, strict=True)}
            self._versions = versions
            for table, one in zip(writing, committed, strict=True):
                table.named.after_commit(one)
        self._versions = versions

    def _end(self) -> None:
        for table in self._held.values():
            table.is_over = True


@checked_arguments
class TableInTransaction(Readable):
    """One table in a transaction over several: read as at its beginning, and changed once.

    Its methods are those of `tahoe.Table`, without what a transaction over several tables cannot hold (DDL, OPTIMIZE, VACUUM, RESTORE, …).
    """

    def __init__(self, table: HeldTable) -> None:
        self._table = table

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """The version that the transaction began with, noted as read; or an older one, as `Table.snapshot` gives it."""
        if version is None and timestamp is None:
            self._table.is_read = True
        return self._table.snapshot(version, timestamp)

    def append(self, data: ArrowData, *, merge_schema: bool = False, user_metadata: str | None = None) -> None:
        """See `Table.append`; of no rows nothing is committed."""
        self._table.write(data, WriteOptions("append", merge_schema=merge_schema), user_metadata=user_metadata)

    def overwrite(self, data: ArrowData, *, replace_where: Condition | None = None, user_metadata: str | None = None) -> None:
        """See `Table.overwrite`."""
        self._table.overwrite(data, replace_where=replace_where, user_metadata=user_metadata)

    def delete(self, where: Condition | None = None, *, user_metadata: str | None = None) -> RowsChanged:
        """See `Table.delete`. The counts are those of the version that was read; `RowsChanged.version` is None."""
        return self._table.delete(where, user_metadata=user_metadata)

    def update(self, values: SqlValues, where: Condition | None = None, *, user_metadata: str | None = None) -> RowsChanged:
        """See `Table.update`, and `delete`."""
        return self._table.update(values, where, user_metadata=user_metadata)

    def merge(
        self,
        source: ArrowData,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        user_metadata: str | None = None,
    ) -> MergeBuilder:
        """See `Table.merge`, and `delete`."""
        return self._table.merge(source, on, source_alias=source_alias, target_alias=target_alias, user_metadata=user_metadata)


class HeldTable(Table):
    """A table whose one commit is held until all of a transaction are sent.

    Args:
        named: the table that the caller named.
        read: the version that the transaction began with.
    """

    def __init__(self, named: Table, read: Snapshot) -> None:
        super().__init__("", store=named.store, clock=named.clock, policy=named.policy)
        self.named, self.read = named, read
        self.held: PreparedCommit | None = None
        self.is_read = False
        self.is_over = False

    @property
    def coordinated(self) -> CoordinatedStore:
        """Its storage, as the coordinator sees it."""
        assert isinstance(self.store, CoordinatedStore)
        return self.store

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """The version that the transaction began with, or an older one."""
        return self.read if version is None and timestamp is None else super().snapshot(version, timestamp)

    def begin(self) -> Transaction:
        """See `Table.begin`: on that version. Raises `InvalidRequest` once the transaction over several tables is over."""
        if self.is_over:
            raise InvalidRequest(
                f"The transaction over several tables in which table {self.url} was to be changed is over; nothing was changed now. Change "
                "the table itself, or begin another transaction.",
                code="TAHOE_NOT_IN_TRANSACTION",
                table=self.url,
            )
        return Transaction(self.store, self.read, self.clock)

    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Hold the commit. Raises `InvalidRequest` (``TAHOE_ONE_CHANGE_A_TABLE``) for a second one."""
        if self.held is not None:
            raise InvalidRequest(
                f"Table {self.url} is changed by this transaction already, and a transaction over several tables makes one commit to each. "
                "Bring both changes into one (merge does several), or use two transactions.",
                code="TAHOE_ONE_CHANGE_A_TABLE",
                table=self.url,
            )
        self.held = prepare(transaction, operation, user_metadata=user_metadata)
        return Committed(self.held.version, self.read, self.held.actions, 0, self.held)

    def commit_rows(self, transaction: Transaction, staged: Staged, *, user_metadata: str | None = None) -> RowsChanged:
        """See `Table.commit_rows`; there is no version yet."""
        return replace(super().commit_rows(transaction, staged, user_metadata=user_metadata), version=None)

    def prepared(self) -> PreparedCommit:
        """What is to be sent. Who has read the table himself may have made his changes of any row."""
        assert self.held is not None
        if not self.is_read:
            return self.held
        return replace(
            self.held,
            reads=replace(self.held.reads, whole_table=True),
            is_blind_append=False,
            commit_info={**self.held.commit_info, "isBlindAppend": False},
        )


def _plain(table: Table | OnAnEngine) -> Table:
    return table if isinstance(table, Table) else table._plain_table()


def _together(tables: Sequence[Table]) -> tuple[Snapshot, ...]:
    coordinator = _coordinator_of(tables)
    known = coordinator.managed([table.url for table in tables])
    versions = {url: managed.last_version for url, managed in known.items()}
    return tuple(_at(table, versions[table.url]) for table in tables)


def _at(table: Table, version: int | None) -> Snapshot:
    newest = table.snapshot()
    return newest if newest.version == version else table.snapshot(version)


def _coordinator_of(tables: Sequence[Table]) -> Coordinator:
    """The one coordinator that manages all of the tables."""
    coordinators = [table.store.coordinator for table in tables if isinstance(table.store, CoordinatedStore)]
    alone = [table.url for table in tables if table.store.coordination != "in force"]
    if alone:
        raise InvalidRequest(
            f"Only tables that a coordinator manages can be read and written together; none manages {', '.join(alone)}. Name the coordinator "
            "(tahoe.Table(path, coordinator=…)), and set delta.feature.catalogManaged = supported.",
            code="TAHOE_NOT_ONE_COORDINATOR",
        )
    if len({table.url for table in tables}) < len(tables) or not coordinators:
        raise InvalidRequest("Name each table once, and at least one.", code="TAHOE_NOT_ONE_COORDINATOR")
    if any(other != coordinators[0] for other in coordinators):
        raise InvalidRequest(
            f"The tables {', '.join(table.url for table in tables)} are managed by several coordinators "
            f"({', '.join(sorted({repr(one) for one in coordinators}))}); what is written together is ratified by one.",
            code="TAHOE_NOT_ONE_COORDINATOR",
        )
    return coordinators[0]
