"""A Delta schema as an Iceberg schema: same ids, same names, types by `iceberg_primitive` (format/spec.md, appendix C).

Ids are Delta's column mapping ids, so that data files written under column mapping are read by id. Ids of list elements, map keys
and map values are the nested ids that IcebergCompatV2 stores in the nearest ancestor field.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tahoe.base.exceptions import CorruptTable, TahoeError
from tahoe.base.json_values import JsonObject, compact_json
from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.constant_folding import ONE_ROW
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, constant_default
from tahoe.schema.mapping import explode, nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.uniform.formats.single_values import VOID, iceberg_primitive, no_iceberg_type

FIRST_PARTITION_ID = 1000
_PLAIN = ("boolean", "byte", "short", "integer", "long", "string")


def iceberg_schema(schema: StructType, format_version: int = 2) -> JsonObject:
    """Return the schema as Iceberg's JSON value, without a ``schema-id``; from version 3 on with column defaults.

    Raises `Unsupported` for a type that Iceberg's format version lacks, `CorruptTable` for a field without an id.
    """
    if format_version < 3:
        for _, column in explode(schema):
            if column.data_type == VOID:
                raise no_iceberg_type(VOID)
    value = _struct(schema)
    if format_version >= 3:
        for converted, column in zip(value["fields"], schema, strict=True):
            if (default := write_default(column)) is not None:
                converted["write-default"] = default
    return value


def partition_fields(schema: StructType, partition_columns: Sequence[str]) -> list[JsonObject]:
    """Return the fields of the partition spec: Delta's partition columns as identity transforms, with ids from 1000."""
    return [
        {
            "source-id": _id(schema.field(name)),
            "field-id": FIRST_PARTITION_ID + position,
            "transform": "identity",
            "name": schema.field(name).name,
        }
        for position, name in enumerate(partition_columns)
    ]


def name_mapping(schema: StructType, more_names: Mapping[str, int] | None = None) -> str:
    """Return ``schema.name-mapping.default``, by which a reader finds columns in data files without ids.

    Files use physical names; the logical name follows for files from before column mapping.

    Args:
        more_names: ids by name of columns that files may have beyond the table's; some readers fail on a column without a name.
    """
    mapped = [*_mapped(schema), *(_entry(number, [name], []) for name, number in (more_names or {}).items())]
    return compact_json(mapped)


def last_column_id(schema: StructType) -> int:
    """Return the highest id in use, including nested ids."""
    highest = 0
    for _, column in explode(schema):
        highest = max(highest, _id(column), *nested_ids_of(column).values())
    return highest


def primitive_columns(schema: StructType, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield the columns for which Iceberg has statistics, by physical path: primitives, also in structs, not in lists and maps."""
    for column in schema:
        inner = (*path, column.physical_name)
        if isinstance(column.data_type, StructType):
            yield from primitive_columns(column.data_type, inner)
        elif not isinstance(column.data_type, ArrayType | MapType) and column.data_type != VOID:
            yield inner, column


def _struct(data_type: StructType) -> JsonObject:
    return {"type": "struct", "fields": [_field(column) for column in data_type]}


def _field(column: StructField) -> JsonObject:
    value = {
        "id": _id(column),
        "name": column.name,
        "required": not column.nullable,
        "type": _type(column.data_type, column, column.physical_name),
    }
    comment = column.metadata.get("comment")
    if comment:
        value["doc"] = str(comment)
    return value


def _type(data_type: DataType, owner: StructField, path: str) -> Any:
    """`owner` is the nearest field above, whose metadata has the nested ids; `path` is their key."""
    match data_type:
        case StructType():
            return _struct(data_type)
        case ArrayType(element, contains_null):
            return {
                "type": "list",
                "element-id": _nested_id(owner, f"{path}.element"),
                "element": _type(element, owner, f"{path}.element"),
                "element-required": not contains_null,
            }
        case MapType(key, value, value_contains_null):
            return {
                "type": "map",
                "key-id": _nested_id(owner, f"{path}.key"),
                "key": _type(key, owner, f"{path}.key"),
                "value-id": _nested_id(owner, f"{path}.value"),
                "value": _type(value, owner, f"{path}.value"),
                "value-required": not value_contains_null,
            }
    return iceberg_primitive(data_type)


def _mapped(data_type: DataType, owner: StructField | None = None, path: str = "") -> list[JsonObject]:
    match data_type:
        case StructType(fields):
            return [_entry(_id(f), [f.physical_name, f.name], _mapped(f.data_type, f, f.physical_name)) for f in fields]
        case ArrayType(element) if owner is not None:
            inner = f"{path}.element"
            return [_entry(_nested_id(owner, inner), ["element"], _mapped(element, owner, inner))]
        case MapType(key, value) if owner is not None:
            return [
                _entry(_nested_id(owner, f"{path}.{name}"), [name], _mapped(part, owner, f"{path}.{name}"))
                for name, part in (("key", key), ("value", value))
            ]
    return []


def _entry(number: int, names: list[str], fields: list[JsonObject]) -> JsonObject:
    entry: JsonObject = {"field-id": number, "names": list(dict.fromkeys(names))}
    return {**entry, "fields": fields} if fields else entry


def _id(column: StructField) -> int:
    if column.field_id is None:
        raise _without_id(column.name)
    return column.field_id


def _nested_id(owner: StructField, key: str) -> int:
    number = nested_ids_of(owner).get(key)
    if number is None:
        raise _without_id(f"{owner.name} ({key})")
    return int(number)


def _without_id(column: str) -> CorruptTable:
    return CorruptTable(
        f"Column {column} has no column mapping id, which Iceberg needs to find it in data files. "
        "Enable delta.columnMapping.mode together with delta.enableIcebergCompatV2.",
        code="DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
        column=column,
    )


def write_default(column: StructField) -> Any:
    """Return a column's default as Iceberg's ``write-default`` (format/spec.md, "JSON single-value serialization").

    None for no default, NULL, the statement's time, a default that depends on a time zone or is not understood, and a number that JSON
    cannot represent. Only Tahoe adds rows on the Iceberg side, so nothing is lost by omitting it. Delta has no ``initial-default``, which
    fills in rows from before a column: these rows have NULL.
    """
    if CURRENT_DEFAULT not in column.metadata:
        return None
    try:
        default = constant_default(column, "")
        value = None if default is None else compute(default.value, ONE_ROW)[0].as_py()
    except TahoeError:
        return None
    return None if value is None else _default_json(value, str(column.data_type))


def _default_json(value: object, kind: str) -> Any:
    match value:
        case bytes():
            return value.hex()
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value if kind in _PLAIN else None
