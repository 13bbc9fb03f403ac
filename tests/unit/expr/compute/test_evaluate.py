"""`evaluate` against the row-by-row model, and cases in which Arrow alone is wrong."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.evaluate import evaluate, filter_table
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
    normalise,
)
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import DataType, DecimalType, PrimitiveType
from tests.sampling import examples
from tests.unit.expr import sql_model

KINDS = sorted(sql_model.POOLS)


@settings(max_examples=examples(80))
@given(st.data())
def test_every_row_gets_the_answer_that_sql_gives(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2))
    nested = data.draw(st.lists(st.sampled_from(KINDS), max_size=1))
    rows = data.draw(sql_model.rows(kinds, nested, max_size=6))
    table = pa.Table.from_pylist(rows, to_arrow_schema(sql_model.schema_of(kinds, nested)))
    for predicate in data.draw(st.lists(sql_model.predicates(sql_model.columns_of(kinds, nested)), min_size=1, max_size=4)):
        expected = [sql_model.answer(predicate, row) for row in rows]
        assert evaluate(predicate, table).to_pylist() == expected, predicate
        assert evaluate(normalise(predicate), table).to_pylist() == expected, predicate
        assert filter_table(predicate, table).num_rows == expected.count(True)


def column(name: str, *rest: str) -> Column:
    return Column((name, *rest))


def compare(op: str, value: Any, type_name: str, name: str = "x") -> Comparison:
    return Comparison(op, column(name), Literal(value, PrimitiveType(type_name)))


def answers(predicate: Any, values: pa.Array) -> list[bool | None]:
    return evaluate(predicate, pa.table({"x": values})).to_pylist()


def test_nan_is_equal_to_itself_and_greater_than_infinity() -> None:
    values = pa.array([math.nan, math.inf, 1.0, None])
    assert answers(compare("=", math.nan, "double"), values) == [True, False, False, None]
    assert answers(compare(">", math.inf, "double"), values) == [True, False, False, None]
    assert answers(compare("<=", math.nan, "double"), values) == [True, True, True, None]
    assert answers(compare(">", math.nan, "double"), values) == [False, False, False, None]
    assert answers(compare("!=", 1.0, "double"), values) == [True, True, False, None]


def test_negative_zero_equals_zero() -> None:
    assert answers(compare("=", 0.0, "double"), pa.array([-0.0, 0.0])) == [True, True]
    assert answers(compare("<", 0.0, "double"), pa.array([-0.0])) == [False]
    assert answers(In(column("x"), (Literal(-0.0, PrimitiveType("double")),)), pa.array([0.0])) == [True]


def test_null_follows_kleene_in_and_or_and_not() -> None:
    table = pa.table({"x": pa.array([None, 1], pa.int32())})
    is_one = compare("=", 1, "integer")
    assert evaluate(And((is_one, FALSE)), table).to_pylist() == [False, False]
    assert evaluate(Or((is_one, TRUE)), table).to_pylist() == [True, True]
    assert evaluate(Or((is_one, UNKNOWN)), table).to_pylist() == [None, True]
    assert evaluate(Not(is_one), table).to_pylist() == [None, False]


def test_a_null_struct_makes_its_fields_null() -> None:
    table = pa.table({"s": pa.array([{"x": 1}, None, {"x": None}])})
    assert evaluate(IsNull(column("s", "x")), table).to_pylist() == [False, True, True]
    assert evaluate(IsNull(column("s")), table).to_pylist() == [False, True, False]


@pytest.mark.parametrize(
    "stored",
    [
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array(["a", "b", None], pa.large_string()),
        pa.array(["a", "b", None], pa.string_view()),
        pa.chunked_array([["a"], ["b", None]]),
    ],
    ids=["dictionary", "large", "view", "chunks"],
)
def test_however_arrow_stores_a_text_the_answer_is_the_same(stored: Any) -> None:
    table = pa.table({"x": stored})
    assert evaluate(compare(">=", "b", "string"), table).to_pylist() == [False, True, None]
    assert evaluate(StartsWith(column("x"), "a"), table).to_pylist() == [True, False, None]
    assert evaluate(In(column("x"), (Literal("a", PrimitiveType("string")),)), table).to_pylist() == [True, False, None]


@pytest.mark.parametrize(
    ("values", "value", "data_type"),
    [
        (pa.array([1, 2], pa.int8()), 2, PrimitiveType("long")),
        (pa.array([1, 2], pa.int64()), 2, PrimitiveType("byte")),
        (pa.array([1.5, 2.5], pa.float32()), 2.5, PrimitiveType("double")),
        (pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal128(3, 1)), Decimal("2.500"), DecimalType(10, 3)),
        (pa.array([Decimal("1.500"), Decimal("2.500")], pa.decimal128(10, 3)), Decimal("2.5"), DecimalType(3, 1)),
        (
            pa.array([1, 2_000], pa.timestamp("ns", "UTC")),
            datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC),
            PrimitiveType("timestamp"),
        ),
        (
            pa.array([1, 2], pa.timestamp("us", "Europe/Paris")),
            datetime(1970, 1, 1, 0, 0, 0, 2, tzinfo=UTC),
            PrimitiveType("timestamp"),
        ),
        (pa.array([b"a", b"\xff"], pa.large_binary()), b"\xff", PrimitiveType("binary")),
    ],
    ids=["narrow", "wide", "float", "decimal-up", "decimal-down", "nanoseconds", "zone", "large-binary"],
)
def test_data_narrower_or_wider_than_the_literal_is_compared_by_value(values: pa.Array, value: Any, data_type: DataType) -> None:
    assert answers(Comparison("=", column("x"), Literal(value, data_type)), values) == [False, True]
    assert answers(In(column("x"), (Literal(value, data_type),)), values) == [False, True]


def test_a_list_of_literals_with_null_is_never_false() -> None:
    with_null = In(column("x"), (Literal(1, PrimitiveType("integer")), Literal(None, PrimitiveType("integer"))))
    assert answers(with_null, pa.array([1, 2, None], pa.int32())) == [True, None, None]
    assert answers(Not(with_null), pa.array([1, 2, None], pa.int32())) == [False, None, None]
    assert answers(In(column("x"), ()), pa.array([1, None], pa.int32())) == [False, False]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidRequest, match="no column `y`; the columns are: x"):
        evaluate(IsNull(column("y")), pa.table({"x": [1]}))
    with pytest.raises(InvalidRequest, match=r"no nested column `x`\.`z`"):
        evaluate(IsNull(column("x", "z")), pa.table({"x": [1]}))
