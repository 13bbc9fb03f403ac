"""The row of DESCRIBE DETAIL for a snapshot (`delta-features`, 2.4)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tahoe.base.secrets import shown_properties
from tahoe.ops.tables.cluster_by import clustered_by
from tahoe.snapshot.snapshot import Snapshot


def shown_detail(snapshot: Snapshot) -> dict[str, Any]:
    """Return the values of `detail` as they may be printed: without the values of properties with secret names."""
    values = detail(snapshot)
    return {**values, "properties": shown_properties(values["properties"])}


def detail(snapshot: Snapshot) -> dict[str, Any]:
    """Return one row: format, id, name, description, location, createdAt, lastModified, partitionColumns, clusteringColumns, numFiles,
    sizeInBytes (of the live files), properties, minReaderVersion, minWriterVersion, tableFeatures."""
    metadata, protocol, totals = snapshot.metadata, snapshot.protocol, snapshot.totals
    return {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": snapshot.store.url,
        "createdAt": None if metadata.created_time is None else datetime.fromtimestamp(metadata.created_time / 1000, UTC),
        "lastModified": datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC),
        "partitionColumns": list(snapshot.partition_columns),
        "clusteringColumns": clustered_by(snapshot),
        "numFiles": totals.num_files,
        "sizeInBytes": totals.size_bytes,
        "properties": dict(metadata.configuration),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": sorted(snapshot.config.features),
    }
