"""One commit of an Iceberg client to one table, as one Delta commit.

    requirements ─► snapshots ─► files added and removed ─► Transaction on the version that the client saw ─► Delta commit

The client's snapshot id is the application id of the commit, so a repeated request commits nothing. Appended files need no certain version.
A change of existing rows needs the rows that the client saw, since its condition is unknown: the transaction is rebased past commits that
only rearrange rows in other files, and any other concurrent commit is a conflict, after which the client retries. A client's own
rearrangement of rows is rebased past every commit that leaves its files alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from tahoe.api.iceberg_writes.snapshot_actions import SnapshotActions, application, conflict, refuse_present
from tahoe.api.iceberg_writes.table_definition import (
    delta_metadata,
    new_definition,
    refuse_other_files,
    stage_creation,
    stage_definition,
    stage_replaced_definition,
    staged_document,
)
from tahoe.api.table import Table
from tahoe.base.exceptions import NotFound, Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.log.files.commits import read_commits
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import remove_files
from tahoe.ops.upkeep.restore import RestoreRequest, restore
from tahoe.protocol.features import ENFORCED
from tahoe.protocol.iceberg_compat import uniform_is_enabled
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.concurrent_commit import ConcurrentCommit
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.commit_requests import AddedSnapshot, TableChange, check_partitioning
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.commits.requirements import unmet
from tahoe.uniform.external.metadata_listing import CurrentMetadata
from tahoe.uniform.formats.metadata import snapshot_version, snapshot_with_id

Commit = Callable[[Transaction, Operation], Committed]

_MOST_BEHIND = 100
"""A change of existing rows is rebased past at most so many versions."""


def commit_change(
    table: Table, snapshot: Snapshot, current: CurrentMetadata, change: TableChange, commit: Commit
) -> Committed | None:
    """Commit a change of a table; return None if the table has it already.

    Args:
        snapshot: the version that `current` shows.
        current: the table's Iceberg metadata, of its newest version.
        commit: commits a transaction to the table.

    Raises:
        DeltaConcurrentModificationException: a requirement is not met, or another writer committed first.
        InvalidRequest: the request contradicts itself or the table, or rows break a rule of the table.
        Unsupported: a change that a Delta table cannot follow.
    """
    if not uniform_is_enabled(snapshot.config.properties):
        raise Unsupported(
            f"The table {table.url} has no UniForm: the server shows it to Iceberg clients, which cannot commit to it. Enable UniForm: "
            "Table.uniform.upgrade.",
            code="TAHOE_UNIFORM_NOT_ENABLED",
            table=table.url,
        )
    transaction = Transaction(table.store, snapshot, table.clock)
    if is_committed(transaction, current.document, change):
        return None
    actions = SnapshotActions(transaction, current.document, _line(change))
    _check_requirements(current.document, change, actions)
    _check_identity(current.document, change)
    if change.replaces:
        return commit(transaction, _stage_replacement(transaction, current.document, change))
    check_partitioning(current.document, change)
    if change.main is not None and not actions.line:
        return _restored(commit, transaction, current.document, change)
    if actions.line and not actions.appends:
        transaction = _on_version_seen(table, snapshot, actions)
        actions = replace(actions, transaction=transaction)
    transaction.enforces = ENFORCED
    operation = stage_definition(transaction, current.document, change)
    transaction.may_be_moved = bool(actions.line) and operation is None
    if actions.line:
        operation = actions.stage()
        if transaction.snapshot is not snapshot:
            stay = {remove.path for remove in transaction.removes}  # files of which more rows are deleted
            refuse_present(snapshot, [add.path for add in transaction.adds if add.path not in stay])
    return None if operation is None else commit(transaction, operation)


def _on_version_seen(table: Table, newest: Snapshot, actions: SnapshotActions) -> Transaction:
    """Return a transaction on the version whose rows the client saw; the commit is rebased past the versions after it."""
    parent = actions.parent
    seen = newest
    if parent is not None and parent["snapshot-id"] != actions.document.get("current-snapshot-id"):
        version = snapshot_version(parent)
        problem = f"The snapshot {parent['snapshot-id']}, which the new one changes, is not the newest."
        if newest.version - version > _MOST_BEHIND:
            raise conflict(problem)
        try:
            seen = table.snapshot(version)
            since = [
                ConcurrentCommit(number, tuple(commit))
                for number, commit in read_commits(table.store, range(version + 1, newest.version + 1))
            ]
        except NotFound as error:  # the log has been cleaned up
            raise conflict(problem) from error
        # The commit itself decides; this refuses most requests before any row is read.
        if seen.metadata != newest.metadata or (actions.changes_data and not all(each.only_rearranges for each in since)):
            raise conflict(problem)
    transaction = Transaction(table.store, seen, table.clock)
    for each in actions.line:
        transaction.read_app(application(each))
    return transaction


def _stage_replacement(transaction: Transaction, document: JsonMapping, change: TableChange) -> Operation:
    """Stage the removal of all rows, another definition of the table, and the rows of the added snapshots."""
    snapshot = transaction.existing()
    snapshot.config.refuse_if_append_only()
    transaction.enforces = ENFORCED
    transaction.read_whole_table()
    replaced, operation = stage_replaced_definition(transaction, document, change)
    line = _line(change)
    if not line and change.main is not None:
        raise invalid(f"The request replaces the table, and sets the branch main to the earlier snapshot {change.main}.")
    if not line:
        remove_files(transaction, add_files(snapshot.files()))
        return operation
    added = SnapshotActions(transaction, replaced, line, replaces=True).stage()
    return replace(operation, parameters={**operation.parameters, **added.parameters}, metrics=added.metrics)


def create_table(table: Table, name: str, change: TableChange) -> Committed:
    """Commit a new table, perhaps with its first snapshot: the second step of a staged creation.

    Raises:
        InvalidRequest: invalid columns, partitions or location; the folder has other files; a snapshot that contradicts itself.
        Unsupported: a type or property that Delta does not have.
    """
    definition = new_definition(name, change)
    refuse_other_files(table.store)
    transaction = Transaction(table.store, None, table.clock)
    metadata = delta_metadata(definition, table.url, table.clock, change.uuid)
    operation = stage_creation(transaction, metadata, change.client)
    actions = SnapshotActions(transaction, staged_document(metadata, definition, table.url), _line(change))
    if actions.line:
        operation = actions.stage()
    return table.commit(transaction, operation)


def is_committed(transaction: Transaction, document: JsonMapping, change: TableChange) -> bool:
    """Whether the table has the change already, by its Iceberg metadata or its log."""
    if change.creates and not change.snapshots:
        return bool(change.uuid == document["table-uuid"])
    return has_snapshot(document, change) or any(transaction.read_app(application(each)) is not None for each in change.snapshots)


def has_snapshot(document: JsonMapping, change: TableChange) -> bool:
    """Whether the Iceberg side shows a snapshot that the change adds."""
    existing = {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    return any(each.client.snapshot_id in existing for each in change.snapshots)


def is_behind(document: JsonMapping, change: TableChange) -> bool:
    """Whether the change is of an earlier snapshot of the table, so that its client lost a race."""
    parent, current = change.snapshots[0].parent_id if change.snapshots else None, document.get("current-snapshot-id")
    return parent != current and any(each["snapshot-id"] == parent for each in document["snapshots"])


def _line(change: TableChange) -> tuple[AddedSnapshot, ...]:
    """Return the added snapshots from the table's to the new one of ``main``, oldest first; each changes the one before it."""
    added = change.snapshots
    if added and change.main is not None and added[-1].client.snapshot_id != change.main:
        raise invalid(f"The request sets the branch main to the snapshot {change.main}, which is not the last one that it adds.")
    if added and change.main is None:
        raise Unsupported(
            "The request adds a snapshot outside of the branch main, and a Delta table has one line of versions.",
            code="TAHOE_ICEBERG_UPDATE",
        )
    for before, after in pairwise(added):
        if after.parent_id != before.client.snapshot_id:
            raise invalid(f"The snapshot {after.client.snapshot_id} of the request does not follow the one before it.")
    return added


def _restored(run: Commit, transaction: Transaction, document: JsonMapping, change: TableChange) -> Committed | None:
    """Restore the Delta version of an earlier snapshot, which the client makes current; None if it is current."""
    if change.main == document.get("current-snapshot-id"):
        return None
    if change.schemas or change.schema_id is not None or change.set_properties or change.removed_properties:
        raise Unsupported(
            "The request makes an earlier snapshot current and changes the table's definition. Commit these one by one.",
            code="TAHOE_ICEBERG_UPDATE",
        )
    snapshot = snapshot_with_id(document, change.main)
    if snapshot is None:
        raise invalid(f"There is no snapshot {change.main}, to which the request sets the branch main.")
    done: list[Committed] = []

    def commit(transaction: Transaction, operation: Operation) -> Committed:
        client = {"client": change.client, "snapshotId": str(change.main)}
        done.append(run(transaction, replace(operation, parameters={**operation.parameters, **client})))
        return done[0]

    restore(transaction, commit, RestoreRequest(version=snapshot_version(snapshot)))
    return done[0]


def _check_requirements(document: JsonMapping, change: TableChange, actions: SnapshotActions) -> None:
    """Raise if a requirement is not met. Files can be appended to any version; whether other changes can be rebased past the commits
    after the client's snapshot is decided by these commits."""
    parent = actions.line[0].parent_id if actions.line else None
    for each in change.requirements:
        problem = unmet(each, document)
        may_be_behind = actions.line and each.is_about_main and (actions.appends or each.expected == parent is not None)
        if problem is not None and not may_be_behind:
            raise conflict(problem)


def _check_identity(document: JsonMapping, change: TableChange) -> None:
    if change.uuid not in (None, document["table-uuid"]):
        raise invalid(f"The table's uuid is {document['table-uuid']} and cannot become {change.uuid}.")
    if change.location is not None and change.location.rstrip("/") != document["location"]:
        raise Unsupported(
            f"The location of a Delta table stays: it is {document['location']}, and the request sets {change.location}.",
            code="TAHOE_ICEBERG_UPDATE",
        )
    if change.format_version not in (None, document["format-version"]):
        raise Unsupported(
            f"The table has Iceberg's format version {document['format-version']}, and the request asks for {change.format_version}. "
            "Change it through Delta: Table.uniform.upgrade.",
            code="TAHOE_ICEBERG_UPDATE",
        )
