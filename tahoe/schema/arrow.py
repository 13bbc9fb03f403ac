"""Delta types to and from Arrow types, both ways in one place."""

from __future__ import annotations

import pyarrow as pa

from tahoe.base.exceptions import Unsupported
from tahoe.schema.depth import check_arrow_depth
from tahoe.schema.geospatial import arrow_mark, name_of_mark
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType, is_geospatial

VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={b"variant": b"true"})]
)
"""A variant: its two parts as data files have them (PROTOCOL.md, "Variant data in Parquet"), marked as PySpark marks them. Arrow has no type
for it that Python knows."""
_TO_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "variant": VARIANT,
}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for all values of a Delta type: timestamps in microseconds, ``timestamp`` in UTC, `VARIANT`; geometries and
    geographies are binary, with metadata in their field (`tahoe.schema.geospatial.arrow_mark`)."""
    match data_type:
        case PrimitiveType(name):
            return pa.binary() if is_geospatial(data_type) else _TO_ARROW[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(_field_of("element", element, contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(_field_of("key", key, False), _field_of("value", value, value_contains_null))
        case StructType(fields):
            return pa.struct([_to_arrow_field(column) for column in fields])


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema with the table's logical names."""
    return pa.schema([_to_arrow_field(column) for column in schema])


def is_variant(data_type: pa.DataType) -> bool:
    """Whether an Arrow type is marked as a variant: a struct of `value` and `metadata`, this with the metadata ``variant`` = ``true``."""
    if not pa.types.is_struct(data_type):
        return False
    parts = {field.name: field for field in data_type.fields}
    mark = (parts["metadata"].metadata or {}).get(b"variant") if set(parts) == {"value", "metadata"} else None
    return mark is not None and mark.lower() == b"true"


def from_arrow_type(data_type: pa.DataType, path: tuple[str, ...] = ()) -> DataType:
    """Return the narrowest Delta type that can represent every value of an Arrow type.

    Unsigned integers become the next wider signed type. Timestamps in nanoseconds become timestamps in microseconds; values that need
    nanoseconds are rejected when they are written (`tahoe.schema.cast.store_cast`).

    Args:
        path: of the column, for the error.

    Raises:
        Unsupported: a time, a duration, an interval or another type that Delta has none for, ``DELTA_UNSUPPORTED_DATA_TYPES``.
    """
    types = pa.types
    if types.is_dictionary(data_type):
        return from_arrow_type(data_type.value_type, path)
    if types.is_decimal(data_type):
        if data_type.precision > 38 or not 0 <= data_type.scale <= data_type.precision:
            raise _without_type(data_type, path, ": a decimal has up to 38 digits, and no more of them after the point")
        return DecimalType(data_type.precision, data_type.scale)
    if is_variant(data_type):
        return PrimitiveType("variant")
    if types.is_struct(data_type):
        return StructType(tuple(_from_arrow_field(data_type.field(i), path) for i in range(data_type.num_fields)))
    if types.is_map(data_type):
        key, value = _type_of(data_type.key_field, (*path, "key")), _type_of(data_type.item_field, (*path, "value"))
        return MapType(key, value, data_type.item_field.nullable)
    if (
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
        or types.is_list_view(data_type)
    ):
        return ArrayType(_type_of(data_type.value_field, (*path, "element")), data_type.value_field.nullable)
    if types.is_timestamp(data_type):
        return PrimitiveType("timestamp" if data_type.tz else "timestamp_ntz")
    for test, name in _FROM_ARROW:
        if test(data_type):
            return PrimitiveType(name)
    raise _without_type(data_type, path)


def _without_type(data_type: pa.DataType, path: tuple[str, ...], why: str = "") -> Unsupported:
    column = ".".join(path)
    return Unsupported(
        f"Delta has no type for Arrow's {data_type}{f' of column {column!r}' if path else ''}{why}; cast the column first.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        type=str(data_type),
        **({"column": column} if path else {}),
    )


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """The Delta schema of Arrow's columns, in their order. Raises `Unsupported` for a type that Delta does not have."""
    check_arrow_depth(schema)
    return StructType(tuple(_from_arrow_field(column) for column in schema))


_FROM_ARROW = [
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_int64, "long"),
    (pa.types.is_uint32, "long"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_uint16, "integer"),
    (pa.types.is_int16, "short"),
    (pa.types.is_uint8, "short"),
    (pa.types.is_int8, "byte"),
    (pa.types.is_float64, "double"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float16, "float"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_date, "date"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_binary_view, "binary"),
    (pa.types.is_null, "void"),
]


def _to_arrow_field(column: StructField) -> pa.Field:
    return _field_of(column.name, column.data_type, column.nullable)


def _field_of(name: str, data_type: DataType, nullable: bool) -> pa.Field:
    mark = arrow_mark(str(data_type)) if is_geospatial(data_type) else None
    return pa.field(name, to_arrow_type(data_type), nullable, mark)


def _from_arrow_field(column: pa.Field, path: tuple[str, ...] = ()) -> StructField:
    return StructField(column.name, _type_of(column, (*path, column.name)), column.nullable)


def _type_of(field: pa.Field, path: tuple[str, ...]) -> DataType:
    marked = name_of_mark(field)
    return from_arrow_type(field.type, path) if marked is None else PrimitiveType(marked)
