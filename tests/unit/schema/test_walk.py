"""Every field, however deep."""

from __future__ import annotations

from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.schema.walk import all_fields, primitives, struct_fields

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
DEEP = StructType((StructField("x", LONG), StructField("inner", StructType((StructField("y", TEXT),)))))
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("place", DEEP),
        StructField("list", ArrayType(ArrayType(DEEP, True), True)),
        StructField("map", MapType(StructType((StructField("k", TEXT),)), DEEP, True)),
    )
)


def test_all_fields_are_those_of_lists_and_maps_too_and_each_comes_before_those_inside_it() -> None:
    deep = ["x", "inner", "y"]
    assert [field.name for field in all_fields(SCHEMA)] == ["id", "place", *deep, "list", *deep, "map", "k", *deep]


def test_fields_of_structs_alone_leave_lists_and_maps_closed() -> None:
    assert [field.name for field in struct_fields(SCHEMA)] == ["id", "place", "x", "inner", "y", "list", "map"]


def test_primitives_are_elements_of_lists_and_maps_but_not_fields_of_structs() -> None:
    assert list(primitives(MapType(TEXT, ArrayType(LONG, True), True))) == [TEXT, LONG]
    assert list(primitives(DEEP)) == [] and list(primitives(ArrayType(DEEP, True))) == []
