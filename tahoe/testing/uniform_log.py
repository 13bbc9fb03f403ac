"""Hand-written Delta logs, one JSON commit at a time: without data files, since a conversion opens none.

log = DeltaLog()
log.change(adds=["a/1", "a/2", "b/1"])
log.convert()
assert verify(log.store) == log.version          # tahoe.testing.iceberg_verifier
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyroaring import BitMap64

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.log.files.commits import read_commit
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    to_json_line,
)
from tahoe.protocol.dv import inline_descriptor
from tahoe.protocol.features import Feature
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.uniform.catalogs.catalog import Catalog
from tahoe.uniform.catalogs.pointers import CatalogCalls, Pointer
from tahoe.uniform.convert.conversion import Conversion, DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.convert.manifest_caches import ManifestCaches
from tahoe.uniform.convert.shards import ShardEncoder

__all__ = ["FEATURES", "UNIFORM", "V2_DELETES", "V3", "DeltaLog", "column"]

FEATURES = frozenset({Feature.ICEBERG_COMPAT_V2, Feature.COLUMN_MAPPING})
PROTOCOL = Protocol(2, 7, None, FEATURES)
UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    "delta.columnMapping.maxColumnId": "2",
}


def column(name: str, data_type: str, number: int) -> StructField:
    """Return a column with column mapping: ``col-<number>`` is its physical name."""
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return StructField(name, PrimitiveType(data_type), True, mapping)


SCHEMA = StructType((column("id", "long", 1), column("part", "string", 2)))


V2_DELETES = {"delta.universalFormat.config.iceberg.deletes": "position"}
V3 = {"delta.enableIcebergCompatV2": "false", "delta.enableIcebergCompatV3": "true", "delta.enableRowTracking": "true"}


def _protocol(configuration: Mapping[str, str]) -> Protocol:
    if configuration.get("delta.enableIcebergCompatV3") != "true":
        return replace(PROTOCOL, min_reader_version=3, reader_features=_VECTORS, writer_features=FEATURES | _VECTORS)
    return Protocol(3, 7, _VECTORS, _VECTORS | {Feature.ICEBERG_COMPAT_V3, Feature.ROW_TRACKING, Feature.DOMAIN_METADATA})


_VECTORS = frozenset({Feature.COLUMN_MAPPING, Feature.DELETION_VECTORS})


def _inline(vector: BitMap64 | None) -> DeletionVectorDescriptor | None:
    return inline_descriptor(vector) if vector else None


class DeltaLog:
    """A table with two columns, ``id`` and the partition column ``part``, shown to Iceberg readers.

    Args:
        store: the store of the log; None for an empty store in this process's memory.
        configuration: properties in addition to `UNIFORM`; see `V2_DELETES` and `V3`.
    """

    def __init__(self, store: LogStore | None = None, configuration: dict[str, str] | None = None) -> None:
        self.store = store or open_store(f"memory://{SYSTEM_CLOCK.uuid()}/a table")
        self.caches = ManifestCaches()
        self.version = -1
        self.protocol = _protocol(configuration or {})
        self.metadata = Metadata(
            "3f0a2e7c-0000-4000-8000-000000000001", SCHEMA.to_json(), ("part",), {**UNIFORM, **(configuration or {})}
        )
        mark = (
            [DomainMetadata("delta.rowTracking", '{"rowIdHighWaterMark":99999}')]
            if Feature.ROW_TRACKING in (self.protocol.writer_features or ())
            else []
        )
        self.commit(self.protocol, self.metadata, *mark)

    def commit(self, *actions: Action, timestamp: int | None = None, info: Mapping[str, Any] | None = None) -> int:
        """Write the next version, by default with the log's own next timestamp and the operation TEST; return the version."""
        self.version += 1
        at = 1_700_000_000_000 + self.version * 1000 if timestamp is None else timestamp
        lines = [CommitInfo({"timestamp": at, "operation": "TEST", **(info or {})}), *actions]
        self.store.put(commit_name(self.version), "".join(to_json_line(action) + "\n" for action in lines).encode())
        return self.version

    def mark(self, marks: Mapping[str, tuple[BitMap64 | None, BitMap64 | None]]) -> int:
        """Commit an exchange of vectors: by path, the deleted rows before and after."""
        removes = (self.remove(path, vector=before) for path, (before, _) in marks.items())
        return self.commit(*removes, *(self.add(path, vector=after) for path, (_, after) in marks.items()))

    def change(self, adds: Sequence[str] = (), removes: Sequence[str] = (), *, data_change: bool = True) -> int:
        """Remove and add files by their paths; return the version."""
        return self.commit(*(self.remove(path, data_change) for path in removes), *(self.add(path, data_change) for path in adds))

    @staticmethod
    def add(path: str, data_change: bool = True, rows: int = 10, vector: BitMap64 | None = None) -> AddFile:
        """Return a file of so many rows; size, bounds and row ids derive from its path, the partition from the path's first letter."""
        number = sum(path.encode())
        stats = {
            "numRecords": rows,
            "minValues": {"col-1": number},
            "maxValues": {"col-1": number + 9},
            "nullCount": {"col-1": 0},
        }
        add = AddFile(path, {"col-2": path[0]}, 100 + number, 1, data_change, json.dumps(stats), deletion_vector=_inline(vector))
        # As if every file had existed from the beginning: the assignment of row ids does not matter here.
        return replace(add, base_row_id=number * 100, default_row_commit_version=1)

    @staticmethod
    def remove(path: str, data_change: bool = True, vector: BitMap64 | None = None) -> RemoveFile:
        """Return the tombstone of the file that `add` returns for that path."""
        number = sum(path.encode()) * 100
        return RemoveFile(path, 1, data_change, deletion_vector=_inline(vector), base_row_id=number, default_row_commit_version=1)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Return a version as Tahoe reads it; the newest by default."""
        return Snapshot.at(self.store, self.version if version is None else version)

    def delta(self, store: LogStore | None = None, clock: Clock = SYSTEM_CLOCK) -> DeltaSide:
        """Return the Delta side for a conversion, optionally through another store."""
        store = store or self.store
        return DeltaSide(store, partial(Snapshot.at, store), partial(read_commit, store), clock)

    def convert(
        self,
        version: int | None = None,
        store: LogStore | None = None,
        catalogs: Sequence[Catalog] = (),
        shards: ShardEncoder | None = None,
        clock: Clock = SYSTEM_CLOCK,
        **options: Any,
    ) -> Conversion:
        """Convert a version, as a commit's hook would.

        Args:
            version: None for the newest.
            store: replaces the log's own: a store that fails, or records its calls.
            catalogs: catalogs whose pointers are moved.
            shards: encodes large manifests; None to encode them in this process.
            clock: the clock of the conversion.
            options: arguments of `tahoe.uniform.convert.converter.Converter.convert`.
        """
        delta = self.delta(store, clock)
        pointers = [Pointer(delta.url, catalog, CatalogCalls(), here=True) for catalog in catalogs]
        target = delta.snapshot_at(self.version if version is None else version)
        return Converter(delta, self.caches, shards).convert(target, pointers, **options)
