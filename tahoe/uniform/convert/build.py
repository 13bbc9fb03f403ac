"""Builds the next metadata document, and writes its delete files, manifests and manifest lists."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

import pyarrow as pa

from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.base.lazy import pc
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, silent, tracked
from tahoe.protocol.actions import Metadata
from tahoe.protocol.iceberg_compat import deletes_form
from tahoe.protocol.properties import TableProperties
from tahoe.protocol.row_tracking import high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.uniform.convert.delete_files import (
    DeleteFiles,
    MoreDeletes,
    Vectors,
    delete_files,
    next_delete_manifests,
    split_marked,
)
from tahoe.uniform.convert.manifest_draft import Counts, Draft, NewSnapshot
from tahoe.uniform.convert.manifest_folder import ManifestFolder
from tahoe.uniform.convert.manifest_policy import merges, most_entries
from tahoe.uniform.convert.plan import Change
from tahoe.uniform.convert.shards import OrderedFiles, ShardEncoder, ShardOrder, collect_vectors, sharded_manifests
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.data_files import FILES_COLUMNS, FileEncoder, spec_of
from tahoe.uniform.formats.manifest_schema import DATA
from tahoe.uniform.formats.manifests import ADDED, DataFile, Entry, ManifestFile
from tahoe.uniform.formats.metadata import AddedSnapshot, Totals

logger = logging.getLogger(__name__)

_CONVERTED = "files converted"


class Build:
    """A conversion in progress; readers see nothing of it until its `document` is put.

    Args:
        store: the table's store.
        folder: the folder of the Iceberg metadata.
        document: the current metadata; None for a table without.
        shards: encodes the manifests of large tables in other processes; None to encode them in this process.
        progress: receives the number of files converted by `rebuild`.
    """

    def __init__(
        self,
        store: LogStore,
        folder: ManifestFolder,
        document: JsonMapping | None,
        shards: ShardEncoder | None = None,
        progress: Progress = silent,
    ) -> None:
        self.document = document
        self.snapshots = 0
        self.files_added = 0
        self.files_removed = 0
        self._store = store
        self._folder = folder
        self._shards = shards
        self._progress = progress
        self._vectors = Vectors(store)
        self._manifests: list[ManifestFile] | None = None

    def finished(self) -> JsonMapping:
        """Return the document after `follow` or `rebuild`."""
        assert self.document is not None
        return self.document

    def follow(self, changes: Iterable[Change]) -> JsonMapping:
        """Add one snapshot for each change that touches files, or make an earlier one current; return the last document."""
        for planned in changes:
            change, more_deletes = split_marked(planned, self._vectors)
            document = self._described(change.metadata, change.version, change.timestamp_ms)
            earlier = None if change.rolled_back_to is None else documents.earlier_snapshot(document, change.rolled_back_to)
            if earlier is not None:
                document = documents.with_earlier_snapshot(document, earlier, change.timestamp_ms)
                self._manifests = None
            elif not change.is_empty:
                document = self._with_snapshot(document, change, more_deletes)
            self.document = document
        return self.finished()

    def rebuild(self, target: Snapshot) -> JsonMapping:
        """Add one snapshot with all live files of `target` in new manifests; return the document."""
        mark = high_water_mark(target.state.domains)
        change = Change(target.version, target.timestamp_ms, target.metadata, row_id_mark=mark)
        document = self._described(target.metadata, target.version, target.timestamp_ms)
        files = _ordered(target.files_with_texts(), target.metadata)
        self.document = self._with_snapshot(document, change, rebuilt=files)
        return self.finished()

    def _described(self, metadata: Metadata, version: int, timestamp_ms: int) -> JsonObject:
        location = self._folder.root_url.rstrip("/")
        return documents.described(self.document, metadata, location=location, version=version, timestamp_ms=timestamp_ms)

    def _with_snapshot(
        self,
        document: JsonMapping,
        change: Change,
        more_deletes: Sequence[MoreDeletes] = (),
        *,
        rebuilt: OrderedFiles | None = None,
    ) -> JsonObject:
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
        sharded = None if rebuilt is None else self._sharded(rebuilt, change.metadata, snapshot, encoder)
        data, totals = sharded or next_manifests(
            [manifest for manifest in manifests if manifest.content == DATA],
            FileChanges(encoder.encode_adds(change.adds), len(change.adds), change.removed)
            if rebuilt is None
            else FileChanges(
                tracked(
                    chain.from_iterable(map(encoder.encode_table, rebuilt.pieces())), self._progress, _CONVERTED, len(rebuilt)
                ),
                len(rebuilt),
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
            client=change.client,
        )
        return documents.with_snapshot(document, added)

    def _sharded(
        self, files: OrderedFiles, metadata: Metadata, snapshot: NewSnapshot, encoder: FileEncoder
    ) -> tuple[list[ManifestFile], Totals] | None:
        """Encode the manifests of a large table in other processes; None if the table is not large, or if that fails."""
        if self._shards is None or len(files) < self._shards.least_files:
            return None
        order = ShardOrder.of(self._store.url, metadata, snapshot, len(files))
        try:
            sharded = sharded_manifests(files, order, self._shards, self._folder, partial(self._progress, _CONVERTED))
        except Exception as error:  # noqa: BLE001 - any failure: this process encodes the files itself, and reports an invalid file
            logger.warning(
                "%s: encoding manifests in this process alone: %s", self._store.url, error, extra=about(self._store.url)
            )
            return None
        collect_vectors(files, encoder)
        return sharded

    def _new_snapshot(self, document: JsonMapping, change: Change, parent: JsonMapping | None) -> NewSnapshot:
        schema = change.metadata.schema
        return NewSnapshot(
            snapshot_id=documents.next_snapshot_id(document, change.version, change.client),
            parent_id=parent["snapshot-id"] if parent else None,
            sequence_number=documents.next_sequence_number(document, change.version),
            version=change.version,
            spec=documents.spec_from(document, spec_of(schema, change.metadata.partition_columns)),
            schema=documents.current_schema(document),
            format_version=document["format-version"],
            first_row_id=document.get("next-row-id"),
        )

    def _current_manifests(self, document: JsonMapping) -> list[ManifestFile]:
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


def _ordered(files: pa.Table, metadata: Metadata) -> OrderedFiles:
    """Sort the files by partition, then by path: manifests then cover few partitions, and equal tables give equal manifests."""
    schema = metadata.schema
    keys = []
    for position, name in enumerate(metadata.partition_columns):
        physical = schema.field(name).physical_name
        values = pc.map_lookup(files["partitionValues"], pa.scalar(physical), "first")
        keys.append((f"partition_{position}", values))
    columns = {**dict(keys), "path": files["path"]}
    order = pc.sort_indices(pa.table(columns), sort_keys=[(name, "ascending") for name in columns])
    return OrderedFiles(files.select([name for name in FILES_COLUMNS if name in files.column_names]), order)


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The data files that a snapshot adds and removes.

    Args:
        added: added files; may be long, and is read once, in pieces.
        num_added: the number of added files.
        removed: full paths of removed files; missing files are not an error.
    """

    added: Iterable[DataFile]
    num_added: int
    removed: frozenset[str] = frozenset()


def next_manifests(
    current: Sequence[ManifestFile], changes: FileChanges, snapshot: NewSnapshot, folder: ManifestFolder
) -> tuple[list[ManifestFile], Totals]:
    """Write the data manifests of the next snapshot; return them with the snapshot's totals.

    Manifests with removed files are rewritten without them, and too many small manifests are merged, together with the added files. The
    new list names all others unchanged.

    Args:
        current: the manifests of the previous snapshot.
    """
    live = [manifest for manifest in current if manifest.live_files]
    most = most_entries(sum(manifest.live_files for manifest in live) + changes.num_added)
    touched = folder.containing(changes.removed, live, snapshot.spec) if changes.removed else {}
    carried_over: list[ManifestFile] = []
    written: list[ManifestFile] = []
    counts = Counts()
    for manifest in live:
        if manifest.path not in touched:
            carried_over.append(manifest)
            continue
        pieces, gone = folder.pieces(manifest, snapshot.spec, touched[manifest.path])
        if not gone:
            carried_over.append(manifest)
            continue
        draft = Draft()
        draft.carry(manifest, pieces, gone, folder.known_paths(manifest))
        draft.entries += [counts.gone(entry, snapshot) for entry in gone]
        written.append(folder.write(draft, snapshot, len(written)))
    unmerged, groups = merges(carried_over, most)
    for draft in _drafts(groups, _entries(changes.added, snapshot, counts), snapshot, folder, most):
        written.append(folder.write(draft, snapshot, len(written)))
    return [*written, *unmerged], counts.totals()


def _drafts(
    groups: Sequence[Sequence[ManifestFile]], added: Iterator[Entry], snapshot: NewSnapshot, folder: ManifestFolder, most: int
) -> Iterator[Draft]:
    """Yield the manifests into which groups of small ones are merged, the last filled up with added files."""
    draft = Draft()
    for group in groups:
        if draft.files:
            yield draft
        draft = Draft()
        for manifest in group:
            draft.carry(manifest, *folder.pieces(manifest, snapshot.spec), folder.known_paths(manifest))
    while True:
        draft.entries += islice(added, most - draft.files)
        if not draft.files:
            return
        yield draft
        draft = Draft()


def _entries(added: Iterable[DataFile], snapshot: NewSnapshot, counts: Counts) -> Iterator[Entry]:
    for file in added:
        counts.new(file)
        # Without a sequence number, readers take it from the manifest list.
        yield Entry(ADDED, snapshot.snapshot_id, file.sequence_number, None, file)
