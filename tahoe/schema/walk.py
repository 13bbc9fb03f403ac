"""Every field of a schema, however deep, and every primitive type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType


def all_fields(schema: StructType) -> Iterator[StructField]:
    """Every field, those inside lists and maps included; a field before the fields inside it."""
    for column in schema:
        yield column
        yield from _inside(column.data_type)


def struct_fields(schema: StructType) -> Iterator[StructField]:
    """Every field that structs alone lead to."""
    for column in schema:
        yield column
        if isinstance(column.data_type, StructType):
            yield from struct_fields(column.data_type)


def primitives(data_type: DataType) -> Iterator[PrimitiveType]:
    """The primitive types that lists and maps are made of; those of a struct's fields belong to the fields."""
    match data_type:
        case PrimitiveType():
            yield data_type
        case ArrayType(element):
            yield from primitives(element)
        case MapType(key, value):
            yield from primitives(key)
            yield from primitives(value)


def paths_of_type(schema: StructType, is_type: Callable[[DataType], bool]) -> list[str]:
    """Return the paths of the fields, list elements and map entries of certain types without parts."""
    return [path for column in schema for path in _paths_of_type(column.data_type, column.name, is_type)]


def _paths_of_type(data_type: DataType, path: str, is_type: Callable[[DataType], bool]) -> Iterator[str]:
    match data_type:
        case StructType(fields):
            for column in fields:
                yield from _paths_of_type(column.data_type, f"{path}.{column.name}", is_type)
        case ArrayType(element):
            yield from _paths_of_type(element, f"{path}.element", is_type)
        case MapType(key, value):
            yield from _paths_of_type(key, f"{path}.key", is_type)
            yield from _paths_of_type(value, f"{path}.value", is_type)
        case _ if is_type(data_type):
            yield path


def _inside(data_type: DataType) -> Iterator[StructField]:
    match data_type:
        case StructType():
            yield from all_fields(data_type)
        case ArrayType(element):
            yield from _inside(element)
        case MapType(key, value):
            yield from _inside(key)
            yield from _inside(value)
