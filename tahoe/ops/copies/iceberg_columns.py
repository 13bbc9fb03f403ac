"""Convert an Iceberg schema to a Delta schema with the same column ids, and check that files can be read by these ids. Pure.

Sources: Iceberg's format/spec.md, "Schemas and Data Types" and appendix C; PROTOCOL.md, "Column Mapping".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import Unsupported
from tahoe.protocol.iceberg_compat import ICEBERG_TYPES
from tahoe.schema.arrow import from_arrow_type
from tahoe.schema.mapping import ID_KEY, NESTED_IDS_KEY, PHYSICAL_NAME_KEY
from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

_NAMES = {iceberg: delta for delta, iceberg in ICEBERG_TYPES.items()}  # of several types the last, the widest
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_WHOLE = ("byte", "short", "integer")  # one physical type
_ID = b"PARQUET:field_id"


def delta_schema(schema: Mapping[str, object], table: str, names: Mapping[int, str] | None = None) -> StructType:
    """Convert the JSON value of an Iceberg schema; each column keeps its id.

    Args:
        table: the table's URL, for error messages.
        names: the column names in the files, by id. They become the physical names, for readers that resolve columns by name although the
            mode is ``id``. The physical name of any other column is its current name.

    Raises `Unsupported`: Delta has no such type, or a column has an initial default, which older files do not contain.
    """
    return _Columns(table, names or {}).struct(schema, ())


def names_in_file(file: Iterable[pa.Field]) -> Iterator[tuple[int, str]]:
    """Yield the id and the name of each column of a file, including those inside structs, lists and maps."""
    for column in file:
        if _ID in (column.metadata or {}):
            yield int(column.metadata[_ID]), column.name
        yield from _names_inside(column.type)


def _names_inside(kind: pa.DataType) -> Iterator[tuple[int, str]]:
    if pa.types.is_struct(kind):
        yield from names_in_file(kind.fields)
    elif pa.types.is_map(kind):
        yield from _names_inside(kind.key_type)
        yield from _names_inside(kind.item_type)
    elif pa.types.is_list(kind):
        yield from _names_inside(kind.value_type)


def places_in_file(file: Iterable[pa.Field], above: str = "") -> Iterator[tuple[int, str]]:
    """Yield the id of each column of a file outside lists and maps, and its path as in the Parquet footer."""
    for column in file:
        if _ID in (column.metadata or {}):
            yield int(column.metadata[_ID]), above + column.name
        if pa.types.is_struct(column.type):
            yield from places_in_file(column.type.fields, f"{above}{column.name}.")


def check_file(schema: StructType, file: pa.Schema, place: str) -> None:
    """Refuse a Parquet file that cannot be read by column ids, or whose columns had other types when it was written.

    Args:
        schema: the result of `delta_schema`.
        file: the schema of the file.
        place: the file's URL, for error messages.

    Raises `Unsupported`, with the file and the column.
    """
    for path in _without_id(file, ()):
        raise Unsupported(
            f"Column {path} of {place} has no field id, and columns of a table that was converted from Iceberg are found by their ids: a "
            "reader would show NULL. Let an Iceberg engine rewrite the file (rewrite_data_files).",
            code="TAHOE_ICEBERG_FILE_WITHOUT_IDS",
            file=place,
            column=path,
        )
    for path, expected, actual in _differences(schema, file, ()):
        raise Unsupported(
            f"Column {path} of {place} is of type {actual}, and the table's is {expected} by now. Let an Iceberg engine rewrite the file "
            "(rewrite_data_files).",
            code="TAHOE_ICEBERG_PROMOTED_TYPE",
            file=place,
            column=path,
        )


@dataclass(frozen=True, slots=True)
class _Columns:
    table: str
    names: Mapping[int, str]

    def struct(self, value: Mapping[str, Any], path: tuple[str, ...]) -> StructType:
        physical: dict[str, int] = {}
        for field in sorted(value["fields"], key=lambda field: int(field["id"])):
            name = self.names.get(field["id"], field["name"])
            # The old name of a dropped or renamed column may be the name of another column now.
            physical[name if name not in physical else f"{name}-{field['id']}"] = field["id"]
        by_id = {number: name for name, number in physical.items()}
        return StructType(tuple(self.field(field, by_id[field["id"]], (*path, str(field["name"]))) for field in value["fields"]))

    def field(self, value: Mapping[str, Any], physical: str, path: tuple[str, ...]) -> StructField:
        if value.get("initial-default") is not None:
            raise Unsupported(
                f"Column {'.'.join(path)} of the Iceberg table {self.table} has an initial default, which older files do not contain "
                "and Delta does not know. Let an Iceberg engine rewrite the files, and drop the default.",
                code="TAHOE_ICEBERG_INITIAL_DEFAULT",
                table=self.table,
                column=".".join(path),
            )
        if not isinstance(value["name"], str):
            raise TypeError(f"{value['name']!r:.50} is no name of a column")
        nested: dict[str, int] = {}
        kind = self.type(value["type"], path, physical, nested)
        metadata: dict[str, Any] = {ID_KEY: value["id"], PHYSICAL_NAME_KEY: physical}
        if nested:
            metadata[NESTED_IDS_KEY] = nested
        if value.get("doc"):
            metadata["comment"] = value["doc"]
        return StructField(value["name"], kind, not value["required"], metadata)

    def type(self, value: Any, path: tuple[str, ...], key: str, nested: dict[str, int]) -> DataType:
        """Convert a type; add the ids of list elements, map keys and map values to `nested`, with the prefix `key` (see `nested_ids_of`)."""
        kind = value["type"] if isinstance(value, Mapping) else value
        if kind == "struct":
            return self.struct(value, path)
        if kind == "list":
            nested[f"{key}.element"] = value["element-id"]
            inside = self.type(value["element"], (*path, "element"), f"{key}.element", nested)
            return ArrayType(inside, not value["element-required"])
        if kind == "map":
            nested[f"{key}.key"], nested[f"{key}.value"] = value["key-id"], value["value-id"]
            keys = self.type(value["key"], (*path, "key"), f"{key}.key", nested)
            values = self.type(value["value"], (*path, "value"), f"{key}.value", nested)
            return MapType(keys, values, not value["value-required"])
        if (match := _DECIMAL.fullmatch(kind)) is not None:
            return DecimalType(int(match[1]), int(match[2]))
        if kind in _NAMES:
            return PrimitiveType(_NAMES[kind])
        raise Unsupported(
            f"Column {'.'.join(path)} of the Iceberg table {self.table} is of type {kind}, which Delta has no type for, or none that reads "
            "these files. Write it as another type with an Iceberg engine first.",
            code="DELTA_UNSUPPORTED_DATA_TYPES",
            table=self.table,
            column=".".join(path),
        )


def _without_id(fields: Iterable[pa.Field], path: tuple[str, ...]) -> Iterator[str]:
    for column in fields:
        inner = (*path, column.name)
        if _ID not in (column.metadata or {}):
            yield ".".join(inner)
        yield from _without_id_inside(column.type, inner)


def _without_id_inside(kind: pa.DataType, path: tuple[str, ...]) -> Iterator[str]:
    if pa.types.is_struct(kind):
        yield from _without_id(kind.fields, path)
    elif pa.types.is_map(kind):
        yield from _without_id_inside(kind.key_type, (*path, "key"))
        yield from _without_id_inside(kind.item_type, (*path, "value"))
    elif pa.types.is_list(kind):
        yield from _without_id_inside(kind.value_type, (*path, "element"))


_Difference = tuple[str, DataType, pa.DataType]


def _differences(schema: StructType, fields: Iterable[pa.Field], path: tuple[str, ...]) -> Iterator[_Difference]:
    by_id = {int(column.metadata[_ID]): column for column in fields}
    for column in schema:
        stored = by_id.get(-1 if column.field_id is None else column.field_id)
        if stored is not None:
            yield from _difference(column.data_type, stored.type, (*path, column.name))


def _difference(expected: DataType, actual: pa.DataType, path: tuple[str, ...]) -> Iterator[_Difference]:
    match expected:
        case StructType() if pa.types.is_struct(actual):
            yield from _differences(expected, actual.fields, path)
        case ArrayType(element) if pa.types.is_list(actual):
            yield from _difference(element, actual.value_type, (*path, "element"))
        case MapType(key, value) if pa.types.is_map(actual):
            yield from _difference(key, actual.key_type, (*path, "key"))
            yield from _difference(value, actual.item_type, (*path, "value"))
        case _ if not _is_same(expected, actual):
            yield ".".join(path), expected, actual


def _is_same(expected: DataType, actual: pa.DataType) -> bool:
    try:
        kind = from_arrow_type(actual)
    except Unsupported:
        return False
    both = (expected, kind)
    return expected == kind or all(isinstance(data_type, PrimitiveType) and data_type.name in _WHOLE for data_type in both)
