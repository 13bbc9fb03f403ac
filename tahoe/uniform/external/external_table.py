"""Iceberg metadata that another writer left in a table's folder, read by PyIceberg through the table's own store.

Needs PyIceberg (the extra ``iceberg``): importing this module without it raises `ImportError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import FileScanTask

from tahoe.base.exceptions import CorruptTable
from tahoe.store.iceberg_io import StoreIO
from tahoe.store.log_store import LogStore


class ExternalTable:
    """One metadata file and the files it refers to; files outside the table's root are never opened.

    Args:
        url: the URL of the metadata file.
    """

    def __init__(self, store: LogStore, url: str) -> None:
        self._io = StoreIO(store)
        self.url = url
        self.metadata = FromInputFile.table_metadata(self._io.new_input(url))

    def snapshot(self, snapshot_id: int) -> Any:
        """Return PyIceberg's snapshot with that id. Raises `CorruptTable` if there is none."""
        snapshot = self.metadata.snapshot_by_id(snapshot_id)
        if snapshot is None:
            raise CorruptTable(
                f"The metadata file {self.url} has no snapshot {snapshot_id}.",
                code="TAHOE_CORRUPT_ICEBERG_METADATA",
                file=self.url,
            )
        return snapshot

    def added_files(self, snapshot_id: int) -> list[str]:
        """Return the URLs of the data files that a snapshot added."""
        return [entry.data_file.file_path for entry in self._added(snapshot_id)]

    def has_deletes(self, snapshot_id: int) -> bool:
        """Whether the snapshot removed a file or added delete files."""
        return any(
            manifest.content != 0 or (manifest.deleted_files_count or 0) > 0
            for manifest in self.snapshot(snapshot_id).manifests(self._io)
            if manifest.added_snapshot_id == snapshot_id
        )

    def rows(self, snapshot_id: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the data files that a snapshot added, in the columns of the current schema."""
        scan = ArrowScan(self.metadata, self._io, self.metadata.schema(), AlwaysTrue())
        yield from scan.to_record_batches([FileScanTask(entry.data_file) for entry in self._added(snapshot_id)])

    def _added(self, snapshot_id: int) -> Iterator[Any]:
        for manifest in self.snapshot(snapshot_id).manifests(self._io):
            if manifest.content != 0 or manifest.added_snapshot_id != snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=True):
                if entry.status == ManifestEntryStatus.ADDED:
                    yield entry
