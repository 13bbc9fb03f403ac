"""Comparisons and membership with NULL, NaN and values inside values."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from tahoe.expr.compute.comparison import compare_arrays, is_one_of, null_safe_equal
from tahoe.expr.tree.expression import Literal
from tahoe.schema.types import PrimitiveType
from tests.unit.expr.compute.answers import answer, answers

NAN = math.nan
NUMBERS = pa.array([1.0, NAN, None, -0.0])
OTHERS = pa.array([NAN, NAN, 1.0, 0.0])


@pytest.mark.parametrize(
    ("op", "found"),
    [
        ("=", [False, True, None, True]),
        ("!=", [True, False, None, False]),
        ("<", [True, False, None, False]),
        ("<=", [True, True, None, True]),
        (">", [False, False, None, False]),
        (">=", [False, True, None, True]),
        ("<=>", [False, True, False, True]),
    ],
)
def test_nan_is_one_number_above_all_others_and_zeros_are_equal(op: str, found: list[bool | None]) -> None:
    assert compare_arrays(op, NUMBERS, OTHERS).to_pylist() == found


def test_null_equals_null_only_where_it_is_asked_so() -> None:
    nothing = pa.nulls(2, pa.string())
    assert compare_arrays("=", nothing, nothing).to_pylist() == [None, None]
    assert null_safe_equal(nothing, nothing).to_pylist() == [True, True]
    assert compare_arrays("<", pa.nulls(1), pa.nulls(1)).to_pylist() == [None]


def test_false_is_less_than_true_and_texts_go_by_their_bytes() -> None:
    assert compare_arrays("<", pa.array([False]), pa.array([True])).to_pylist() == [True]
    assert compare_arrays("<", pa.array(["\uffff", "a"]), pa.array(["\U00010000", "B"])).to_pylist() == [True, False]


def test_structs_and_lists_are_compared_value_by_value_and_null_inside_comes_first() -> None:
    left = pa.array([{"x": 1, "y": None}, {"x": None, "y": "b"}, None, {"x": 1, "y": "ä"}])
    right = pa.array([{"x": 1, "y": "a"}, {"x": None, "y": "b"}, {"x": 1, "y": "a"}, {"x": 1, "y": "z"}])
    assert compare_arrays("<", left, right).to_pylist() == [True, False, None, False]
    assert compare_arrays("=", left, right).to_pylist() == [False, True, None, False]
    assert compare_arrays("<=", pa.array([[1], [NAN]]), pa.array([[1, 2], [5.0]])).to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("values", "kind", "options", "found"),
    [
        (["a", "c", None], "string", ["a", "b"], [True, False, None]),
        (["a", "c", None], "string", ["a", None], [True, None, None]),
        ([-0.0, NAN, 2.0], "double", [0.0, NAN], [True, True, False]),
    ],
)
def test_membership_knows_three_answers(values: list[Any], kind: str, options: list[Any], found: list[bool | None]) -> None:
    literals = [Literal(option, PrimitiveType(kind)) for option in options]
    assert is_one_of(pa.array(values), literals).to_pylist() == found


def test_greatest_and_least_pass_over_null_and_nan_is_the_greatest() -> None:
    columns = {"a": pa.array([1.0, None, None, NAN]), "b": pa.array([2.0, 3.0, None, 1.0])}
    greatest = answers("greatest(a, b)", **columns)
    assert greatest[:3] == [2.0, 3.0, None] and math.isnan(greatest[3])
    assert answers("least(a, b)", **columns) == [1.0, 3.0, None, 1.0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("isnan(CAST('NaN' AS DOUBLE))", True),
        ("isnan(NULL)", False),
        ("nanvl(CAST('NaN' AS DOUBLE) * one, 7)", 7.0),
        ("nullif(one, 1)", None),
        ("nullif(one, 2)", 1),
        ("nvl2(one, 'yes', 'no')", "yes"),
        ("one IN (2, NULL)", None),
        ("array(one, 2) IN (array(1, 2), array(3))", True),
        ("one IS NULL OR isnotnull(one)", True),
        ("one IS DISTINCT FROM NULL", True),
    ],
)
def test_predicates_equal_those_of_spark(text: str, value: Any) -> None:
    assert answer(text) == value
