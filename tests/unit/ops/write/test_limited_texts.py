"""Texts checked against char(n) and varchar(n) on their way into data files, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import CorruptTable, InvariantViolation
from tahoe.ops.write.enforce import LimitedTexts
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.text_limits import DECLARED_TYPE
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

STRING = PrimitiveType("string")
NESTED = MapType(STRING, ArrayType(StructType((StructField("t", STRING), StructField("n", PrimitiveType("long"))))))
DECLARED = "map<char(3),array<struct<t:varchar(2),n:bigint>>>"


def limited(data_type: DataType, declared: str, values: pa.Array) -> list[Any]:
    schema = StructType((StructField("c", data_type, metadata={DECLARED_TYPE: declared}),))
    rows = LimitedTexts(schema, "memory:///t")(pa.table({"c": values}))
    assert rows.schema.field("c").type == values.type
    return rows.column("c").to_pylist()


@pytest.mark.parametrize(
    ("data_type", "declared", "given", "expected"),
    [
        (STRING, "varchar(3)", ["abc", "abc  ", "", None, "日本語 "], ["abc", "abc", "", None, "日本語"]),
        (STRING, "char(3)", ["a", "abc ", "", None, "日本"], ["a  ", "abc", "   ", None, "日本 "]),
        (STRING, "varchar(3)", ["ab    "], ["ab "]),
        (
            NESTED,
            DECLARED,
            [[("k", [{"t": "ab  ", "n": 1}, None, {"t": None, "n": 2}])], None, [], [("x", None)]],
            [[("k  ", [{"t": "ab", "n": 1}, None, {"t": None, "n": 2}])], None, [], [("x  ", None)]],
        ),
    ],
)
def test_blanks_are_cut_off_and_filled_up(data_type: DataType, declared: str, given: list[Any], expected: list[Any]) -> None:
    values = pa.array(given, to_arrow_type(data_type))
    assert limited(data_type, declared, values) == expected
    assert limited(data_type, declared, pa.concat_arrays([values, values]).slice(len(values))) == expected


@pytest.mark.parametrize(
    ("data_type", "declared", "value", "column"),
    [
        (STRING, "varchar(3)", "abcd", "c"),
        (STRING, "char(3)", "a  d", "c"),
        (STRING, "varchar(3)", "abc\t", "c"),
        (NESTED, DECLARED, [("long", [])], "c.key"),
        (NESTED, DECLARED, [("k", [{"t": "abc", "n": 1}])], "c.value.element.t"),
    ],
)
def test_a_text_that_is_too_long_is_refused_with_its_place(data_type: DataType, declared: str, value: Any, column: str) -> None:
    values = pa.array([None, value], to_arrow_type(data_type))
    with pytest.raises(InvariantViolation, match="DELTA_EXCEED_CHAR_VARCHAR_LIMIT") as caught:
        limited(data_type, declared, values)
    assert caught.value.facts["column"] == column
    # Bytes in memory beside the written rows do not count.
    assert limited(data_type, declared, values.slice(0, 1)) == [None]


def test_a_table_without_spark_holds_texts_against_their_limits(tmp_path: Any) -> None:
    path = str(tmp_path / "t")
    schema = StructType(
        (StructField("v", STRING, metadata={DECLARED_TYPE: "varchar(2)"}), StructField("n", PrimitiveType("long")))
    )
    Table.create(path, schema)
    Table(path).append(pa.table({"v": ["ab   ", "x"], "n": [1, 2]}))
    with pytest.raises(InvariantViolation, match="varchar"):
        Table(path).update({"v": "'abc'"}, where="n = 1")
    Table(path).update({"v": "'y  '"}, where="v = 'x'")
    assert sorted(Table(path).to_arrow().column("v").to_pylist()) == ["ab", "y "]


def test_a_declared_type_that_does_not_fit_stops_the_write() -> None:
    with pytest.raises(CorruptTable, match="TAHOE_CORRUPT_SCHEMA"):
        limited(STRING, "array<varchar(3)>", pa.array(["a"]))


def test_an_empty_text_in_a_char_partition_is_blanks_and_not_null(tmp_path: Any) -> None:
    char = StructField("c", STRING, nullable=False, metadata={DECLARED_TYPE: "char(3)"})
    schema = StructType((char, StructField("s", STRING), StructField("n", PrimitiveType("long"))))
    table = Table.create(str(tmp_path / "t"), schema, partition_by=["c", "s"])
    table.append(pa.table({"c": [""], "s": [""], "n": [1]}))
    assert table.to_arrow().to_pylist() == [{"c": "   ", "s": None, "n": 1}]
