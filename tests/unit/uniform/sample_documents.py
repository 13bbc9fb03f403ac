"""Metadata documents of a table to which each version adds two files."""

from __future__ import annotations

from tahoe.protocol.actions import Metadata
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.metadata import AddedSnapshot, Totals

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}


TABLE_ID = "7f3c1f36-2f2b-4d8c-9a55-0123456789ab"


def column(name: str, data_type: object, number: int, nullable: bool = True, **metadata: object) -> StructField:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return StructField(name, data_type, nullable, {**mapping, **metadata})


ID = column("id", PrimitiveType("long"), 1, nullable=False)


DAY = column("day", PrimitiveType("date"), 2)


def metadata(*columns: StructField, by: tuple[str, ...] = (), **configuration: str) -> Metadata:
    return Metadata(TABLE_ID, StructType(columns or (ID, DAY)).to_json(), by, {**UNIFORM, **configuration})


def described(base, of: Metadata, version: int) -> dict:
    return documents.described(base, of, location="file:///t", version=version, timestamp_ms=version * 1000)


def advanced(base, of: Metadata, version: int) -> dict:
    document = described(base, of, version)
    added = AddedSnapshot(
        snapshot_id=documents.next_snapshot_id(document, version),
        version=version,
        timestamp_ms=version * 1000,
        operation="append",
        manifest_list=f"file:///t/metadata/snap-{version}.avro",
        totals=Totals(added_files=2, added_rows=10, added_bytes=100),
    )
    return documents.with_snapshot(document, added)


def history(count: int, of: Metadata | None = None) -> dict:
    document = None
    for version in range(count):
        document = advanced(document, of or metadata(), version)
    return document
