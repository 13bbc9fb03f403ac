"""Iceberg schemas as changes of Delta's: by ids, with Delta's rules for types, and with the files' names."""

from __future__ import annotations

from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.copies.iceberg_columns import delta_schema
from tahoe.protocol.config import TableConfig
from tahoe.schema.types import ArrayType, DecimalType, PrimitiveType, StructType
from tahoe.uniform.commits.schema_change import SchemaChange, changed_schema, defaults_of, has_dropped_columns, refuse_required
from tahoe.uniform.formats.iceberg_schema import iceberg_schema
from tests.unit.uniform.commits.test_registration import column, config

MAXIMUM = "delta.columnMapping.maxColumnId"
INNER = StructType((column("x", 4), column("y", 5)))
TABLE = config(
    column("id", 1, PrimitiveType("integer")),
    column("small", 2, PrimitiveType("short"), **{"delta.columnMapping.physicalName": "col-2"}),
    column("inner", 3, INNER),
    column("price", 6, DecimalType(9, 2)),
    column("tags", 7, ArrayType(PrimitiveType("string"), True), **{"delta.columnMapping.nested.ids": {"tags.element": 8}}),
    **{MAXIMUM: "8", "delta.enableTypeWidening": "true"},
)


def fields(table: TableConfig = TABLE) -> list[dict[str, Any]]:
    return [dict(each) for each in iceberg_schema(table.schema)["fields"]]


def change_to(new: list[dict[str, Any]], table: TableConfig = TABLE) -> SchemaChange:
    names = {each.field_id: each.physical_name for each in (*table.schema, *INNER)}
    edited = changed_schema(table, delta_schema({"type": "struct", "fields": new}, "t", names))
    refuse_required(table, edited)
    return edited


def field(number: int, name: str, kind: Any = "long", *, required: bool = False) -> dict[str, Any]:
    return {"id": number, "name": name, "required": required, "type": kind}


def test_the_same_schema_changes_nothing() -> None:
    assert change_to(fields()) == SchemaChange(TABLE.schema)


def test_columns_are_added_renamed_dropped_and_reordered() -> None:
    id_, small, inner, _, tags = fields()
    inner = {**inner, "type": {"type": "struct", "fields": [field(9, "z"), {**inner["type"]["fields"][0], "name": "w"}]}}
    change = change_to([field(10, "new", "string"), tags, {**small, "name": "tiny"}, inner, id_])
    assert change.schema.names == ["new", "tags", "tiny", "inner", "id"]
    tiny = change.schema.field("tiny")
    assert (str(tiny.data_type), tiny.physical_name, tiny.field_id) == ("short", "col-2", 2)
    assert change.dropped == (("inner", "y"), ("price",))
    assert change.renamed == ((("small",), ("tiny",)), (("inner", "x"), ("inner", "w")))
    assert [each.physical_name for each in change.schema.field("inner").data_type] == ["z", "x"]  # type: ignore[attr-defined]


def test_types_become_wider_by_delta_s_rules() -> None:
    id_, *rest = fields()
    change = change_to([{**id_, "type": "long"}, *rest])
    assert (change.schema.field("id").data_type, change.retyped) == (PrimitiveType("long"), (("id",),))
    without = config(*TABLE.schema.fields, **{MAXIMUM: "8"})
    with pytest.raises(Unsupported, match=r"'delta.enableTypeWidening' = 'true'"):
        change_to([{**id_, "type": "long"}, *rest], without)


def test_comments_and_looser_nullability_are_taken_over() -> None:
    table = config(column("id", 1, nullable=False), column("b", 2), **{MAXIMUM: "2"})
    first, second = fields(table)
    changed = change_to([{**first, "required": False, "doc": "the key"}, second], table).schema.field("id")
    assert (changed.nullable, changed.metadata["comment"]) == (True, "the key")


@pytest.mark.parametrize(
    ("new", "error", "message"),
    [
        ([{**fields()[0], "type": "string"}], Unsupported, "Column id .*cannot change from int(eger)? to string"),
        ([{**fields()[3], "type": "decimal(12, 4)"}], Unsupported, "Column price .*cannot change"),
        ([{**fields()[0], "required": True}], Unsupported, "Column id .*becomes required"),
        ([field(9, "new", required=True)], Unsupported, "Column new .*is new and required"),
        ([field(4, "x")], InvalidRequest, "The new column x has the id 4, and new ids are above 8"),
        ([{**fields()[2], "type": "long"}], Unsupported, "Column inner .*cannot change"),
        (
            [{**fields()[4], "type": {**fields()[4]["type"], "element-id": 9}}],
            InvalidRequest,
            "elements, keys or values of column tags have other ids",
        ),
        (
            [{**fields()[4], "type": {**fields()[4]["type"], "element-required": True}}],
            Unsupported,
            "elements or values that become required",
        ),
    ],
)
def test_changes_that_files_or_rows_do_not_allow_are_refused(
    new: list[dict[str, Any]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        change_to(new)


def test_dropped_columns_are_known_from_the_ids() -> None:
    assert not has_dropped_columns(TABLE)
    assert has_dropped_columns(config(*TABLE.schema.fields, **{MAXIMUM: "9"}))


def test_defaults_are_found_at_every_depth() -> None:
    inner = {"type": "struct", "fields": [{"id": 4, "name": "x", "type": "int", "write-default": 0}]}
    fields = [
        {"id": 1, "name": "a", "type": "int", "write-default": None},
        {"id": 2, "name": "b", "type": {"type": "list", "element-id": 3, "element": inner}},
        {"id": 5, "name": "c", "type": {"type": "map", "key": "string", "value": "long"}, "write-default": {}},
    ]
    assert defaults_of({"type": "struct", "fields": fields}) == {4: 0, 5: {}}
    assert defaults_of({"fields": [{"fields": 5, "write-default": 1}, 7, {"id": "x", "write-default": 1}]}) == {}
