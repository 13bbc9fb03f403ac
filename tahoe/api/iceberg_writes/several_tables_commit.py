"""One transaction of an Iceberg client over several tables, as one Delta commit to each: all of them become visible at once, or none.

The tables need one coordinator (`tahoe.api.several_tables`). A change without effect still depends on its table: the version that met its
requirements must be the newest when the others are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tahoe.api.iceberg_writes.table_commit import commit_change, is_committed
from tahoe.api.several_tables import HeldTable, transaction
from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.commit_requests import TableChange
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.external.metadata_listing import CurrentMetadata

Commit = Callable[[Table, Transaction, Operation], Committed]

_MOST_TABLES = 100


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table of the transaction, with its change.

    Args:
        load: returns the table's Iceberg metadata, and the Delta version that it shows.
    """

    table: Table
    change: TableChange
    load: Callable[[], tuple[CurrentMetadata, Snapshot]]

    def is_committed(self) -> bool:
        """Whether the table has the snapshots of the change already."""
        current, snapshot = self.load()
        return is_committed(Transaction(self.table.store, snapshot, self.table.clock), current.document, self.change)

    def _plain_table(self) -> Table:
        return self.table

    def _in_transaction(self, change: HeldTable) -> HeldTable:
        return change

    def _at(self, snapshot: Snapshot) -> Snapshot:
        return snapshot


def check_changes(changes: Sequence[TableChange]) -> None:
    """Raise `Unsupported` for what no transaction over several tables can be: too many changes, or the creation of a table."""
    if len(changes) > _MOST_TABLES:
        raise Unsupported(
            f"The transaction changes {len(changes)} tables, and the maximum is {_MOST_TABLES}. Commit fewer at once.",
            code="TAHOE_ICEBERG_SEVERAL_TABLES",
        )
    if any(change.creates for change in changes):
        raise Unsupported(
            "The transaction creates a table and changes other tables. Create the table first.",
            code="TAHOE_ICEBERG_SEVERAL_TABLES",
        )


def commit_changes(tables: Sequence[ChangedTable], commit: Commit) -> None:
    """Commit the changes of a transaction, unless its tables have them already.

    Args:
        commit: commits a Delta transaction to a table.

    Raises:
        DeltaConcurrentModificationException: a requirement is not met, or another writer committed first; nothing was committed.
        InvalidRequest: a table is named twice; a change contradicts itself or its table, or rows break a rule of the table.
        Unsupported: a change that a Delta table cannot follow; or the tables are not managed by one coordinator.
    """
    if len({each.table.url for each in tables}) < len(tables):
        raise invalid("The transaction names a table twice. Send one change for each table.")
    if are_committed(tables):
        return
    try:
        with transaction(*tables) as changing:
            for each in tables:
                table: HeldTable = changing[each]
                current, snapshot = each.load()
                commit_change(table, snapshot, current, each.change, partial(commit, table))
    except InvalidRequest as error:
        if error.code != "TAHOE_NOT_ONE_COORDINATOR":
            raise
        raise Unsupported(
            f"The transaction changes {len(tables)} tables, and no coordinator manages all of them. Commit them one by one. Or start the "
            "server with TAHOE_COORDINATOR, and create tables with the property delta.feature.catalogManaged = supported.",
            code="TAHOE_ICEBERG_SEVERAL_TABLES",
        ) from error


def are_committed(tables: Sequence[ChangedTable]) -> bool:
    """Whether the tables have the snapshots that the transaction adds. Raises `InvalidRequest` if only some of them have."""
    adding = [each for each in tables if each.change.snapshots]
    committed = [each.is_committed() for each in adding]
    if any(committed) and not all(committed):
        table = adding[committed.index(True)].table.url
        raise invalid(f"The transaction adds a snapshot that the table {table} has, and others that their tables do not have.")
    return any(committed)
