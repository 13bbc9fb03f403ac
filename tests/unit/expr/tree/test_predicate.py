"""Predicates as values: normal form, references, splitting, and their SQL."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Column,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
    all_of,
    any_of,
    conjuncts,
    normalise,
    quote_identifier,
    quote_literal,
    references,
    split_by_columns,
)
from tahoe.schema.types import DecimalType, PrimitiveType, StructField, StructType
from tests.sampling import examples
from tests.unit.expr import sql_model

A, B = Column(("a",)), Column(("b",))
ONE = Literal(1, PrimitiveType("integer"))
A_IS_1 = Comparison("=", A, ONE)
B_IS_1 = Comparison("=", B, ONE)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (Not(A_IS_1), Comparison("!=", A, ONE)),
        (Not(Not(A_IS_1)), A_IS_1),
        (Not(And((A_IS_1, IsNull(B)))), Or((Comparison("!=", A, ONE), IsNotNull(B)))),
        (Not(Or((A_IS_1, IsNotNull(B)))), And((Comparison("!=", A, ONE), IsNull(B)))),
        (Not(Comparison("<", A, ONE)), Comparison(">=", A, ONE)),
        (Not(Comparison("<=>", A, ONE)), Or((IsNull(A), Comparison("!=", A, ONE)))),
        (Comparison("<=>", A, Literal(None, PrimitiveType("integer"))), IsNull(A)),
        (Not(Comparison("<=>", A, Literal(None, PrimitiveType("integer")))), IsNotNull(A)),
        (Comparison("=", A, Literal(None, PrimitiveType("integer"))), UNKNOWN),
        (Not(UNKNOWN), UNKNOWN),
        (And((A_IS_1, And((B_IS_1, TRUE)))), And((A_IS_1, B_IS_1))),
        (Or((A_IS_1, Or((A_IS_1, FALSE)))), A_IS_1),
        (And((A_IS_1, FALSE)), FALSE),
        (Not(StartsWith(A, "x")), Not(StartsWith(A, "x"))),
        (In(A, ()), FALSE),
    ],
    ids=str,
)
def test_not_is_pushed_to_the_leaves_and_nested_conditions_are_flattened(predicate: Any, expected: Any) -> None:
    assert normalise(predicate) == expected


def test_conjuncts_are_the_parts_that_must_all_be_true() -> None:
    assert conjuncts(And((A_IS_1, And((B_IS_1, IsNull(A)))))) == (A_IS_1, B_IS_1, IsNull(A))
    assert conjuncts(Not(Or((IsNull(A), IsNull(B))))) == (IsNotNull(A), IsNotNull(B))
    assert conjuncts(Or((A_IS_1, B_IS_1))) == (Or((A_IS_1, B_IS_1)),)
    assert conjuncts(TRUE) == ()


def test_references_are_the_paths_of_all_columns() -> None:
    nested = Column(("s", "x"))
    assert references(Not(And((A_IS_1, Or((IsNull(nested), StartsWith(B, "x"))))))) == {("a",), ("s", "x"), ("b",)}
    assert references(TRUE) == frozenset()


def test_a_predicate_splits_into_partition_columns_and_the_rest() -> None:
    mixed = Or((A_IS_1, B_IS_1))
    assert split_by_columns(And((A_IS_1, B_IS_1, mixed)), ["a"]) == (A_IS_1, And((B_IS_1, mixed)))
    assert split_by_columns(A_IS_1, ["a"]) == (A_IS_1, None)
    assert split_by_columns(B_IS_1, ["a"]) == (None, B_IS_1)
    assert split_by_columns(FALSE, ["a"]) == (FALSE, None)
    assert split_by_columns(TRUE, ["a"]) == (None, None)


def test_joining_keeps_unknown_and_drops_repetitions() -> None:
    assert all_of([TRUE, UNKNOWN, UNKNOWN]) == UNKNOWN
    assert any_of([FALSE, A_IS_1, A_IS_1]) == A_IS_1
    assert all_of([]) == TRUE
    assert any_of([]) == FALSE
    assert any_of([A_IS_1, TRUE]) == TRUE


def test_an_operator_that_there_is_not_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no comparison '~'"):
        Comparison("~", A, ONE)


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (Literal(None, PrimitiveType("string")), "NULL"),
        (Literal(True, PrimitiveType("boolean")), "true"),
        (Literal(-5, PrimitiveType("long")), "-5"),
        (Literal(0.1, PrimitiveType("double")), "0.1D"),
        (Literal(0.5, PrimitiveType("float")), "CAST('0.5' AS FLOAT)"),
        (Literal(-math.inf, PrimitiveType("double")), "CAST('-Infinity' AS DOUBLE)"),
        (Literal(Decimal("1E+3"), DecimalType(5, 0)), "1000BD"),
        (Literal("it's \\ a\nline", PrimitiveType("string")), r"'it\'s \\ a\nline'"),
        (Literal(b"\x00\xff", PrimitiveType("binary")), "X'00FF'"),
        (Literal(date(20, 1, 2), PrimitiveType("date")), "DATE '0020-01-02'"),
        (
            Literal(datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=UTC), PrimitiveType("timestamp")),
            "TIMESTAMP '2020-01-02 03:04:05.000006Z'",
        ),
        (Literal(datetime(2020, 1, 2), PrimitiveType("timestamp_ntz")), "TIMESTAMP_NTZ '2020-01-02 00:00:00'"),
    ],
    ids=str,
)
def test_literals_are_written_as_spark_reads_them(literal: Literal, text: str) -> None:
    assert quote_literal(literal) == text


ODD_NAMES = [
    "a`b",
    "``",
    "a.b",
    "a b",
    "`.`",
    '"',
    "'",
    ";--",
    "a\nb",
    "x); DROP TABLE t; --",
    "😀",
    "\u202eabc",
    "select",
    "1",
    "",
    "`a`",
    "ab`",
    "\\",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_goes_through_sql_and_comes_back(name: str) -> None:
    assert quote_identifier(name).count("`") % 2 == 0
    if not name:
        return  # SQL has no empty name
    schema = StructType((StructField(name, PrimitiveType("integer")), StructField("other", PrimitiveType("integer"))))
    predicate = Comparison("=", Column((name,)), ONE)
    assert row_condition(str(predicate), schema).exact == predicate


@settings(max_examples=examples(60))
@given(st.data())
def test_the_text_of_a_predicate_means_the_same(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(sql_model.POOLS)), min_size=1, max_size=2))
    schema = sql_model.schema_of(kinds, ["integer"])
    predicate = data.draw(sql_model.predicates(sql_model.columns_of(kinds, ["integer"])))
    read_back = row_condition(str(predicate), schema).exact
    for row in data.draw(sql_model.rows(kinds, ["integer"], max_size=5)):
        assert sql_model.answer(read_back, row) == sql_model.answer(predicate, row), (str(predicate), str(read_back))
