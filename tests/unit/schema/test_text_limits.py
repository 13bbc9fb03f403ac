"""Limits of texts: the declared type of a column and its parts."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import CorruptTable
from tahoe.schema.text_limits import DECLARED_TYPE, Limits, TextLimit, has_char, limits_of, may_become
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

STRING, LONG = PrimitiveType("string"), PrimitiveType("long")
THREE, FOUR = TextLimit(3, False), TextLimit(4, True)


def column(data_type: DataType, declared: str | None) -> StructField:
    return StructField("c", data_type, metadata={} if declared is None else {DECLARED_TYPE: declared})


def struct(*fields: tuple[str, DataType]) -> StructType:
    return StructType(tuple(StructField(name, data_type) for name, data_type in fields))


@pytest.mark.parametrize(
    ("data_type", "declared", "expected"),
    [
        (STRING, None, None),
        (STRING, "string", None),
        (STRING, "varchar(3)", THREE),
        (STRING, "CHAR(4)", FOUR),
        (LONG, "bigint", None),
        (ArrayType(STRING), "array<varchar(3)>", Limits((THREE,))),
        (MapType(STRING, STRING), "map<char(4),varchar(3)>", Limits((FOUR, THREE))),
        (struct(("a", STRING), ("b", LONG)), "struct<a:varchar(3),b:bigint>", Limits((THREE, None))),
        (struct(("a b:,", STRING), ("x`y", STRING)), "struct<`a b:,`:varchar(3),`x``y`:char(4)>", Limits((THREE, FOUR))),
        (struct(("b", STRING), ("A", STRING)), "struct<a:varchar(3),B:char(4)>", Limits((FOUR, THREE))),
        (struct(("a", STRING), ("new", STRING)), "struct<a:varchar(3)>", Limits((THREE, None))),
        (struct(("renamed", STRING), ("b", LONG)), "struct<a:varchar(3),b:bigint>", Limits((THREE, None))),
        (
            ArrayType(struct(("d", PrimitiveType("string")), ("m", MapType(STRING, ArrayType(STRING))))),
            "array<struct<d:decimal(10,2),m:map<string,array<char(4)>>>>",
            Limits((Limits((None, Limits((None, Limits((FOUR,)))))),)),
        ),
        (StructType((StructField("a", STRING, metadata={DECLARED_TYPE: "varchar(3)"}),)), None, Limits((THREE,))),
    ],
)
def test_limits_of_a_column(data_type: DataType, declared: str | None, expected: object) -> None:
    assert limits_of(column(data_type, declared)) == expected


@pytest.mark.parametrize(
    ("data_type", "declared"),
    [
        (LONG, "varchar(3)"),
        (STRING, "array<varchar(3)>"),
        (ArrayType(STRING), "varchar(3)"),
        (struct(("x", STRING)), "struct<a:varchar(3),b:int>"),
        (STRING, "varchar(3"),
        (STRING, "varchar(3)>"),
        (STRING, ""),
        (struct(("x", STRING)), "struct<x"),
        (STRING, "array<" * 3000),
    ],
)
def test_a_declared_type_that_is_not_the_column_s_is_damage(data_type: DataType, declared: str) -> None:
    with pytest.raises(CorruptTable, match="TAHOE_CORRUPT_SCHEMA"):
        limits_of(column(data_type, declared))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("varchar(3)", "varchar(3)", True),
        ("varchar(3)", "varchar(4)", True),
        ("varchar(3)", "varchar(2)", False),
        ("varchar(3)", None, True),
        ("varchar(3)", "char(3)", False),
        ("char(3)", "varchar(3)", True),
        ("char(3)", "varchar(2)", False),
        ("char(3)", "char(4)", False),
        (None, "varchar(100)", False),
        (None, None, True),
    ],
)
def test_changes_of_limits_that_need_no_look_at_the_rows(old: str | None, new: str | None, expected: bool) -> None:
    assert may_become(old, new) == expected


@pytest.mark.parametrize(
    ("declared", "expected"),
    [("char(3)", True), ("varchar(3)", False), ("array<CHAR (3)>", True), ("struct<char:string>", False)],
)
def test_which_columns_hold_a_char(declared: str, expected: bool) -> None:
    assert has_char(column(STRING, declared)) == expected
