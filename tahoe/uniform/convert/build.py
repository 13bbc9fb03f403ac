"""Builds the next metadata document, and writes its delete files, manifests and manifest lists."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked
from tahoe.protocol.actions import Metadata
from tahoe.protocol.iceberg_compat import deletes_form
from tahoe.protocol.properties import TableProperties
from tahoe.protocol.row_tracking import high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.data_manifests import FileChanges, next_manifests
from tahoe.uniform.convert.delete_files import (
    DeleteFiles,
    MoreDeletes,
    Vectors,
    delete_files,
    next_delete_manifests,
    split_marked,
)
from tahoe.uniform.convert.manifest_draft import NewSnapshot
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.plan import Change
from tahoe.uniform.convert.slices import SliceEncoder, SliceOrder, collect_vectors, sliced_manifests
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.data_files import FileEncoder, spec_of
from tahoe.uniform.formats.manifest_schema import DATA
from tahoe.uniform.formats.manifests import ManifestFile
from tahoe.uniform.formats.metadata import AddedSnapshot, Totals

__all__ = ["Build"]

logger = logging.getLogger(__name__)

_CONVERTED = "files converted"


class Build:
    """A conversion in progress; readers see nothing of it until its `document` is put.

    Args:
        document: the current metadata; None for a table without.
        slices: encodes the manifests of large tables in other processes; None to encode them in this process.
        progress: receives the number of files converted by `rebuild`.
    """

    def __init__(
        self,
        store: LogStore,
        folder: ManifestFolder,
        document: Mapping[str, Any] | None,
        slices: SliceEncoder | None = None,
        progress: Progress = silent,
    ) -> None:
        self.document = document
        self.snapshots = 0
        self.files_added = 0
        self.files_removed = 0
        self._store = store
        self._folder = folder
        self._slices = slices
        self._progress = progress
        self._vectors = Vectors(store)
        self._manifests: list[ManifestFile] | None = None

    def finished(self) -> Mapping[str, Any]:
        """Return the document after `follow` or `rebuild`."""
        assert self.document is not None
        return self.document

    def follow(self, changes: Iterable[Change]) -> Mapping[str, Any]:
        """Add one snapshot for each change that touches files; return the last document."""
        for planned in changes:
            change, more_deletes = split_marked(planned, self._vectors)
            document = self._described(change.metadata, change.version, change.timestamp_ms)
            if not change.is_empty:
                document = self._with_snapshot(document, change, more_deletes)
            self.document = document
        return self.finished()

    def rebuild(self, target: Snapshot) -> Mapping[str, Any]:
        """Add one snapshot with all live files of `target` in new manifests; return the document."""
        mark = high_water_mark(target.state.domains)
        change = Change(target.version, target.timestamp_ms, target.metadata, row_id_mark=mark)
        document = self._described(target.metadata, target.version, target.timestamp_ms)
        files = _ordered(target.files(), target.metadata)
        self.document = self._with_snapshot(document, change, rebuilt=files)
        return self.finished()

    def _described(self, metadata: Metadata, version: int, timestamp_ms: int) -> dict[str, Any]:
        return documents.described(self.document, metadata, location=self._store.url, version=version, timestamp_ms=timestamp_ms)

    def _with_snapshot(
        self,
        document: Mapping[str, Any],
        change: Change,
        more_deletes: Sequence[MoreDeletes] = (),
        *,
        rebuilt: pa.Table | None = None,
    ) -> dict[str, Any]:
        """Write the files of a change's snapshot, and return the document with that snapshot.

        Args:
            more_deletes: files of the previous snapshot that stay and lose more rows.
            rebuilt: all files of the snapshot, if nothing is carried over from earlier snapshots.
        """
        manifests = self._current_manifests(document) if rebuilt is None else []
        parent = documents.current_snapshot(document)
        snapshot = self._new_snapshot(document, change, parent)
        form = deletes_form(TableProperties(change.metadata.configuration))
        deletes = delete_files(form, self._folder, snapshot, self._vectors)
        encoder = self._encoder(change.metadata, deletes, snapshot.format_version)
        sliced = None if rebuilt is None else self._sliced(rebuilt, change.metadata, snapshot, encoder)
        data, totals = sliced or next_manifests(
            [manifest for manifest in manifests if manifest.content == DATA],
            FileChanges(encoder.encode_adds(change.adds), len(change.adds), change.removed)
            if rebuilt is None
            else FileChanges(
                tracked(encoder.encode_table(rebuilt), self._progress, _CONVERTED, rebuilt.num_rows), rebuilt.num_rows
            ),
            snapshot,
            self._folder,
        )
        leaving = change.with_vectors | {more.url for more in more_deletes if deletes.add_more(encoder.target(more.add), more)}
        gone, delete_totals = next_delete_manifests(
            [manifest for manifest in manifests if manifest.content != DATA], leaving, deletes, snapshot, self._folder
        )
        self._manifests = [*data, *gone]
        self.snapshots += 1
        self.files_added += totals.added_files
        self.files_removed += totals.deleted_files
        operation = "overwrite" if rebuilt is not None and (parent or delete_totals.added_files) else change.operation
        added = AddedSnapshot(
            snapshot_id=snapshot.snapshot_id,
            version=change.version,
            timestamp_ms=change.timestamp_ms,
            operation=operation,
            manifest_list=self._folder.write_list(self._manifests, snapshot),
            totals=totals,
            deletes=delete_totals,
            row_id_mark=change.row_id_mark,
            is_rebuilt=rebuilt is not None,
        )
        return documents.with_snapshot(document, added)

    def _sliced(
        self, files: pa.Table, metadata: Metadata, snapshot: NewSnapshot, encoder: FileEncoder
    ) -> tuple[list[ManifestFile], Totals] | None:
        """Encode the manifests of a large table in other processes; None if the table is not large, or if that fails."""
        if self._slices is None or files.num_rows < self._slices.least_files:
            return None
        order = SliceOrder.of(self._store.url, metadata, snapshot, files.num_rows)
        try:
            sliced = sliced_manifests(files, order, self._slices, self._folder, partial(self._progress, _CONVERTED))
        except Exception as error:  # noqa: BLE001 - any failure: this process encodes the files itself, and reports an invalid file
            logger.warning("%s: encoding manifests in this process alone: %s", self._store.url, error)
            return None
        collect_vectors(files, encoder)
        return sliced

    def _new_snapshot(self, document: Mapping[str, Any], change: Change, parent: Mapping[str, Any] | None) -> NewSnapshot:
        schema = change.metadata.schema
        return NewSnapshot(
            snapshot_id=documents.next_snapshot_id(document, change.version),
            parent_id=parent["snapshot-id"] if parent else None,
            sequence_number=documents.next_sequence_number(document, change.version),
            version=change.version,
            spec=documents.spec_from(document, spec_of(schema, change.metadata.partition_columns)),
            schema=documents.current_schema(document),
            format_version=document["format-version"],
            first_row_id=document.get("next-row-id"),
        )

    def _current_manifests(self, document: Mapping[str, Any]) -> list[ManifestFile]:
        if self._manifests is None:
            current = documents.current_snapshot(document)
            self._manifests = self._folder.read_list(current["manifest-list"]) if current else []
        return self._manifests

    def _encoder(self, metadata: Metadata, deletes: DeleteFiles, format_version: int) -> FileEncoder:
        return FileEncoder(
            metadata.schema,
            metadata.partition_columns,
            self._folder.file_url,
            on_vector=deletes.whole,
            format_version=format_version,
        )


def _ordered(files: pa.Table, metadata: Metadata) -> pa.Table:
    """Sort the files by partition, then by path: manifests then cover few partitions, and equal tables give equal manifests."""
    schema = metadata.schema
    keys = []
    for position, name in enumerate(metadata.partition_columns):
        physical = schema.field(name).physical_name
        values = pc.map_lookup(files["partitionValues"], pa.scalar(physical), "first")
        keys.append((f"partition_{position}", values))
    columns = {**dict(keys), "path": files["path"]}
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    return files.take(order)
