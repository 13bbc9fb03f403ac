"""Columns that come, go and move in a schema, at any depth."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.column_edits import (
    FIRST,
    NewColumn,
    Position,
    field_at,
    name_of,
    with_columns,
    with_field,
    without_column,
)
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

LONG = PrimitiveType("long")


def struct(*names: str) -> StructType:
    return StructType(tuple(StructField(name, LONG) for name in names))


SCHEMA = StructType(
    (
        StructField("a", LONG),
        StructField("s", struct("x", "y"), metadata={"delta.columnMapping.id": 2}),
        StructField("l", ArrayType(struct("q"), False)),
        StructField("m", MapType(struct("k"), struct("v"), True)),
    )
)


@pytest.mark.parametrize(
    ("parent", "position", "expected"),
    [
        ((), FIRST, ["n", "a", "s", "l", "m"]),
        ((), None, ["a", "s", "l", "m", "n"]),
        ((), Position("A"), ["a", "n", "s", "l", "m"]),
        (("S",), Position("x"), ["x", "n", "y"]),
        (("l", "element"), None, ["q", "n"]),
        (("m", "key"), FIRST, ["n", "k"]),
        (("m", "VALUE"), None, ["v", "n"]),
    ],
)
def test_a_column_comes_where_its_path_and_position_say(parent, position, expected):
    after = with_columns(SCHEMA, [NewColumn(parent, StructField("n", LONG), position)])
    at = after if not parent else field_at(after, parent).data_type
    assert at.names == expected
    for remaining in ("s", "l", "m"):
        assert field_at(after, (remaining,)).metadata == field_at(SCHEMA, (remaining,)).metadata


def test_a_field_of_elements_can_be_dropped_unless_it_is_the_last():
    wider = with_columns(SCHEMA, [NewColumn(("m", "value"), StructField("n", LONG))])
    assert without_column(wider, ("m", "value", "v")) == with_field(SCHEMA, ("m", "value"), StructField("value", struct("n")))
    for path in (("m", "key", "k"), ("l", "element", "q")):
        with pytest.raises(InvalidRequest, match="only one"):
            without_column(SCHEMA, path)


def test_a_column_moves_among_its_siblings_and_not_behind_itself():
    y = field_at(SCHEMA, ("s", "y"))
    assert field_at(with_field(SCHEMA, ("s", "y"), y, FIRST), ("s",)).data_type.names == ["y", "x"]
    assert with_field(SCHEMA, ("s", "y"), y, Position("Y")) == SCHEMA
    with pytest.raises(InvalidRequest, match="nope"):
        with_field(SCHEMA, ("s", "y"), y, Position("nope"))


def test_an_unknown_path_is_reported_with_the_known_fields():
    assert field_at(SCHEMA, ("a", "x")) is None and field_at(SCHEMA, ("l", "q")) is None
    with pytest.raises(
        InvalidRequest, match=r"Couldn.t find column s.nope in the table, which has: a long, s struct<x:long,y:long>"
    ):
        with_field(SCHEMA, ("s", "nope"), StructField("nope", LONG))
    assert name_of(("a.b", "c")) == "`a.b`.c"
