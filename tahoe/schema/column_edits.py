"""Adds, drops, moves and changes columns in a schema, for ALTER TABLE. Pure functions over `StructType`.

A path names fields of structs, case-insensitively, and the parts of collections as ``element``, ``key`` and ``value``. The other columns
keep their metadata, including the id and the physical name of column mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tahoe.base.exceptions import InvalidRequest, SchemaMismatch
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType

Path = tuple[str, ...]
"""The names that lead to a column."""
_NOT_FOUND = "UNRESOLVED_COLUMN.WITH_SUGGESTION"


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a column among its siblings.

    Args:
        after: the sibling before it; None for the first position.
    """

    after: str | None = None

    def __str__(self) -> str:
        """The position in SQL and in the history."""
        return "FIRST" if self.after is None else f"AFTER {self.after}"


FIRST = Position()
"""The position before all siblings."""


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to add.

    Args:
        parent: the path of the struct to add it to; empty for a column of the table.
        position: None to add it at the end.
    """

    parent: Path
    column: StructField
    position: Position | None = None

    @property
    def path(self) -> Path:
        """Its own path."""
        return (*self.parent, self.column.name)


def name_of(path: Sequence[str]) -> str:
    """Return the path in the form of messages and the history: a name that contains a dot is quoted."""
    return ".".join(f"`{part}`" if "." in part else part for part in path)


def field_at(schema: StructType, path: Path) -> StructField | None:
    """Return the column at a path, or None; for ``element``, ``key`` and ``value``, a field with the type of the collection's part."""
    at: DataType = schema
    field: StructField | None = None
    for part in path:
        field = _child(at, part)
        if field is None:
            return None
        at = field.data_type
    return field


def with_columns(schema: StructType, columns: Sequence[NewColumn]) -> StructType:
    """Return the schema with columns added, one after the other.

    Raises:
        InvalidRequest: a parent does not exist or is not a struct, or a sibling does not exist; `SchemaMismatch` for a name that already
            exists or is added twice.
    """
    added: set[Path] = set()
    for new in columns:
        lowered = tuple(part.lower() for part in new.path)
        if lowered in added:
            raise _there_already("COLUMN_ALREADY_EXISTS", new.path, "would be added twice")
        added.add(lowered)
        schema = with_column(schema, new)
    return schema


def with_column(schema: StructType, new: NewColumn) -> StructType:
    """Return the schema with one column added; see `with_columns`."""

    def add(parent: DataType) -> DataType:
        if not isinstance(parent, StructType):
            raise InvalidRequest(
                f"Cannot add {name_of(new.path)} because its parent is no struct, but {parent}. Name a struct, or a column beside it.",
                code="INVALID_FIELD_NAME",
                column=name_of(new.path),
            )
        if parent.find(new.column.name) is not None:
            raise _there_already("FIELD_ALREADY_EXISTS", new.path, "is there already; names must differ in more than their case")
        return StructType(_placed(parent.fields, new.column, new.position, new.path, "FIELD_NOT_FOUND"))

    return _edited(schema, new.parent, add, new.path)


def without_column(schema: StructType, path: Path) -> StructType:
    """Return the schema without a column or a nested field.

    Raises:
        InvalidRequest: it does not exist, is not a field of a struct, or is the only field.
    """

    def drop(parent: DataType) -> DataType:
        if not isinstance(parent, StructType):
            raise InvalidRequest(
                f"Can only drop nested columns from a struct, but {name_of(path[:-1])} is {parent}. Drop the whole column.",
                code="DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
                column=name_of(path),
            )
        column = parent.find(path[-1])
        if column is None:
            raise not_there(schema, path)
        if len(parent) == 1:
            raise InvalidRequest(
                f"Cannot drop {name_of(path)}: it is the only one of its {'struct' if len(path) > 1 else 'table'}. Add another first, or "
                f"drop the whole {'column' if len(path) > 1 else 'table'}.",
                code="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                column=name_of(path),
            )
        return StructType(tuple(field for field in parent if field is not column))

    return _edited(schema, path[:-1], drop, path)


def with_field(schema: StructType, path: Path, new: StructField, position: Position | None = None) -> StructType:
    """Return the schema with the field at a path replaced; for ``element``, ``key`` and ``value`` only the type is used.

    Args:
        position: its new position among its siblings; None keeps it.
    """

    def change(parent: DataType) -> DataType:
        match parent, path[-1].lower():
            case ArrayType(), "element":
                return replace(parent, element_type=new.data_type)
            case MapType(), "key":
                return replace(parent, key_type=new.data_type)
            case MapType(), "value":
                return replace(parent, value_type=new.data_type)
        old = _child(parent, path[-1])
        if not isinstance(parent, StructType) or old is None:
            raise not_there(schema, path)
        if position is None:
            return StructType(tuple(new if field is old else field for field in parent))
        if position.after is not None and position.after.lower() == old.name.lower():
            return StructType(tuple(new if field is old else field for field in parent))
        return StructType(_placed(tuple(field for field in parent if field is not old), new, position, path))

    return _edited(schema, path[:-1], change, path)


def not_there(schema: StructType, path: Path, code: str = _NOT_FOUND) -> InvalidRequest:
    """Return the error for a path that leads to no column."""
    names = ", ".join(_names(schema))
    return InvalidRequest(
        f"Couldn't find column {name_of(path)} in the table, which has: {names}. Name one of these.",
        code=code,
        column=name_of(path),
    )


def _there_already(code: str, path: Path, how: str) -> SchemaMismatch:
    return SchemaMismatch(f"The column {name_of(path)} {how}. Choose another name.", code=code, column=name_of(path))


def _names(schema: StructType) -> Iterator[str]:
    for column in schema:
        yield f"{name_of((column.name,))} {column.data_type}"


def _child(parent: DataType, name: str) -> StructField | None:
    match parent, name.lower():
        case StructType(), _:
            return parent.find(name)
        case ArrayType(element, contains_null), "element":
            return StructField("element", element, contains_null)
        case MapType(key, _), "key":
            return StructField("key", key, False)
        case MapType(_, value, contains_null), "value":
            return StructField("value", value, contains_null)
    return None


def _edited(schema: StructType, parents: Path, edit: Callable[[DataType], DataType], whole: Path) -> StructType:
    """Return the schema with the type at `parents` replaced by the result of `edit`."""

    def walk(at: DataType, rest: Path) -> Any:
        if not rest:
            return edit(at)
        child = _child(at, rest[0])
        if child is None:
            raise not_there(schema, whole)
        inner = walk(child.data_type, rest[1:])
        match at:
            case StructType():
                return StructType(tuple(replace(field, data_type=inner) if field is child else field for field in at))
            case ArrayType():
                return replace(at, element_type=inner)
            case MapType():
                return replace(at, **{f"{child.name}_type": inner})
        raise AssertionError(at)

    result = walk(schema, parents)
    assert isinstance(result, StructType)
    return result


def _placed(
    fields: tuple[StructField, ...], column: StructField, position: Position | None, path: Path, code: str = _NOT_FOUND
) -> tuple[StructField, ...]:
    if position is None:
        return (*fields, column)
    if position.after is None:
        return (column, *fields)
    sibling = StructType(fields).find(position.after)
    if sibling is None:
        raise not_there(StructType(fields), (*path[:-1], position.after), code)
    place = fields.index(sibling) + 1
    return (*fields[:place], column, *fields[place:])
