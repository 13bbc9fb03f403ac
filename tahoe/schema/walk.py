"""Every field of a schema, however deep, and every primitive type."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType, is_geospatial

__all__ = ["all_fields", "geospatial_paths", "primitives", "struct_fields"]


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


def geospatial_paths(schema: StructType) -> list[str]:
    """Return the paths of the fields that contain geometries or geographies, also in a list or a map."""
    return [path for column in schema for path in _geospatial(column.data_type, column.name)]


def _geospatial(data_type: DataType, path: str) -> Iterator[str]:
    match data_type:
        case StructType(fields):
            for column in fields:
                yield from _geospatial(column.data_type, f"{path}.{column.name}")
        case ArrayType(element):
            yield from _geospatial(element, f"{path}.element")
        case MapType(key, value):
            yield from _geospatial(key, f"{path}.key")
            yield from _geospatial(value, f"{path}.value")
        case _ if is_geospatial(data_type):
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
