"""`IcebergWriter`: changes the Delta tables of a warehouse as Iceberg clients request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock

from tahoe.api.iceberg_writes.register_table import is_registered, metadata_file, register_table
from tahoe.api.iceberg_writes.several_tables_commit import ChangedTable, are_committed, check_changes, commit_changes
from tahoe.api.iceberg_writes.table_commit import commit_change, create_table, has_snapshot, is_behind
from tahoe.api.iceberg_writes.table_definition import delta_metadata, refuse_other_files, stage_creation, staged_document
from tahoe.api.table import Table
from tahoe.base.exceptions import CommitStateUnknown, DeltaConcurrentModificationException, InvalidRequest, NotFound, TahoeError
from tahoe.log.intents import SLOW
from tahoe.txn.commit import Committed
from tahoe.txn.fairness import EXPIRY_MS, Turn
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.commit_requests import NewTable, TableChange
from tahoe.uniform.external.metadata_listing import CurrentMetadata
from tahoe.uniform.serve.access import NO_TOKENS, Tokens
from tahoe.uniform.serve.warehouse import Namespace, Warehouse
from tahoe.uniform.serve.writable_catalog import ChangeOfTable, StagedTable, WritableCatalog

_MOST_TURNS = 100
"""The maximum number of tables for which a turn is asked at one time."""


def writable_catalog(warehouse: Warehouse, open_table: Callable[[str], Table], tokens: Tokens = NO_TOKENS) -> WritableCatalog:
    """Return the catalog of a warehouse that Iceberg clients write to; arguments as of `WritableCatalog` and `IcebergWriter`."""
    return WritableCatalog(warehouse, IcebergWriter(warehouse, open_table), tokens)


class IcebergWriter:
    """Implements `tahoe.uniform.serve.writable_catalog.TableWriter`.

    Args:
        warehouse: the tables.
        open_table: returns the table at a URL.
    """

    def __init__(self, warehouse: Warehouse, open_table: Callable[[str], Table]) -> None:
        self._warehouse = warehouse
        self._open = open_table
        self._turns = _Turns()

    def create(self, namespace: Namespace, table: NewTable) -> CurrentMetadata | StagedTable:
        """Create a table with UniForm, or stage it; return its metadata.

        Raises:
            NotFound: there is no such namespace.
            InvalidRequest: there is a table of that name, or the definition is invalid.
            Unsupported: a type, partitioning or property that Delta does not have.
        """
        opened = self._open(self._warehouse.new_url(namespace, table.name))
        metadata = delta_metadata(table, opened.url, opened.clock)
        refuse_other_files(opened.store)
        if table.is_staged:
            self._warehouse.prepare_folder(namespace, table.name)
            return StagedTable(staged_document(metadata, table, opened.url))
        transaction = Transaction(opened.store, None, opened.clock)
        committed = opened.commit(transaction, stage_creation(transaction, metadata, table.client))
        return self._shown(namespace, table.name, committed)

    def register(self, namespace: Namespace, name: str, location: str) -> CurrentMetadata:
        """Make the Iceberg table in the folder of a name a Delta table with UniForm, or bring back a dropped table; return its metadata.

        Raises:
            NotFound: there is no such namespace or metadata file.
            InvalidRequest: there is a table of that name, or the metadata file is not the newest one.
            Unsupported: the metadata file is elsewhere, or the table has something that Delta does not support.
        """
        table = self._open(self._warehouse.folder_url(namespace, name))
        file = metadata_file(table.url, location)
        if is_registered(table):
            self._warehouse.new_url(namespace, name)  # raises: there is a table of that name
        if not self._warehouse.restore_dropped(namespace, name, file):
            register_table(table, file)
        return self._warehouse.load(namespace, name)

    def commit(self, namespace: Namespace, name: str, change: TableChange) -> CurrentMetadata:
        """Commit a change of a table; return the metadata of the newest version, which has the change."""
        if change.creates and not self._warehouse.has_table(namespace, name):
            created = create_table(self._open(self._warehouse.new_url(namespace, name)), name, change)
            return self._shown(namespace, name, created)
        current, snapshot = self._warehouse.load_with_version(namespace, name)
        table = self._open(self._warehouse.url_of(namespace, name))
        try:
            committed = commit_change(table, snapshot, current, change, partial(self._committed, table))
        except NotFound as error:  # a file that the request names, and not the table
            raise InvalidRequest(error.message, code="TAHOE_ICEBERG_FILE", table=table.url) from error
        except DeltaConcurrentModificationException:
            # The same request, sent again before its first answer, may have been the faster one.
            now = self._warehouse.load(namespace, name)
            if has_snapshot(now.document, change):
                return now
            if is_behind(now.document, change):
                self._turns.ask(table)
            raise
        return current if committed is None else self._shown(namespace, name, committed)

    def commit_all(self, changes: Sequence[ChangeOfTable]) -> None:
        """Commit the changes of a transaction; all of them, or none."""
        if len(changes) == 1:
            self.commit(changes[0].namespace, changes[0].name, changes[0].change)
            return
        check_changes([each.change for each in changes])
        tables = [self._changed_table(each) for each in changes]
        try:
            commit_changes(tables, self._committed)
        except NotFound as error:  # a file that the request names, and not a table
            raise InvalidRequest(error.message, code="TAHOE_ICEBERG_FILE") from error
        except DeltaConcurrentModificationException:
            if are_committed(tables):
                return
            for each in tables:
                if is_behind(each.load()[0].document, each.change):
                    self._turns.ask(each.table)
            raise

    def _changed_table(self, change: ChangeOfTable) -> ChangedTable:
        load = partial(self._warehouse.load_with_version, change.namespace, change.name)
        return ChangedTable(self._open(self._warehouse.url_of(change.namespace, change.name)), change.change, load)

    def _committed(self, table: Table, transaction: Transaction, operation: Operation) -> Committed:
        if transaction.removes:
            self._turns.withdraw(table)
        return table.commit(transaction, operation)

    def _shown(self, namespace: Namespace, name: str, committed: Committed) -> CurrentMetadata:
        """Return the metadata of a committed version. The commit exists whatever happens here."""
        try:
            return self._warehouse.load_committed(namespace, name, committed.snapshot)
        except TahoeError as error:
            raise CommitStateUnknown(
                f"Version {committed.version} of table {name} is committed, and cannot be shown as Iceberg at the moment: {error.message}",
                transaction_id="",
                version=committed.version,
                resolve=lambda: True,
            ) from error


class _Turns:
    """Requests to other writers, by table, to wait while a client that lost a race reads the table again.

    A client takes many times longer than a writer through Delta, and would always lose. Every writer waits for a bounded time, and no
    commit depends on it (`tahoe.txn.fairness`): at first for a client that may never come back, then longer for one that came back and lost
    again.
    """

    def __init__(self) -> None:
        self._turns: dict[str, tuple[Turn, int]] = {}  # with the time of asking
        self._lock = Lock()

    def ask(self, table: Table) -> None:
        """Ask other writers to wait, or ask again."""
        now = table.clock.now_ms()
        with self._lock:
            before = self._turns.pop(table.url, None)
            has_come_back = before is not None and now - before[1] < EXPIRY_MS
            turn = Turn(table.store, table.clock.uuid() + (SLOW if has_come_back else ""), table.clock, 0, 0)
            self._turns[table.url] = turn, now
            oldest = self._turns.pop(next(iter(self._turns))) if len(self._turns) > _MOST_TURNS else None
        turn.ask()
        for each in (before, oldest):
            if each is not None:
                each[0].withdraw()

    def withdraw(self, table: Table) -> None:
        """Let other writers go on, since a change that might lose again is about to be committed."""
        with self._lock:
            turn = self._turns.pop(table.url, None)
        if turn is not None:
            turn[0].withdraw()
