"""Columns with collations: the conditions allowed on them without Spark, and the writers that may create them."""

from __future__ import annotations

from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest, TahoeError, Unsupported
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import Column, Comparison, IsNull, Literal, StartsWith
from tahoe.protocol.column_values.partition_filters import generated_partitions
from tahoe.schema.collations import check_no_new_collations, is_collated, physical_collations
from tahoe.schema.types import ArrayType, DataType, MapType, PrimitiveType, StructField, StructType

STRING = PrimitiveType("string")


def field(
    name: str, data_type: DataType = STRING, collation: str | None = None, path: str | None = None, **metadata: Any
) -> StructField:
    collations = {} if collation is None else {"__COLLATIONS": {path or name: collation}}
    return StructField(name, data_type, metadata={**collations, **metadata})


SCHEMA = StructType(
    (
        field("plain"),
        field("bytes", collation="spark.UTF8_BINARY"),
        field("low", collation="spark.UTF8_LCASE"),
        field("trimmed", collation="spark.UTF8_BINARY_RTRIM"),
        field("list", ArrayType(STRING), "icu.UNICODE_CI", "list.element"),
        field("map", MapType(STRING, STRING), "icu.de", "map.key"),
        field("st", StructType((field("k"), field("s", collation="icu.UNICODE")))),
        field("structs", ArrayType(StructType((field("s", collation="icu.UNICODE"),)))),
    )
)


@pytest.mark.parametrize("name", SCHEMA.names)
def test_which_columns_compare_otherwise(name: str) -> None:
    assert is_collated(SCHEMA.field(name)) == (name not in ("plain", "bytes"))


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("low = 'a'", "low"),
        ("LOW <> 'a'", "low"),
        ("low <=> 'a'", "low"),
        ("low IN ('a', 'b')", "low"),
        ("low NOT IN ('a')", "low"),
        ("low LIKE 'a%'", "low"),
        ("low BETWEEN 'a' AND 'b'", "low"),
        ("upper(low) = 'A'", "low"),
        ("coalesce(low, 'x') = 'x'", "low"),
        ("CASE WHEN low = 'a' THEN true END", "low"),
        ("plain = low", "low"),
        ("plain = 'a' OR (plain = 'b' AND NOT low < 'c')", "low"),
        ("trimmed = 'a'", "trimmed"),
        ("list[0] = 'a'", "list"),
        ("map['a'] = 'b'", "map"),
        ("st.s = 'a'", "st.s"),
        ("st <=> NULL", "st"),
        ("structs[0].s = 'a'", "structs"),
    ],
)
def test_a_condition_that_a_collation_decides_is_refused_by_its_column(condition: str, column: str) -> None:
    with pytest.raises(InvalidRequest, match="TAHOE_COLLATED_COLUMN") as caught:
        row_condition(condition, SCHEMA)
    assert caught.value.facts["column"].replace("`", "") == column


@pytest.mark.parametrize(
    "condition",
    ["low IS NULL", "low IS NOT NULL AND plain = 'a'", "bytes = 'a'", "st.k = 'a'", "st IS NULL OR list IS NOT NULL", "true"],
)
def test_a_condition_that_no_collation_decides_is_understood(condition: str) -> None:
    assert row_condition(condition, SCHEMA).text == condition


@pytest.mark.parametrize(
    "predicate", [Comparison("=", Column(("low",)), Literal("a", STRING)), StartsWith(Column(("st", "s")), "a")], ids=str
)
def test_a_predicate_is_refused_as_its_text_is(predicate: Any) -> None:
    with pytest.raises(TahoeError, match="TAHOE_COLLATED_COLUMN"):
        row_condition(predicate, SCHEMA)
    assert row_condition(IsNull(predicate.column), SCHEMA).exact == IsNull(predicate.column)


def test_a_partition_generated_from_collated_texts_follows_from_no_filter() -> None:
    def partitions(collation: str) -> int:
        part = field("part", **{"delta.generationExpression": "substring(s, 1, 1)"})
        return len(generated_partitions(StructType((field("s", collation=collation), part)), ["part"]))

    assert partitions("spark.UTF8_BINARY") == 1
    assert partitions("spark.UTF8_LCASE") == 0


@pytest.mark.parametrize(
    ("before", "allowed"),
    [
        (None, False),
        (field("low"), False),
        (field("low", collation="spark.UTF8_LCASE"), True),
        (field("low", collation="icu.UNICODE"), False),
    ],
)
def test_no_column_gets_a_collation_but_one_may_keep_it(before: StructField | None, allowed: bool) -> None:
    schema = StructType((field("plain"), field("low", collation="spark.UTF8_LCASE")))
    earlier = None if before is None else StructType((field("plain"), before))
    if allowed:
        check_no_new_collations(schema, earlier)
        return
    with pytest.raises(Unsupported, match="DELTA_UNSUPPORTED_DATA_TYPES") as caught:
        check_no_new_collations(schema, earlier)
    assert caught.value.facts["column"] == "low"


def test_under_its_physical_name_a_field_keeps_its_collations() -> None:
    column = field("m", MapType(STRING, STRING), "icu.de", "m.key", **{"delta.columnMapping.physicalName": "col-1"})
    assert physical_collations(column, column.metadata)["__COLLATIONS"] == {"col-1.key": "icu.de"}
    assert physical_collations(field("plain"), {"comment": "seen"}) == {"comment": "seen"}
