"""Rewrites of shredded variants that preserve the shredding (PROTOCOL.md, "Variant Shredding").

If all files of a group shred a variant into the same columns, it is read and written as the plain struct that it is in the files, so
that it is not reassembled and keeps the shredding that Spark chose. If the files differ, it is reassembled: correct too, but larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from tahoe.base.lazy import pq
from tahoe.schema.arrow import from_arrow_schema
from tahoe.schema.types import DataType, PrimitiveType, StructField, StructType
from tahoe.schema.variant_shredding import is_shredded
from tahoe.snapshot.scan import BareVersion, ScannedVersion

__all__ = ["with_variants_as_stored"]

_VARIANT = PrimitiveType("variant")
_EXACT = (
    *(
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.string(),
        pa.binary(),
    ),
    *(pa.timestamp("us"), pa.timestamp("us", "UTC")),
)
"""Types that Tahoe reads and writes unchanged."""


def with_variants_as_stored(version: ScannedVersion, footers: Sequence[pq.FileMetaData]) -> ScannedVersion:
    """Return the version with its shredded variants as the structs in these files; a column stays a variant where the files differ.

    Args:
        footers: of all files that are read together.
    """
    config = version.config
    if config.column_mapping_mode == "id":
        return version  # the parts of a variant have no ids to match by
    types = [footer.schema.to_arrow_schema() for footer in footers]
    columns = tuple(_as_stored(column, types) for column in version.schema)
    if columns == version.schema.fields:
        return version
    metadata = replace(config.metadata, schema_string=StructType(columns).to_json())
    return BareVersion(version.store, version.version, replace(config, metadata=metadata))


def _as_stored(column: StructField, files: Sequence[pa.Schema]) -> StructField:
    if column.data_type != _VARIANT:
        return column
    found = [file.field(column.physical_name).type for file in files if column.physical_name in file.names]
    # A file written before the column was added cannot mark NULL in a part that must not be missing.
    same = 0 < len(found) == len(files) and is_shredded(found[0]) and all(one.equals(found[0]) for one in found)
    return replace(column, data_type=_struct(found[0])) if same and _is_exact(found[0]) else column


def _struct(stored: pa.StructType) -> DataType:
    (column,) = from_arrow_schema(pa.schema([pa.field("v", stored)])).fields
    return column.data_type


def _is_exact(data_type: pa.DataType) -> bool:
    if pa.types.is_struct(data_type):
        return bool(data_type.num_fields) and all(_is_exact(field.type) for field in data_type.fields)
    if pa.types.is_list(data_type):
        return _is_exact(data_type.value_type)
    return data_type in _EXACT or pa.types.is_decimal128(data_type)
