"""Column mapping: the physical names and ids under which data files know the columns (PROTOCOL.md, "Column Mapping").

Ids and physical names live in the metadata of each `StructField`; ids of array elements, map keys and map values live in the
nearest ancestor field (PROTOCOL.md, "Writer Requirements for IcebergCompatV2"). All functions here are pure but for the
physical names that `assign_ids` draws from the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from tahoe.base.clock import Clock
from tahoe.base.exceptions import CorruptTable, InvalidRequest
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType, is_same_type

MAX_ID_KEY = "delta.columnMapping.maxColumnId"
ID_KEY = "delta.columnMapping.id"
PHYSICAL_NAME_KEY = "delta.columnMapping.physicalName"
NESTED_IDS_KEY = "delta.columnMapping.nested.ids"

_Type = TypeVar("_Type", bound=DataType)


def physical_path(schema: StructType, path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the physical names along a logical path through structs, arrays (``element``) and maps (``key``, ``value``).

    Raises `InvalidRequest` if the path leads to no field.
    """
    return tuple(part if column is None else column.physical_name for part, column in _walk(schema, path))


def assign_ids(
    schema: StructType,
    max_id: int,
    clock: Clock,
    mode: str,
    *,
    existing_table: bool = False,
    nested_ids: bool = False,
) -> tuple[StructType, int]:
    """Add an id and a physical name to each field without; return the schema and the new ``delta.columnMapping.maxColumnId``.

    Args:
        schema: logical schema; fields that have an id or a physical name keep them.
        max_id: the table's ``delta.columnMapping.maxColumnId`` so far, 0 for a new table. Ids are never reused.
        mode: ``name`` or ``id``; with ``none`` the schema is returned unchanged.
        existing_table: mapping is being enabled for a table with files, whose columns keep their names as physical names.
        nested_ids: assign ids to array elements, map keys and map values too (IcebergCompatV2 and later).
    """
    if mode == "none":
        return schema, max_id
    last = max(max_id, max_id_of(schema))

    def assign(column: StructField) -> StructField:
        nonlocal last
        metadata = dict(column.metadata)
        if ID_KEY not in metadata:
            last += 1
            metadata[ID_KEY] = last
        if PHYSICAL_NAME_KEY not in metadata:
            metadata[PHYSICAL_NAME_KEY] = column.name if existing_table else f"col-{clock.uuid()}"
        return replace(column, metadata=metadata)

    assigned = transform_fields(schema, assign)
    return assign_nested_ids(assigned, last) if nested_ids else (assigned, last)


def assign_nested_ids(schema: StructType, max_id: int) -> tuple[StructType, int]:
    """Assign ids to array elements, map keys and map values without one; return the schema and the new highest id."""
    last = max(max_id, max_id_of(schema))

    def assign(column: StructField) -> StructField:
        nonlocal last
        ids = dict(nested_ids_of(column))
        for key in nested_keys(column.data_type, column.physical_name):
            if key not in ids:
                last += 1
                ids[key] = last
        return replace(column, metadata={**column.metadata, NESTED_IDS_KEY: ids}) if ids else column

    return transform_fields(schema, assign), last


def nested_ids_of(column: StructField) -> Mapping[str, int]:
    """Return the ids of the elements, keys and values below a field, by ``<physical name>.element``, ``<physical name>.value.element``, …"""
    ids: Mapping[str, int] = column.metadata.get(NESTED_IDS_KEY) or {}
    return ids


def max_id_of(schema: StructType) -> int:
    """Return the highest id in the schema, nested ones too; 0 if there is none."""
    highest = 0
    for _, column in explode(schema):
        highest = max(highest, column.field_id or 0, *nested_ids_of(column).values(), 0)
    return highest


def check_mapping(schema: StructType, mode: str, max_id: int | None) -> None:
    """Run `check_mapping_of_columns`, and check that `max_id`, the table's property, is at least the highest id, which writers require."""
    check_mapping_of_columns(schema, mode)
    highest = max_id_of(schema)
    if mode != "none" and (max_id is None or max_id < highest):
        raise _broken(f"Property '{MAX_ID_KEY}' must be at least the highest column id {highest}, found {max_id}.", "")


def check_mapping_of_columns(schema: StructType, mode: str) -> None:
    """Refuse a schema whose mapping breaks the specification.

    Invariants, with mode ``name`` or ``id``: each field has an id and a physical name; ids are unique; physical names are unique
    among siblings.

    Raises `CorruptTable` naming the column.
    """
    if mode == "none":
        return
    ids: dict[int, str] = {}
    physical: dict[tuple[str, ...], str] = {}
    for path, column in explode(schema):
        name = ".".join(path)
        for key, missing in ((ID_KEY, "id"), (PHYSICAL_NAME_KEY, "physical name")):
            if column.metadata.get(key) is None:
                raise _broken(f"Column '{name}' has no {missing}, which column mapping mode '{mode}' demands.", name)
        if not isinstance(physical_name := column.metadata[PHYSICAL_NAME_KEY], str) or not physical_name:
            raise _broken(f"Column '{name}' has the physical name {physical_name!r}, which is no name.", name)
        nested = column.metadata.get(NESTED_IDS_KEY) or {}
        if not isinstance(nested, Mapping):
            raise _broken(f"Column '{name}' has nested ids that are no object: {nested!r}.", name)
        for number in (column.metadata[ID_KEY], *nested.values()):
            if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**31:
                raise _broken(f"Column '{name}' has the column mapping id {number!r}, which is no id: a number below 2^31.", name)
            if number in ids:
                raise _broken(f"Columns '{ids[number]}' and '{name}' have the same column mapping id {number}.", name)
            ids[number] = name
        where = physical_path(schema, path)
        if where in physical:
            raise _broken(f"Columns '{physical[where]}' and '{name}' have the same physical name '{column.physical_name}'.", name)
        physical[where] = name


def reuse_mapping(new: StructType, old: StructType) -> StructType:
    """Return the new schema with the ids and physical names of the old columns with the same path and type.

    For overwriting a table's schema: columns that stay the same keep their ids, so that readers by id see no change.
    """
    columns = {tuple(part.lower() for part in path): column for path, column in explode(old)}

    def reuse(path: tuple[str, ...], column: StructField) -> StructField:
        before = columns.get(tuple(part.lower() for part in path))
        if before is None or not is_same_type(before.data_type, column.data_type, case_sensitive=False):
            return column
        metadata = {key: before.metadata[key] for key in _KEYS if key in before.metadata}
        return replace(column, metadata={**metadata, **column.metadata})

    return transform_with_path(new, reuse)


def without_mapping(schema: StructType) -> StructType:
    """Return the schema without ids and physical names, which must not be copied from another table."""
    return transform_fields(
        schema, lambda column: replace(column, metadata={k: v for k, v in column.metadata.items() if k not in _KEYS})
    )


def explode(schema: StructType) -> Iterator[tuple[tuple[str, ...], StructField]]:
    """Yield every field at every depth with its field path, parents first; ``element``, ``key`` and ``value`` step into collections."""
    for column in schema:
        yield (column.name,), column
        for path, nested in _explode_type(column.data_type):
            yield (column.name, *path), nested


def transform_fields(data_type: _Type, change: Callable[[StructField], StructField]) -> _Type:
    """Return the type with each field at every depth replaced by the result of `change`, parents before their children.

    `change` may alter name, nullability and metadata; the children of its result are transformed next.
    """
    return transform_with_path(data_type, lambda _, column: change(column))


def transform_with_path(
    data_type: _Type, change: Callable[[tuple[str, ...], StructField], StructField], path: tuple[str, ...] = ()
) -> _Type:
    """Transform fields as `transform_fields`; `change` also gets the field path of `explode`."""
    result: Any
    match data_type:
        case StructType(fields):
            changed = []
            for column in fields:
                inner = (*path, column.name)
                new = change(inner, column)
                changed.append(replace(new, data_type=transform_with_path(new.data_type, change, inner)))
            result = StructType(tuple(changed))
        case ArrayType(element, contains_null):
            result = ArrayType(transform_with_path(element, change, (*path, "element")), contains_null)
        case MapType(key, value, value_contains_null):
            result = MapType(
                transform_with_path(key, change, (*path, "key")),
                transform_with_path(value, change, (*path, "value")),
                value_contains_null,
            )
        case _:
            result = data_type
    return result  # type: ignore[no-any-return]


_KEYS = (ID_KEY, PHYSICAL_NAME_KEY, NESTED_IDS_KEY)


def _explode_type(data_type: DataType) -> Iterator[tuple[tuple[str, ...], StructField]]:
    match data_type:
        case StructType():
            yield from explode(data_type)
        case ArrayType(element):
            for path, column in _explode_type(element):
                yield ("element", *path), column
        case MapType(key, value):
            for path, column in _explode_type(key):
                yield ("key", *path), column
            for path, column in _explode_type(value):
                yield ("value", *path), column


def nested_keys(data_type: DataType, prefix: str) -> Iterator[str]:
    """Yield the keys of the nested ids below one field, in pre-order; a struct ends the search, because its fields have their own ids."""
    match data_type:
        case ArrayType(element):
            yield f"{prefix}.element"
            yield from nested_keys(element, f"{prefix}.element")
        case MapType(key, value):
            yield f"{prefix}.key"
            yield from nested_keys(key, f"{prefix}.key")
            yield f"{prefix}.value"
            yield from nested_keys(value, f"{prefix}.value")


def _walk(schema: StructType, path: tuple[str, ...]) -> Iterator[tuple[str, StructField | None]]:
    """Each part of a path with its field; None for ``element``, ``key`` and ``value``."""
    at: DataType = schema
    for part in path:
        match at:
            case StructType():
                column = at.find(part)
                if column is None:
                    raise InvalidRequest(
                        f"There is no column '{'.'.join(path)}': '{part}' is none of {', '.join(at.names)}.",
                        code="DELTA_COLUMN_NOT_FOUND",
                        column=".".join(path),
                    )
                yield part, column
                at = column.data_type
            case ArrayType(element) if part == "element":
                yield part, None
                at = element
            case MapType(key, value) if part in ("key", "value"):
                yield part, None
                at = key if part == "key" else value
            case _:
                raise InvalidRequest(
                    f"There is no column '{'.'.join(path)}': {at} has no part '{part}'.",
                    code="DELTA_COLUMN_NOT_FOUND",
                    column=".".join(path),
                )


def _broken(message: str, column: str) -> CorruptTable:
    return CorruptTable(
        f"{message} Restore the metaData action of the log, or restore the table to an earlier version.",
        code="TAHOE_CORRUPT_COLUMN_MAPPING",
        column=column,
    )
