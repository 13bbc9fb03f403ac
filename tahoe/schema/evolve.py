"""Checks whether data can be written to a table, and merges the schemas. Pure functions over `StructType`.

The rules are delta-spark's: names match without regard to case; a column that the table does not have is an error unless
schemas are merged; a column that the data does not have becomes null; types may differ as far as SQL's store assignment allows
(Spark's ANSI policy); the nullability of data is not trusted, the table's is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.schema.depth import check_depth
from tahoe.schema.mapping import explode, reuse_mapping
from tahoe.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_geospatial,
    is_opaque,
    parts_of,
)
from tahoe.schema.widening import NO_WIDENING, Widening, fresh, is_stored_alike

FORBIDDEN_CHARACTERS = " ,;{}()\n\t="
_INTEGRALS = {"byte", "short", "integer", "long"}
_TIMES = {"date", "timestamp", "timestamp_ntz"}
_VOID = PrimitiveType("void")
_Type = TypeVar("_Type", bound=DataType)
Storing = Callable[[DataType, DataType], bool]
"""Whether values of one type without parts may be written to a column of another."""


def check_column_names(schema: StructType, column_mapping_mode: str = "none") -> None:
    """Refuse names that delta-spark's Parquet readers refuse, unless column mapping provides physical names.

    Raises `InvalidRequest`, ``DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES``, naming the columns.
    """
    if column_mapping_mode != "none":
        return
    bad = [".".join(path) for path, column in explode(schema) if any(c in column.name for c in FORBIDDEN_CHARACTERS)]
    if bad:
        raise InvalidRequest(
            f"Column names must not contain any of {FORBIDDEN_CHARACTERS!r}, found: {', '.join(map(repr, bad))}. "
            "Rename them, or set 'delta.columnMapping.mode' to 'name' on the table.",
            code="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            columns=bad,
        )


def check_duplicates(schema: StructType, reason: str | None = None) -> None:
    """Refuse two columns, or two fields of one struct, whose names differ in case at most.

    Args:
        reason: delta-spark's word for their origin, such as ``DATA``.
    """
    counts = Counter(tuple(part.lower() for part in path) for path, _ in explode(schema))
    twice = sorted(".".join(path) for path, count in counts.items() if count > 1)
    if twice:
        raise SchemaMismatch(
            f"Column names must differ in more than their case; found more than once: {', '.join(twice)}. "
            "Rename or drop one of each.",
            code="DELTA_DUPLICATE_COLUMNS_FOUND" if reason is None else f"DELTA_DUPLICATE_COLUMNS_FOUND.{reason}",
            columns=twice,
        )


def check_holds_data(schema: StructType) -> None:
    """Refuse a schema whose data files would have an empty table or struct without its void columns (PROTOCOL.md, "Void Type"), or that is
    nested too deep (`check_depth`)."""
    check_depth(schema)
    if all(column.data_type == _VOID for column in schema):
        raise _empty(
            "The table has no column that data files could store; add one of a type other than void.",
            "",
            "TABLE_ALL_VOID_COLUMNS" if len(schema) else "TABLE_NO_COLUMNS",
        )
    for path, column in explode(schema):
        name = ".".join(path)
        for part in parts_of(column.data_type):
            if isinstance(part, StructType) and all(field.data_type == _VOID for field in part):
                raise _empty(
                    f"The struct '{name}' has no field that data files could store; change the type of one of its fields.",
                    name,
                    "STRUCT_ALL_VOID_FIELDS" if len(part) else "STRUCT_NO_FIELDS",
                )
        if _void_in_collection(column.data_type):
            raise SchemaMismatch(
                f"Column '{name}' of type {column.data_type} has void inside an array or a map, which data files cannot contain. "
                "Change the column's type.",
                code="DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
                column=name,
            )


def can_store(source: DataType, target: DataType) -> bool:
    """Whether SQL's store assignment lets a value of a type without parts go into a column of another (Spark's ANSI policy).

    Numbers can be stored as numbers, but a value out of range is an error; all types except variants and geometries as strings; dates and
    timestamps as each other; binary, which must then be Well-Known Binary, as geometries; void as any type.
    """
    if source in (target, _VOID):
        return True
    if _is_numeric(source) and _is_numeric(target):
        return True
    if not isinstance(source, PrimitiveType | DecimalType) or not isinstance(target, PrimitiveType):
        return False
    if target.name == "string":
        return not is_opaque(source)
    if is_geospatial(target):
        return source == PrimitiveType("binary")
    return isinstance(source, PrimitiveType) and source.name in _TIMES and target.name in _TIMES


def can_coerce(source: DataType, target: DataType) -> bool:
    """Whether Spark casts values of one type without parts to another implicitly, as for the rows of a stream: like `can_store`, but also
    strings to numbers, dates, timestamps and binary, and only dates and timestamps with a time zone to each other.
    """
    if source in (target, _VOID):
        return True
    pair = (str(source), str(target))
    if pair[0] == "string":
        return _is_numeric(target) or pair[1] in (*_TIMES, "binary")
    if pair[0] in _TIMES and pair[1] in _TIMES:
        return pair in (("date", "timestamp"), ("timestamp", "date"))
    return not is_geospatial(target) and can_store(source, target)


def store_anything(source: DataType, target: DataType) -> bool:
    """Accept all types, for an engine that applies its own cast rules."""
    return True


def check_writable(data_schema: StructType, table_schema: StructType, stores: Storing = can_store) -> None:
    """Refuse data that does not fit the table.

    Args:
        stores: which types may be written to which.

    Raises:
        SchemaMismatch: a column that the table does not have, a type that cannot be stored in the table's, a missing column
            that must not be null, or a duplicate name. The message names the column, both types and the remedy.
    """
    check_duplicates(data_schema)
    _check_struct(data_schema, table_schema, (), stores)


def check_nested_fields(data_schema: StructType, table_schema: StructType) -> None:
    """Refuse data with a nested field that the table's column of this name does not have, or without one that must not be null.

    `check_writable` without the rules for the columns and types, before an engine casts the data to the table's types.

    Raises:
        SchemaMismatch: ``DELTA_METADATA_MISMATCH``, ``DELTA_MISSING_NOT_NULL_COLUMN_VALUE``.
    """
    for column in data_schema:
        target = table_schema.find(column.name)
        if target is not None:
            _check_type(column.data_type, target.data_type, (target.name,), store_anything)


def check_same_types(data_schema: StructType, table_schema: StructType) -> None:
    """Refuse data whose types differ from those of the table's columns of these names, because a DataFrame write does not cast.

    As in delta-spark, byte, short and int may be stored as a wider one of these three, void as any type, and columns that only one of the
    two schemas has are ignored (`check_writable` checks them).

    Raises:
        SchemaMismatch: ``DELTA_FAILED_TO_MERGE_FIELDS``; ``DELTA_METADATA_MISMATCH`` if ``mergeSchema`` would change the column's type.
    """
    for column in data_schema:
        target = table_schema.find(column.name)
        if target is not None:
            _check_same_type(column.data_type, target.data_type, (target.name,))


def _check_same_type(data: DataType, table: DataType, path: tuple[str, ...]) -> None:
    match data, table:
        case StructType(), StructType():
            for column in data:
                target = table.find(column.name)
                if target is not None:
                    _check_same_type(column.data_type, target.data_type, (*path, target.name))
        case ArrayType(), ArrayType():
            _check_same_type(data.element_type, table.element_type, (*path, "element"))
        case MapType(), MapType():
            _check_same_type(data.key_type, table.key_type, (*path, "key"))
            _check_same_type(data.value_type, table.value_type, (*path, "value"))
        case _ if data != table and _VOID not in (data, table) and not is_stored_alike(data, table):
            raise _type_differs(data, table, path)


def merge_schemas(
    table_schema: StructType, data_schema: StructType, widening: Widening = NO_WIDENING, stores: Storing = can_store
) -> StructType:
    """Add the columns and nested fields that only the data has to the table's schema, at the end of their struct, nullable.

    Fields in both schemas keep the table's name, nullability and metadata, and the table's type if the data can be stored in it, unless
    the type is widened; a void field takes the data's type.

    Args:
        widening: the types to widen to those of the data. `tahoe.schema.widening.with_type_changes` records the previous types.
        stores: as in `check_writable`.

    Raises:
        SchemaMismatch: ``DELTA_FAILED_TO_MERGE_FIELDS`` for incompatible types, or a name that occurs twice.
    """
    check_duplicates(data_schema)
    merged = _merge_struct(table_schema, fresh(data_schema), (), _Merging(widening, stores))
    check_duplicates(merged)
    return merged


def replace_schema(table_schema: StructType, data_schema: StructType) -> StructType:
    """Return the schema after an overwrite with ``overwriteSchema``: the data's, nullable; unchanged columns keep their ids."""
    check_duplicates(data_schema)
    return reuse_mapping(as_nullable(fresh(data_schema)), table_schema)


def without_void(data_type: _Type) -> _Type:
    """Return the type in data files, which omit void fields at every depth (PROTOCOL.md, "Void Type")."""
    result: DataType
    match data_type:
        case StructType(fields):
            columns = (column for column in fields if column.data_type != _VOID)
            result = StructType(tuple(replace(column, data_type=without_void(column.data_type)) for column in columns))
        case ArrayType(element):
            result = replace(data_type, element_type=without_void(element))
        case MapType(key, value):
            result = replace(data_type, key_type=without_void(key), value_type=without_void(value))
        case _:
            return data_type
    return result  # type: ignore[return-value]


def _check_struct(data: StructType, table: StructType, path: tuple[str, ...], stores: Storing) -> None:
    for column in data:
        target = table.find(column.name)
        if target is None:
            raise _extra_column(column, table, path)
        _check_type(column.data_type, target.data_type, (*path, target.name), stores)
    present = {column.name.lower() for column in data}
    for target in table:
        if not target.nullable and target.name.lower() not in present:
            name = ".".join((*path, target.name))
            raise SchemaMismatch(
                f"Column '{name}' ({target.data_type}) of the table must not be null, but the data does not have it. "
                "Add it to the data, or drop the column's NOT NULL constraint.",
                code="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
                column=name,
            )


def _check_type(data: DataType, table: DataType, path: tuple[str, ...], stores: Storing) -> None:
    match data, table:
        case StructType(), StructType():
            _check_struct(data, table, path, stores)
        case ArrayType(), ArrayType():
            _check_type(data.element_type, table.element_type, (*path, "element"), stores)
        case MapType(), MapType():
            _check_type(data.key_type, table.key_type, (*path, "key"), stores)
            _check_type(data.value_type, table.value_type, (*path, "value"), stores)
        case _ if not stores(data, table):
            raise _incompatible(data, table, path)


@dataclass(frozen=True, slots=True)
class _Merging:
    """How schemas are merged: the arguments of `merge_schemas`."""

    widening: Widening
    stores: Storing


def _merge_struct(table: StructType, data: StructType, path: tuple[str, ...], how: _Merging) -> StructType:
    merged = []
    for column in table:
        other = data.find(column.name)
        if other is not None:
            merged_type = _merge_type(column.data_type, other.data_type, (*path, column.name), how)
            column = replace(column, data_type=merged_type)
        merged.append(column)
    added = [column for column in data if table.find(column.name) is None]
    return StructType((*merged, *as_nullable(StructType(tuple(added)))))


def _merge_type(table: DataType, data: DataType, path: tuple[str, ...], how: _Merging) -> DataType:
    match table, data:
        case StructType(), StructType():
            return _merge_struct(table, data, path, how)
        case ArrayType(), ArrayType():
            return replace(table, element_type=_merge_type(table.element_type, data.element_type, (*path, "element"), how))
        case MapType(), MapType():
            return replace(
                table,
                key_type=_merge_type(table.key_type, data.key_type, (*path, "key"), how),
                value_type=_merge_type(table.value_type, data.value_type, (*path, "value"), how),
            )
    if table == _VOID:
        return as_nullable(data)
    if how.widening.allows(table, data):
        return data
    if not how.stores(data, table):
        raise _incompatible(data, table, path)
    return table


def as_nullable(data_type: _Type) -> _Type:
    """Return the type with every field, element and value nullable."""
    result: DataType
    match data_type:
        case StructType(fields):
            result = StructType(tuple(replace(f, data_type=as_nullable(f.data_type), nullable=True) for f in fields))
        case ArrayType(element):
            result = ArrayType(as_nullable(element), True)
        case MapType(key, value):
            result = MapType(as_nullable(key), as_nullable(value), True)
        case _:
            return data_type
    return result  # type: ignore[return-value]


def _void_in_collection(data_type: DataType) -> bool:
    """Whether an array or map contains void, also inside structs."""
    return any(_holds_void(part) for part in list(parts_of(data_type))[1:])


def _holds_void(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_holds_void(part) for column in data_type for part in parts_of(column.data_type))
    return data_type == _VOID


def _is_numeric(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) or (
        isinstance(data_type, PrimitiveType) and (data_type.name in _INTEGRALS or data_type.name in ("float", "double"))
    )


def _extra_column(column: StructField, table: StructType, path: tuple[str, ...]) -> SchemaMismatch:
    name = ".".join((*path, column.name))
    inside = f"struct '{'.'.join(path)}'" if path else "table"
    table_columns = ", ".join(f"{field.name} {field.data_type}" for field in table)
    return SchemaMismatch(
        f"The data has a column '{name}' ({column.data_type}) that the {inside} does not have; the {inside} has: {table_columns}. "
        "Set mergeSchema to add it to the table, or drop it from the data.",
        column=name,
        data_type=str(column.data_type),
    )


def _incompatible(data: DataType, table: DataType, path: tuple[str, ...]) -> SchemaMismatch:
    name = ".".join(path)
    remedy = (
        f"Set mergeSchema to make it {data}."
        if table == _VOID
        else f"Cast the data to {table}, or overwrite the table with overwriteSchema to change the column's type (mergeSchema does "
        "not make this change)."
    )
    return SchemaMismatch(
        f"Column '{name}' has type {table} in the table and {data} in the data, which cannot be stored in it. {remedy}",
        code="DELTA_FAILED_TO_MERGE_FIELDS",
        column=name,
        table_type=str(table),
        data_type=str(data),
    )


def _type_differs(data: DataType, table: DataType, path: tuple[str, ...]) -> SchemaMismatch:
    if not is_stored_alike(table, data):
        return _incompatible(data, table, path)
    name = ".".join(path)
    return SchemaMismatch(
        f"Column '{name}' has type {table} in the table and {data} in the data. Cast the data to {table}, or set mergeSchema to make the "
        f"column {data}.",
        code="DELTA_METADATA_MISMATCH",
        column=name,
        table_type=str(table),
        data_type=str(data),
    )


def _empty(message: str, column: str, reason: str) -> SchemaMismatch:
    return SchemaMismatch(message, code=f"DELTA_CANNOT_WRITE_EMPTY_SCHEMA.{reason}", column=column)
