"""Delta types to and from Arrow types, both ways in one place."""

from __future__ import annotations

import pyarrow as pa

from tahoe.exceptions import Unsupported
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

__all__ = ["from_arrow_schema", "from_arrow_type", "to_arrow_schema", "to_arrow_type"]

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
}


def to_arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that holds every value of a Delta type: timestamps in microseconds, ``timestamp`` in UTC.

    Raises `Unsupported` for a variant.
    """
    match data_type:
        case PrimitiveType(name):
            if name not in _TO_ARROW:
                raise Unsupported(
                    f"Values of type '{name}' cannot be read into Arrow by this version of Tahoe.",
                    code="DELTA_UNSUPPORTED_DATA_TYPES",
                    type=name,
                )
            return _TO_ARROW[name]
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, contains_null):
            return pa.list_(pa.field("element", to_arrow_type(element), contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(to_arrow_type(key), pa.field("value", to_arrow_type(value), value_contains_null))
        case StructType(fields):
            return pa.struct([_to_arrow_field(column) for column in fields])


def to_arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema with the table's logical names. Raises `Unsupported` naming all columns that Arrow cannot hold, and the others."""
    refused = [column.name for column in schema if _holds_variant(column.data_type)]
    if refused:
        others = ", ".join(column.name for column in schema if column.name not in refused) or "there are none"
        raise Unsupported(
            f"These columns have values of type variant, which this version of Tahoe cannot read: {', '.join(refused)}. "
            f"Select other columns: {others}.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            columns=refused,
        )
    return pa.schema([_to_arrow_field(column) for column in schema])


def from_arrow_type(data_type: pa.DataType) -> DataType:
    """The narrowest Delta type that holds every value of an Arrow type.

    Unsigned integers become the next wider signed type; times, durations, nanoseconds that Delta has no type for are `Unsupported`.
    """
    types = pa.types
    if types.is_dictionary(data_type):
        return from_arrow_type(data_type.value_type)
    if types.is_decimal(data_type):
        if data_type.precision > 38 or not 0 <= data_type.scale <= data_type.precision:
            raise Unsupported(
                f"Delta has no type for Arrow's {data_type}: a decimal has up to 38 digits, and no more of them after the point. "
                "Cast the column first.",
                code="DELTA_UNSUPPORTED_DATA_TYPES",
                type=str(data_type),
            )
        return DecimalType(data_type.precision, data_type.scale)
    if types.is_struct(data_type):
        return StructType(tuple(_from_arrow_field(data_type.field(i)) for i in range(data_type.num_fields)))
    if types.is_map(data_type):
        return MapType(from_arrow_type(data_type.key_type), from_arrow_type(data_type.item_type), data_type.item_field.nullable)
    if (
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
        or types.is_list_view(data_type)
    ):
        return ArrayType(from_arrow_type(data_type.value_type), data_type.value_field.nullable)
    if types.is_timestamp(data_type):
        return PrimitiveType("timestamp" if data_type.tz else "timestamp_ntz")
    for test, name in _FROM_ARROW:
        if test(data_type):
            return PrimitiveType(name)
    raise Unsupported(
        f"Delta has no type for Arrow's {data_type}; cast the column first.",
        code="DELTA_UNSUPPORTED_DATA_TYPES",
        type=str(data_type),
    )


def from_arrow_schema(schema: pa.Schema) -> StructType:
    """The Delta schema of Arrow's columns, in their order. Raises `Unsupported` for a type that Delta does not have."""
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


def _holds_variant(data_type: DataType) -> bool:
    match data_type:
        case ArrayType(element):
            return _holds_variant(element)
        case MapType(key, value):
            return _holds_variant(key) or _holds_variant(value)
        case StructType(fields):
            return any(_holds_variant(column.data_type) for column in fields)
    return data_type == PrimitiveType("variant")


def _to_arrow_field(column: StructField) -> pa.Field:
    return pa.field(column.name, to_arrow_type(column.data_type), column.nullable)


def _from_arrow_field(column: pa.Field) -> StructField:
    return StructField(column.name, from_arrow_type(column.type), column.nullable)
