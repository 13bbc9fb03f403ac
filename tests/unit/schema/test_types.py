"""Types as the specification writes them, and back."""

from __future__ import annotations

import json

import pytest

from tahoe.base.exceptions import CorruptTable, InvalidRequest, Unsupported
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
    leaves,
    schema_from_json,
)

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
INNER = StructType((StructField("x", LONG), StructField("Deep", StructType((StructField("y", STRING),)))))
SCHEMA = StructType(
    (
        StructField("Id", LONG, False),
        StructField("place", INNER, True, {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "col-4", "any": [1]}),
        StructField("list", ArrayType(DecimalType(10, 2), False)),
        StructField("map", MapType(STRING, INNER, True)),
    )
)


def test_a_schema_equals_its_text() -> None:
    assert schema_from_json(SCHEMA.to_json()) == SCHEMA
    assert [field["name"] for field in json.loads(SCHEMA.to_json())["fields"]] == SCHEMA.names


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (LONG, "long"),
        (DecimalType(10, 2), "decimal(10,2)"),
        (ArrayType(LONG, True), "array<long>"),
        (MapType(STRING, LONG, True), "map<string,long>"),
    ],
)
def test_a_type_is_shown_as_spark_shows_it(data_type: DataType, text: str) -> None:
    assert str(data_type).replace("bigint", "long") == text


def test_a_field_is_found_exactly_first_and_then_without_regard_to_case() -> None:
    twins = StructType((StructField("a", LONG), StructField("A", STRING)))
    assert (twins.field("A").data_type, twins.field("a").data_type) == (STRING, LONG)
    assert SCHEMA.find("ID") is SCHEMA.fields[0] and SCHEMA.find("none") is None
    with pytest.raises(InvalidRequest, match="Id, place, list, map") as caught:
        SCHEMA.field("none")
    assert caught.value.code == "DELTA_COLUMN_NOT_FOUND"


def test_fields_are_resolved_chosen_and_left_out() -> None:
    deep = SCHEMA.resolve(("place", "deep", "y"))
    assert deep is not None and deep.data_type == STRING
    assert SCHEMA.resolve(("list", "element")) is None and SCHEMA.resolve(("Id", "x")) is None
    assert SCHEMA.select(["list", "ID"]).names == ["list", "Id"]
    assert SCHEMA.without({"Id", "MAP"}).names == ["place", "list", "map"]
    assert len(SCHEMA) == 4 and [field.name for field in SCHEMA] == SCHEMA.names


def test_leaves_are_the_ends_of_structs_and_lists_and_maps_are_leaves() -> None:
    actual = [".".join(field.name for field in leaf) for leaf in leaves(SCHEMA)]
    assert actual == ["Id", "place.x", "place.Deep.y", "list", "map"]


def test_mapping_is_read_from_the_metadata_and_without_it_a_name_is_its_own() -> None:
    place = SCHEMA.field("place")
    assert (place.physical_name, place.field_id) == ("col-4", 4)
    assert (SCHEMA.fields[0].physical_name, SCHEMA.fields[0].field_id) == ("Id", None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '"long"',
        "[" * 100_000,
        '{"type":"struct"}',
        '{"type":"struct","fields":[1]}',
        '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":[]}]}',
        '{"type":"struct","fields":[{"name":"a","type":"decimal(39,0)","nullable":true,"metadata":{}}]}',
        '{"type":"struct","fields":[{"name":"a","type":{"type":"set"},"nullable":true,"metadata":{}}]}',
        '{"type":"struct","fields":[{"type":"long","nullable":true,"metadata":{}}]}',
    ],
)
def test_invalid_schemas_are_damage_that_is_named(text: str) -> None:
    with pytest.raises(CorruptTable, match=r"schema|struct|field|'name'|type"):
        schema_from_json(text)


def test_values_of_one_column_have_one_system_of_coordinates() -> None:
    with pytest.raises(Unsupported, match="of column 'a' has an unsupported srid") as error:
        schema_from_json('{"type":"struct","fields":[{"name":"a","type":"geometry(SRID:ANY)","nullable":true,"metadata":{}}]}')
    assert error.value.code == "DELTA_GEOSPATIAL_SRID_NOT_SUPPORTED"


@pytest.mark.parametrize("name", ["geometry", "geometry(EPSG:3857)", "geography(OGC:CRS84, spherical)"])
def test_geometries_are_types(name: str) -> None:
    (column,) = schema_from_json(f'{{"type":"struct","fields":[{{"name":"a","type":"{name}","nullable":true,"metadata":{{}}}}]}}')
    assert is_geospatial(column.data_type) and is_opaque(column.data_type)


@pytest.mark.parametrize(
    "name",
    [
        *("geometry(SRID)", "geometry(PROJJSON)", "geography(OGC:CRS84, planar)"),
        *("timestamp_nanos", "timestamp_ntz_nanos", "time(6)"),
        *("interval", "interval year to month", "interval day to second"),
    ],
)
def test_a_type_that_is_not_here_is_refused_by_its_name_and_the_column_s(name: str) -> None:
    with pytest.raises(Unsupported) as error:
        schema_from_json(f'{{"type":"struct","fields":[{{"name":"a","type":"{name}","nullable":true,"metadata":{{}}}}]}}')
    assert error.value.code == "DELTA_UNSUPPORTED_DATA_TYPES"
    assert f"'{name}' of column 'a'" in error.value.message
