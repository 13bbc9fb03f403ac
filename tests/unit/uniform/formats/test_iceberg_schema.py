"""The Iceberg schema and name mapping of a Delta schema."""

from __future__ import annotations

import json

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType
from tahoe.uniform.formats.iceberg_schema import iceberg_schema, name_mapping
from tests.unit.uniform.sample_documents import column

NESTED = StructType(
    (
        column(
            "lists",
            ArrayType(ArrayType(PrimitiveType("integer"), False)),
            1,
            **{"delta.columnMapping.nested.ids": {"col-1.element": 5, "col-1.element.element": 6}},
        ),
        column(
            "map",
            MapType(
                PrimitiveType("string"),
                StructType(
                    (
                        column(
                            "inner",
                            ArrayType(PrimitiveType("timestamp")),
                            3,
                            **{"delta.columnMapping.nested.ids": {"col-3.element": 9}},
                        ),
                    )
                ),
                False,
            ),
            2,
            comment="what it is for",
            **{"delta.columnMapping.nested.ids": {"col-2.key": 7, "col-2.value": 8}},
        ),
    )
)


def test_nested_types_keep_delta_s_ids():
    fields = iceberg_schema(NESTED)["fields"]
    inner = {"type": "list", "element-id": 6, "element": "int", "element-required": True}
    assert fields[0]["type"] == {"type": "list", "element-id": 5, "element": inner, "element-required": False}
    struct = {
        "type": "struct",
        "fields": [
            {
                "id": 3,
                "name": "inner",
                "required": False,
                "type": {"type": "list", "element-id": 9, "element": "timestamptz", "element-required": False},
            }
        ],
    }
    assert fields[1]["doc"] == "what it is for"
    assert fields[1]["type"] == {
        "type": "map",
        "key-id": 7,
        "key": "string",
        "value-id": 8,
        "value": struct,
        "value-required": True,
    }


def test_the_name_mapping_has_physical_and_logical_names():
    assert json.loads(name_mapping(NESTED)) == [
        {
            "field-id": 1,
            "names": ["col-1", "lists"],
            "fields": [{"field-id": 5, "names": ["element"], "fields": [{"field-id": 6, "names": ["element"]}]}],
        },
        {
            "field-id": 2,
            "names": ["col-2", "map"],
            "fields": [
                {"field-id": 7, "names": ["key"]},
                {
                    "field-id": 8,
                    "names": ["value"],
                    "fields": [{"field-id": 3, "names": ["col-3", "inner"], "fields": [{"field-id": 9, "names": ["element"]}]}],
                },
            ],
        },
    ]


@pytest.mark.parametrize(
    "schema",
    [
        StructType((StructField("bare", PrimitiveType("long")),)),
        StructType((column("bare", ArrayType(PrimitiveType("long")), 1),)),
    ],
)
def test_a_column_without_an_id_is_named(schema):
    with pytest.raises(CorruptTable, match="bare"):
        iceberg_schema(schema)
