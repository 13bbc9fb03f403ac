"""The snapshots of one request as actions of one transaction: files added, files removed, rows deleted.

manifests ─► FileChanges ─┬─ added data files ───► registered, or their rows written again
                          ├─ removed data files ─► remove
                          └─ delete files ───────► deletion vectors, or files with the remaining rows
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from tahoe.api.iceberg_writes.equality_deletes import deleted_values, equal_rows
from tahoe.api.iceberg_writes.incoming_files import IncomingFile, incoming_files, rows_of, stage_files, store_name
from tahoe.api.iceberg_writes.kept_files import kept_files
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, Unsupported
from tahoe.base.json_values import JsonMapping, compact_json
from tahoe.log.files.live_files import add_files, canonical_path, files_at
from tahoe.ops.rows.row_changes import (
    FileChange,
    all_rows,
    change_rows,
    live_rows,
    mark_dead,
    physical_rows,
    reading_ahead,
    remaining_rows,
    remove_files,
    uses_vectors,
    without_dead_files,
    write_change_data,
    write_rows,
)
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.changes import with_change_type
from tahoe.snapshot.data_reader import VectorReader
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path, encode_path, name_below, named_url
from tahoe.store.log_store import LogStore
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction
from tahoe.uniform.commits.client_manifests import EQUALITY_DELETES, POSITION_DELETES, ClientFile
from tahoe.uniform.commits.commit_requests import AddedSnapshot
from tahoe.uniform.commits.delete_positions import deleted_positions, wrong_delete_file
from tahoe.uniform.commits.file_changes import FileChanges, file_changes
from tahoe.uniform.commits.json_fields import invalid
from tahoe.uniform.formats.metadata import snapshot_with_id

if TYPE_CHECKING:
    from pyroaring import BitMap64

_MOST_REASONS = 20
MOST_BYTES = 64 * 1024 * 1024
"""The maximum size of a manifest, manifest list or delete file of a client."""


def application(snapshot: AddedSnapshot) -> str:
    """Return the application id of the commit of a snapshot."""
    return f"iceberg-snapshot-{snapshot.client.snapshot_id}"


def conflict(problem: str) -> DeltaConcurrentModificationException:
    """Return the error for a change of a version that is not the newest any more."""
    return DeltaConcurrentModificationException(
        f"{problem} Another writer was faster: load the table again and retry.", code="TAHOE_ICEBERG_CONFLICT"
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a request changes.

    Args:
        files: the added files.
        removed: live files of the table that are removed.
        changes: live files that stay, and rows of them that are deleted.
    """

    files: Sequence[IncomingFile]
    removed: Sequence[AddFile]
    changes: Sequence[FileChange]


@dataclass(frozen=True, slots=True)
class SnapshotActions:
    """Stages the snapshots of one request.

    Args:
        transaction: on the version of `document`.
        document: the table's Iceberg metadata.
        line: the added snapshots, oldest first; each changes the one before it.
        replaces: whether all files of the table are removed, too.
    """

    transaction: Transaction
    document: JsonMapping
    line: Sequence[AddedSnapshot]
    replaces: bool = False

    @property
    def appends(self) -> bool:
        """Whether all snapshots only append."""
        return all(each.client.operation == "append" for each in self.line)

    @property
    def changes_data(self) -> bool:
        """Whether rows change, and are not only rearranged."""
        return any(each.client.operation != "replace" for each in self.line)

    @property
    def parent(self) -> JsonMapping | None:
        """The snapshot of the table that the first one changes; None if it changes an empty table."""
        number = self.line[0].parent_id
        snapshot = snapshot_with_id(self.document, number)
        if number is not None and snapshot is None:
            raise conflict(f"The snapshot {number}, which the new one changes, is not in the table.")
        return snapshot

    def stage(self) -> Operation:
        """Stage all actions, and return the operation of the commit.

        Raises:
            DeltaConcurrentModificationException: the snapshots change a version that is not the newest.
            InvalidRequest: manifests or files that contradict each other or the table; rows that break a rule of the table.
            Unsupported: files that a Delta table cannot have.
        """
        transaction, newest = self.transaction, self.line[-1]
        config = future_config(transaction)
        rows = self._rows(config)
        data_change = self.changes_data
        if not data_change:
            self._check_rearranged(rows)
        _record_reads(transaction, rows, data_change=data_change)
        remove_files(transaction, rows.removed, data_change=data_change)
        rows = replace(rows, files=kept_files(transaction, rows.files, newest.client.client))
        added = stage_files(transaction, config, rows.files, data_change=data_change)
        copied = _stage_deleted_rows(transaction, config, rows)
        transaction.row_ids_kept = all(each.has_row_ids for each in rows.files)
        for each in self.line:
            transaction.stage_app(application(each), 0)
        # Several snapshots, as of PyIceberg's overwrite, become one: an append that follows a delete is no append.
        kinds = {each.client.operation for each in self.line}
        client = newest.client if len(kinds) == 1 else replace(newest.client, operation="overwrite")
        return Operation(client.operation_name, client.parameters(), _metrics(rows, added, copied))

    def _rows(self, config: TableConfig) -> _Rows:
        """Return the changes of rows, all of them checked."""
        changes, transaction = self._changes(), self.transaction
        snapshot, now = transaction.snapshot, transaction.clock.now_ms()
        dead = self._deleted(changes)
        files = [
            each.without_rows(dead.get(file.path))
            for each, file in zip(
                incoming_files(transaction.store, config, self.document, changes.added, now), changes.added, strict=True
            )
        ]
        if snapshot is None:
            if changes.removed:
                raise conflict(f"The file {changes.removed[0]}, which the snapshot removes, is not in the table.")
            return _Rows(files, (), ())
        refuse_present(snapshot, [each.add.path for each in files])
        if self.replaces:
            return _Rows(files, add_files(snapshot.files()), ())
        removed = live_files_at(snapshot, changes.removed)
        missing = [location for location in changes.removed if location not in removed]
        if missing:
            raise conflict(f"The file {missing[0]}, which the snapshot removes, is not in the table.")
        dead = _united(chain(dead.items(), self._equal_rows(snapshot, changes, removed)))
        # A delete file may name files that are not in the table any more; that has no effect (format/spec.md, "Scan Planning").
        marked = live_files_at(snapshot, [location for location in dead if location not in removed])
        vectors = VectorReader(snapshot.store)
        touched = [_file_change(snapshot, add, dead[location], vectors) for location, add in marked.items()]
        return _Rows(files, list(removed.values()), [change for change in touched if change.dead])

    def _changes(self) -> FileChanges:
        """Return the files that the snapshots add and remove together."""
        parent = self.parent
        before = None if parent is None else parent["manifest-list"]
        if parent is None and self.document.get("current-snapshot-id") is not None and not self.appends:
            raise conflict("The new snapshot has no parent: the snapshot that it changes is not the newest.")
        changes = file_changes(before, self.line[-1].manifest_list, self._read)
        if self.appends and not changes.only_adds:
            raise invalid("A snapshot of the operation 'append' removes files.")
        spec = self.document["default-spec-id"]
        for file in (*changes.added, *changes.deletes):
            if file.spec_id not in (None, spec):
                raise invalid(
                    f"The file {file.path} is in a manifest of the partition spec {file.spec_id}, and the table's is {spec}."
                )
        return changes

    def _read(self, location: str) -> bytes:
        """Return a manifest, manifest list or delete file below the table's root."""
        return _content(self.transaction.store, location)

    def _deleted(self, changes: FileChanges) -> dict[str, BitMap64]:
        """Return the rows that the added delete files delete, by the location of the data file."""
        dead = self._positions(changes.deletes)
        removed = set(changes.removed)
        for location, before in self._positions(changes.dropped_deletes).items():
            # Deleted rows stay deleted in Delta: a vector that replaces another contains it.
            if location not in removed and (location not in dead or before - dead[location]):
                raise Unsupported(
                    f"The snapshot restores deleted rows of the file {location}. Restore the version through Delta (RESTORE).",
                    code="TAHOE_ICEBERG_DELETES",
                )
        return dead

    def _equal_rows(
        self, snapshot: Snapshot, changes: FileChanges, removed: Mapping[str, AddFile]
    ) -> Iterator[tuple[str, BitMap64]]:
        """Yield the rows of the table that equality deletes delete, each with the location of the data file."""
        files = [file for file in changes.deletes if file.content == EQUALITY_DELETES]
        if files and len(self.line) > 1:
            raise Unsupported(
                f"The file {files[0].path} deletes rows by their values (equality deletes) in a request with {len(self.line)} snapshots, of "
                "which it concerns the earlier ones. Commit the snapshots one by one.",
                code="TAHOE_ICEBERG_DELETES",
                file=files[0].path,
            )
        deletes = [deleted_values(self._delete_file(file), file, snapshot.config, self.document) for file in files]
        url, left_out = snapshot.store.url, {add.path for add in removed.values()}
        for add, positions in equal_rows(snapshot, deletes, left_out):
            yield named_url(url, decode_path(add.path, url)), positions

    def _delete_file(self, file: ClientFile) -> bytes:
        data = self._read(file.path)
        if len(data) != file.size:
            raise wrong_delete_file(file, f"has {len(data)} bytes, and {file.size} by its manifest")
        return data

    def _positions(self, files: Sequence[ClientFile]) -> dict[str, BitMap64]:
        by_position = (file for file in files if file.content == POSITION_DELETES)
        return _united(pair for file in by_position for pair in deleted_positions(self._delete_file(file), file).items())

    def _check_rearranged(self, rows: _Rows) -> None:
        """Refuse a snapshot of the operation ``replace`` that changes the number of rows."""
        before = sum(live_rows(self.transaction.existing(), add) for add in rows.removed)
        after = sum(each.live_rows for each in rows.files)
        if before != after or rows.changes:
            raise invalid(
                f"A snapshot of the operation 'replace' must not change rows, and it replaces {before} rows by {after}, and deletes "
                f"{sum(len(change.dead) for change in rows.changes)} others."
            )


def _united(positions: Iterable[tuple[str, BitMap64]]) -> dict[str, BitMap64]:
    """Return all positions of each file, by its location."""
    united: dict[str, BitMap64] = {}
    for location, some in positions:
        united[location] = united[location] | some if location in united else some
    return united


def live_files_at(snapshot: Snapshot, locations: Sequence[str]) -> dict[str, AddFile]:
    """Return the live files at these locations of Iceberg's metadata, by location; locations without a file are left out."""
    if not locations:
        return {}
    root = snapshot.store.url
    by_path = {
        canonical_path(encode_path(name), root) if (name := name_below(root, location)) else location: location
        for location in locations
    }
    return {by_path[canonical_path(add.path, root)]: add for add in add_files(files_at(snapshot.files(), list(by_path), root))}


def refuse_present(snapshot: Snapshot, paths: Sequence[str]) -> None:
    """Refuse files that the table has already: their rows would count twice."""
    root = snapshot.store.url
    present = files_at(snapshot.files(), [canonical_path(path, root) for path in paths], root)
    if present.num_rows:
        raise InvalidRequest(
            f"The file {present['path'][0]}, which the snapshot adds, is in the table already.", code="TAHOE_ICEBERG_FILE"
        )


def _record_reads(transaction: Transaction, rows: _Rows, *, data_change: bool) -> None:
    """Record what a change of existing rows depends on: the files that it changes, and perhaps any row, since the client's condition is
    unknown. A commit that only appends depends on nothing, and one that only rearranges rows on its files."""
    changed = [*rows.removed, *(change.add for change in rows.changes)]
    transaction.read_files(add.key for add in changed)
    if changed and data_change:
        transaction.read_all_rows()


def _file_change(snapshot: Snapshot, add: AddFile, dead: BitMap64, vectors: VectorReader) -> FileChange:
    """Return the deletion of those rows that are not deleted yet."""
    physical = physical_rows(snapshot.store, add)
    if dead.max() >= physical:
        raise InvalidRequest(
            f"A delete file deletes row {dead.max()} of the file {add.path}, which has {physical} rows.",
            code="TAHOE_ICEBERG_DELETES",
        )
    before = add.deletion_vector
    return FileChange(add, live_rows(snapshot, add), dead if before is None else dead - vectors.bitmap(before))


def _stage_deleted_rows(transaction: Transaction, config: TableConfig, rows: _Rows) -> list[AddFile]:
    """Stage the deletion of rows of files that stay; return the files with remaining rows that were written."""
    if not rows.changes:
        return []
    snapshot = transaction.existing()
    snapshot.config.refuse_if_append_only()
    if config.schema != snapshot.schema:
        raise Unsupported(
            "The request changes columns and deletes rows of files that stay. Commit the columns first.",
            code="TAHOE_ICEBERG_UPDATE",
        )
    stay = without_dead_files(rows.changes)
    remove_files(transaction, [change.add for change in rows.changes if change.is_whole])
    if uses_vectors(config):
        mark_dead(transaction, config, stay)
        return []
    adds = [change.add for change in stay]
    remove_files(transaction, adds)
    copied = write_rows(transaction, config, remaining_rows(reading_ahead(snapshot, adds), stay), copied=True)
    if config.properties.enable_change_data_feed:
        write_change_data(transaction, config, _changed_rows(transaction, config, rows))
    return copied


def _changed_rows(transaction: Transaction, config: TableConfig, rows: _Rows) -> Iterator[pa.Table]:
    """Yield all rows that the commit deletes and inserts, for the change data feed: readers then take no other rows of it."""
    snapshot = transaction.existing()
    deleted = [*rows.changes, *(all_rows(snapshot, add) for add in rows.removed)]
    inserted = (pa.Table.from_batches([batch]) for batch in rows_of(transaction, config, rows.files))
    return chain(change_rows(snapshot, deleted, "delete"), (with_change_type(each, "insert") for each in inserted))


def _content(store: LogStore, location: str) -> bytes:
    entry = store.head(name := store_name(store, location))
    if entry is None or entry.size > MOST_BYTES:
        problem = "does not exist" if entry is None else f"has more than {MOST_BYTES:,} bytes"
        raise InvalidRequest(f"The file {location} {problem}.", code="TAHOE_ICEBERG_MANIFEST", file=location)
    return store.get(name)


def _metrics(rows: _Rows, added: Sequence[AddFile], copied: Sequence[AddFile]) -> dict[str, int | str]:
    gone = [*rows.removed, *(change.add for change in rows.changes if change.is_whole or copied)]
    rewritten = {each.add.path: each.reason for each in rows.files if each.reason is not None}
    metrics: dict[str, int | str] = {
        "numAddedFiles": len(added) + len(copied),
        "numAddedBytes": sum(add.size for add in (*added, *copied)),
        "numRemovedFiles": len(gone),
        "numRemovedBytes": sum(add.size for add in gone),
        "numOutputRows": sum(each.live_rows for each in rows.files),
        "numDeletedRows": sum(len(change.dead) for change in rows.changes),
        "numRegisteredFiles": len(rows.files) - len(rewritten),
        "numRewrittenFiles": len(rewritten),
    }
    if rewritten:
        some = dict(list(rewritten.items())[:_MOST_REASONS])
        metrics["rewrittenFiles"] = compact_json(some)
    return metrics
