"""Manifest entries of a table with unusual names and all kinds of statistics."""

from __future__ import annotations

from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tahoe.uniform.formats.data_files import FileEncoder, partition_summaries, spec_of
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tahoe.uniform.formats.manifest_pieces import blocks_of, pieces_of
from tahoe.uniform.formats.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    Entry,
    ManifestFile,
    manifest_bytes,
    manifest_header,
)

ROOT = "file:///data/a table"


def column(name: str, data_type: object, number: int) -> StructField:
    return StructField(
        name, data_type, True, {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    )


SCHEMA = StructType(
    (
        column("id", PrimitiveType("long"), 1),
        column("name", PrimitiveType("string"), 2),
        column("1 odd/naïve %name", PrimitiveType("date"), 3),
        column("price", DecimalType(12, 2), 4),
        column("ratio", PrimitiveType("double"), 5),
    )
)


PARTITIONED_BY = ("1 odd/naïve %name", "price")


def entries(count: int, per_partition: int = 10) -> list[Entry]:
    encoder = FileEncoder(SCHEMA, PARTITIONED_BY, lambda path: f"{ROOT}/{path}")
    files = []
    for number in range(count):
        date = None if number % 7 == 0 else f"2020-01-{number // per_partition % 28 + 1:02d}"
        stats = {
            "numRecords": number + 1,
            "minValues": {"col-1": number, "col-2": f"a{number}", "col-5": "-0.5"},
            "maxValues": {"col-1": number * 10, "col-2": f"z{number}\U0010ffff", "col-5": "NaN"},
            "nullCount": {"col-1": 0, "col-2": number},
        }
        files.append(encoder.encode(f"f{number}.parquet", {"col-3": date, "col-4": f"-{number}.50"}, 1000 + number, stats))
    statuses = [ADDED, EXISTING, DELETED]
    return [
        Entry(statuses[i % 3], 77, None if i % 3 == 0 else 3, None if i % 3 == 0 else 2, file) for i, file in enumerate(files)
    ]


def manifest_of(data: bytes, originals: list[Entry], path: str = "file:///data/a table/metadata/m.avro") -> ManifestFile:
    spec = spec_of(SCHEMA, PARTITIONED_BY)
    return ManifestFile(
        path, len(data), 0, 5, 2, 77, 1, 2, 3, 4, 5, 6, partition_summaries(spec, (entry.file.partition for entry in originals))
    )


def encoded(originals: list[Entry]) -> bytes:
    header = manifest_header(spec_of(SCHEMA, PARTITIONED_BY), {**iceberg_schema(SCHEMA), "schema-id": 4})
    return manifest_bytes(blocks_of(pieces_of(originals)), header)
