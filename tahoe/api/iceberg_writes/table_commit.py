"""One commit of an Iceberg client to one table, as one Delta commit.

    requirements ─► snapshots ─► files added and removed ─► Transaction on the version that the client saw ─► Delta commit

The client's snapshot id is the application id of the commit, so a repeated request commits nothing. A request that changes anything but
added files requires the version that the client saw: a concurrent commit of either side is a conflict, and the client retries. Appended
files need no such version.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tahoe.api.iceberg_writes.incoming_files import IncomingFile, incoming_files, stage_files
from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, Unsupported
from tahoe.base.json_values import JsonMapping
from tahoe.log.files.live_files import add_files, canonical_path
from tahoe.ops.rows.row_changes import live_rows, remove_files
from tahoe.protocol.actions import AddFile
from tahoe.protocol.features import ENFORCED
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import encode_path, name_below
from tahoe.txn.commit import Committed
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.commit_requests import AddedSnapshot, TableChange
from tahoe.uniform.commits.file_changes import FileChanges, file_changes
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.commits.requirements import unmet
from tahoe.uniform.external.metadata_listing import CurrentMetadata

_MOST_REASONS = 20
_MOST_MANIFEST_BYTES = 64 * 1024 * 1024


def commit_change(table: Table, current: CurrentMetadata, change: TableChange) -> Committed | None:
    """Commit a change of a table; return None if the table has it already.

    Args:
        current: the table's Iceberg metadata, of its newest version.

    Raises:
        DeltaConcurrentModificationException: a requirement is not met, or another writer committed first.
        InvalidRequest: the request contradicts itself or the table, or rows break a rule of the table.
        Unsupported: a change that a Delta table cannot follow.
    """
    transaction = Transaction(table.store, table.snapshot(current.version), table.clock)
    if _is_committed(transaction, current.document, change):
        return None
    line = _line(change, current.document)
    appends = bool(line) and all(each.client.operation == "append" for each in line)
    _check_requirements(current.document, change, appends=appends)
    _check_identity(current.document, change)
    if not line:
        return None
    transaction.enforces = ENFORCED
    transaction.may_be_moved = appends
    return table.commit(transaction, _Snapshots(transaction, current.document, line).staged())


def _is_committed(transaction: Transaction, document: JsonMapping, change: TableChange) -> bool:
    existing = {snapshot["snapshot-id"] for snapshot in document["snapshots"]}
    return any(
        each.client.snapshot_id in existing or transaction.read_app(_application(each)) is not None for each in change.snapshots
    )


def _application(snapshot: AddedSnapshot) -> str:
    return f"iceberg-snapshot-{snapshot.client.snapshot_id}"


def _line(change: TableChange, document: JsonMapping) -> tuple[AddedSnapshot, ...]:
    """Return the added snapshots from the table's to the new one of ``main``, oldest first; each changes the one before it."""
    added = change.snapshots
    if change.main is not None and (not added or added[-1].client.snapshot_id != change.main):
        raise Unsupported(
            f"The request sets the branch main to the snapshot {change.main}, which it does not add last. Restore the version through "
            "Delta (RESTORE, Table.restore).",
            code="TAHOE_ICEBERG_UPDATE",
        )
    if added and change.main is None:
        raise Unsupported(
            "The request adds a snapshot outside of the branch main, and a Delta table has one line of versions.",
            code="TAHOE_ICEBERG_UPDATE",
        )
    for before, after in pairwise(added):
        if after.parent_id != before.client.snapshot_id:
            raise invalid(f"The snapshot {after.client.snapshot_id} of the request does not follow the one before it.")
    return added


def _check_requirements(document: JsonMapping, change: TableChange, *, appends: bool) -> None:
    """Raise if a requirement is not met. Files can be appended to any version, so appends need no certain snapshot."""
    for each in change.requirements:
        problem = unmet(each, document)
        if problem is not None and not (appends and each.is_about_main):
            raise _conflict(problem)


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
    if change.schema_id is not None or change.schemas or change.set_properties or change.removed_properties:
        raise Unsupported("This server does not change the schema or the properties of a table yet.", code="TAHOE_ICEBERG_UPDATE")


@dataclass(frozen=True, slots=True)
class _Snapshots:
    """The snapshots of one commit, staged as actions.

    Args:
        line: the added snapshots, oldest first.
    """

    transaction: Transaction
    document: JsonMapping
    line: tuple[AddedSnapshot, ...]

    def staged(self) -> Operation:
        """Stage all actions, and return the operation of the commit."""
        transaction, newest = self.transaction, self.line[-1]
        changes = self._changes()
        rearranges = all(each.client.operation == "replace" for each in self.line)
        config = future_config(transaction)
        files = incoming_files(transaction.store, config, self.document, changes.added, transaction.clock.now_ms())
        removed = self._removed(changes)
        self._refuse_present(files)
        if rearranges:
            self._check_rearranged(files, removed)
        remove_files(transaction, removed, data_change=not rearranges)
        added = stage_files(transaction, config, files, data_change=not rearranges)
        for each in self.line:
            transaction.stage_app(_application(each), 0)
        # Several snapshots, as of PyIceberg's overwrite, become one: an append that follows a delete is no append.
        kinds = {each.client.operation for each in self.line}
        client = newest.client if len(kinds) == 1 else replace(newest.client, operation="overwrite")
        return Operation(client.operation_name, client.parameters(), _metrics(files, added, removed))

    def _changes(self) -> FileChanges:
        """Return the files that the snapshots add and remove together."""
        by_id = {snapshot["snapshot-id"]: snapshot for snapshot in self.document["snapshots"]}
        parent = self.line[0].parent_id
        if parent is not None and parent not in by_id:
            raise _conflict(f"The snapshot {parent}, which the new one changes, is not in the table.")
        before = None if parent is None else by_id[parent]["manifest-list"]
        changes = file_changes(before, self.line[-1].manifest_list, self._read)
        is_newest = parent == self.document.get("current-snapshot-id")
        appends = all(each.client.operation == "append" for each in self.line)
        if not is_newest and not appends:
            raise _conflict(f"The snapshot {parent}, which the new one changes, is not the newest.")
        if appends and not changes.only_adds:
            raise invalid("A snapshot of the operation 'append' removes files.")
        if changes.deletes or changes.dropped_deletes:
            raise Unsupported(
                "The snapshot has files of deletes, which this server does not translate yet. Set write.delete.mode, write.update.mode "
                "and write.merge.mode to copy-on-write.",
                code="TAHOE_ICEBERG_DELETES",
            )
        return changes

    def _read(self, location: str) -> bytes:
        """Return a manifest or manifest list below the table's root."""
        store = self.transaction.store
        name = name_below(store.url, location)
        if name is None:
            raise InvalidRequest(
                f"The manifest {location} is outside of the folder of table {store.url}; it is not opened.",
                code="TAHOE_PATH_OUTSIDE_TABLE",
                table=store.url,
                path=location,
            )
        entry = store.head(name)
        if entry is None or entry.size > _MOST_MANIFEST_BYTES:
            problem = "does not exist" if entry is None else f"has more than {_MOST_MANIFEST_BYTES:,} bytes"
            raise InvalidRequest(f"The manifest {location} {problem}.", code="TAHOE_ICEBERG_MANIFEST", file=location)
        return store.get(name)

    def _removed(self, changes: FileChanges) -> list[AddFile]:
        """Return the live files of the table that the snapshots remove."""
        snapshot = self.transaction.existing()
        found = live_files_at(snapshot, changes.removed)
        missing = [location for location in changes.removed if location not in found]
        if missing:
            raise _conflict(f"The file {missing[0]}, which the snapshot removes, is not in the table.")
        return list(found.values())

    def _refuse_present(self, files: Sequence[IncomingFile]) -> None:
        """Refuse files that the table has already: their rows would count twice."""
        table = self.transaction.store.url
        root = f"{table}/"
        present = live_files_at(self.transaction.existing(), [f"{root}{canonical_path(each.add.path, table)}" for each in files])
        if present:
            raise InvalidRequest(
                f"The file {next(iter(present))}, which the snapshot adds, is in the table already.", code="TAHOE_ICEBERG_FILE"
            )

    def _check_rearranged(self, files: Sequence[IncomingFile], removed: Sequence[AddFile]) -> None:
        """Refuse a snapshot of the operation ``replace`` that changes the number of rows."""
        snapshot = self.transaction.existing()
        before, after = sum(live_rows(snapshot, add) for add in removed), sum(each.rows for each in files)
        if before != after:
            raise invalid(
                f"A snapshot of the operation 'replace' must not change rows, and it replaces {before} rows by {after}."
            )


def live_files_at(snapshot: Snapshot, locations: Sequence[str]) -> dict[str, AddFile]:
    """Return the live files at these locations of Iceberg's metadata, by location; locations without a file are left out."""
    if not locations:
        return {}
    root = snapshot.store.url
    by_path = {
        canonical_path(encode_path(name), root) if (name := name_below(root, location)) else location: location
        for location in locations
    }
    found = {}
    for add in add_files(snapshot.files()):
        location = by_path.get(canonical_path(add.path, root))
        if location is not None:
            found[location] = add
    return found


def _metrics(files: Sequence[IncomingFile], added: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int | str]:
    rewritten = {each.add.path: each.reason for each in files if each.reason is not None}
    metrics: dict[str, int | str] = {
        "numAddedFiles": len(added),
        "numAddedBytes": sum(add.size for add in added),
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(add.size for add in removed),
        "numOutputRows": sum(each.rows for each in files),
        "numRegisteredFiles": len(files) - len(rewritten),
        "numRewrittenFiles": len(rewritten),
    }
    if rewritten:
        some = dict(list(rewritten.items())[:_MOST_REASONS])
        metrics["rewrittenFiles"] = json.dumps(some, separators=(",", ":"), ensure_ascii=False)
    return metrics


def _conflict(problem: str) -> DeltaConcurrentModificationException:
    return DeltaConcurrentModificationException(
        f"{problem} Another writer was faster: load the table again and retry.", code="TAHOE_ICEBERG_CONFLICT"
    )
