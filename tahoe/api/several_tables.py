"""Transactions and consistent reads over several tables that one coordinator manages (docs/design/034).

`transaction` commits to all of its tables or to none; `read_together` returns versions that belong together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, overload

from tahoe.api.readable import Readable
from tahoe.api.table import Table
from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.coordinator import Coordinator
from tahoe.ops.merge.clauses import MergeBuilder
from tahoe.ops.rows.insert import ArrowData, WriteOptions
from tahoe.ops.rows.row_changes import RowsChanged, Staged
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed, RetryPolicy
from tahoe.txn.prepare import PreparedCommit, prepare
from tahoe.txn.together import commit_together
from tahoe.txn.transaction import Operation, Transaction

if TYPE_CHECKING:
    from tahoe.expr.condition_forms import Condition
    from tahoe.expr.tree.python_values import SqlValues


class OnAnEngine(Protocol):
    """Interface of an engine's table class, such as `tahoe.DeltaTable`, which lets it take part in reads and writes of several tables."""

    def _plain_table(self) -> Table:
        """Return the table without the engine."""

    def _in_transaction(self, change: HeldTable) -> Any:
        """Return the object that represents the table in a transaction; it stages and commits its changes through `change`."""

    def _at(self, snapshot: Snapshot) -> Any:
        """Return one version in the form that the engine reads, such as a DataFrame."""


@overload
def read_together(*tables: Table) -> tuple[Snapshot, ...]: ...


@overload
def read_together(*tables: Table | OnAnEngine) -> tuple[Any, ...]: ...


@checked_arguments
def read_together(*tables: Table | OnAnEngine) -> tuple[Any, ...]:
    """Return the newest versions of tables as of one point in time: a transaction over them is visible in all of them or in none.

    ``a, b = tahoe.read_together(accounts, ledger); a.scan().to_arrow()``

    Args:
        tables: tables that one coordinator manages. The result for a `tahoe.DeltaTable` is a DataFrame, that for a `tahoe.Table` a
            `Snapshot`.

    Raises:
        InvalidRequest: ``TAHOE_NOT_ONE_COORDINATOR``: the tables have no coordinator, or different ones.
    """
    snapshots = _together([_plain(table) for table in tables])
    return tuple(
        snapshot if isinstance(table, Table) else table._at(snapshot) for table, snapshot in zip(tables, snapshots, strict=True)
    )


@checked_arguments
@contextmanager
def transaction(*tables: Table | OnAnEngine, policy: RetryPolicy | None = None) -> Iterator[TablesInTransaction]:
    """Run a transaction over several tables: all of its changes become visible at once when the block ends, and none if it raises.

    ::

        with tahoe.transaction(accounts, ledger) as t:
            t[accounts].update({"balance": "balance - 10"}, "id = 1")
            t[ledger].append(entry)
        t.versions[ledger.url]

    Reads in the block return the versions that were the newest when it began, without the block's own changes. Each table can be
    changed once, because it gets one commit. A table that is only read, or only named, must not have changed when the block ends.

    On Spark the tables are `tahoe.DeltaTable` values and DataFrames (`tahoe.spark.in_transaction`); one transaction can mix both kinds.

    Args:
        tables: tables that one coordinator manages.
        policy: the number and duration of attempts to commit.

    Raises:
        InvalidRequest: ``TAHOE_NOT_ONE_COORDINATOR``, as `read_together`.
        DeltaConcurrentModificationException: a concurrent commit conflicts with this transaction; nothing is committed.
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
    """The tables of one transaction, indexed by the table that the caller passed: ``t[accounts]``."""

    def __init__(self, tables: Sequence[Table | OnAnEngine], snapshots: Sequence[Snapshot]) -> None:
        self._held: dict[str, HeldTable] = {}
        self._shown: dict[str, Any] = {}
        for table, snapshot in zip(tables, snapshots, strict=True):
            opened = self._held[snapshot.store.url] = HeldTable(_plain(table), snapshot)
            self._shown[opened.url] = TableInTransaction(opened) if isinstance(table, Table) else table._in_transaction(opened)
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
        """The version of each table by URL, available after the block: that of its commit, or the one that was read if it was not changed."""
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
            versions |= {table.url: commit.version for table, commit in zip(writing, committed, strict=True)}
            self._versions = versions
            for table, commit in zip(writing, committed, strict=True):
                table.named.after_commit(commit)
        self._versions = versions

    def _end(self) -> None:
        for table in self._held.values():
            table.is_over = True


@checked_arguments
class TableInTransaction(Readable):
    """One table in a transaction over several: it is read as of the transaction's beginning, and can be changed once.

    Its methods are those of `tahoe.Table`, except for operations that cannot be part of such a transaction (DDL, OPTIMIZE, VACUUM,
    RESTORE, …).
    """

    def __init__(self, table: HeldTable) -> None:
        self._table = table
        self.clock = table.clock
        self.time_zone = table.time_zone

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the version that the transaction began with, and record that it was read; or an older one, as `Table.snapshot`."""
        if version is None and timestamp is None:
            self._table.is_read = True
        return self._table.snapshot(version, timestamp)

    def append(self, data: ArrowData, *, merge_schema: bool = False, user_metadata: str | None = None) -> None:
        """See `Table.append`; without rows, nothing is committed."""
        self._table.write(data, WriteOptions("append", merge_schema=merge_schema), user_metadata=user_metadata)

    def overwrite(self, data: ArrowData, *, replace_where: Condition | None = None, user_metadata: str | None = None) -> None:
        """See `Table.overwrite`."""
        self._table.overwrite(data, replace_where=replace_where, user_metadata=user_metadata)

    def delete(self, where: Condition | None = None, *, user_metadata: str | None = None) -> RowsChanged:
        """See `Table.delete`. The counts refer to the version that was read; `RowsChanged.version` is None."""
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
    """A table that keeps its one commit until the transaction sends the commits of all tables.

    Args:
        named: the table that the caller passed.
        read: the version that the transaction began with.
    """

    def __init__(self, named: Table, read: Snapshot) -> None:
        super().__init__("", store=named.store, clock=named.clock, policy=named.policy, time_zone=named.time_zone)
        self.named, self.read = named, read
        self.held: PreparedCommit | None = None
        self.is_read = False
        self.is_over = False

    @property
    def coordinated(self) -> CoordinatedStore:
        """The store of the table, which asks the coordinator."""
        assert isinstance(self.store, CoordinatedStore)
        return self.store

    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the version that the transaction began with, or an older one."""
        return self.read if version is None and timestamp is None else super().snapshot(version, timestamp)

    def begin(self) -> Transaction:
        """See `Table.begin`; starts from the version that was read. Raises `InvalidRequest` after the transaction's block."""
        if self.is_over:
            raise InvalidRequest(
                f"The transaction over several tables in which table {self.url} was to be changed is over; nothing was changed now. Change "
                "the table itself, or begin another transaction.",
                code="TAHOE_NOT_IN_TRANSACTION",
                table=self.url,
            )
        return Transaction(self.store, self.read, self.clock, self.time_zone)

    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Prepare the commit without sending it. Raises `InvalidRequest` (``TAHOE_ONE_CHANGE_A_TABLE``) for a second one."""
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
        """See `Table.commit_rows`; the version is None until the transaction commits."""
        return replace(super().commit_rows(transaction, staged, user_metadata=user_metadata), version=None)

    def prepared(self) -> PreparedCommit:
        """Return the commit to send. After an explicit read the changes may depend on any row, so it counts as a read of the whole table."""
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
    managed_by_url = coordinator.managed([table.url for table in tables])
    versions = {url: managed.last_version for url, managed in managed_by_url.items()}
    return tuple(_at(table, versions[table.url]) for table in tables)


def _at(table: Table, version: int | None) -> Snapshot:
    newest = table.snapshot()
    return newest if newest.version == version else table.snapshot(version)


def _coordinator_of(tables: Sequence[Table]) -> Coordinator:
    """Return the coordinator that manages all of the tables; `InvalidRequest` if there is none or more than one."""
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
            f"({', '.join(sorted({repr(other) for other in coordinators}))}); what is written together is ratified by one.",
            code="TAHOE_NOT_ONE_COORDINATOR",
        )
    return coordinators[0]
