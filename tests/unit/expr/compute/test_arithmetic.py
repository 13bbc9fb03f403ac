"""Numbers as in Spark's ANSI mode: overflow is an error."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.expr.compute.answers import answer, answers

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("one + 2147483647", "ARITHMETIC_OVERFLOW"),
        ("CAST(one AS TINYINT) + 127Y", "BINARY_ARITHMETIC_OVERFLOW"),
        ("one / 0", "DIVIDE_BY_ZERO"),
        ("one % 0", "REMAINDER_BY_ZERO"),
        ("pmod(one, 0)", "REMAINDER_BY_ZERO"),
        ("one div 0", "DIVIDE_BY_ZERO"),
        ("NULL / 0", None),
        ("(0L * one - 9223372036854775807L - 1L) div -1", "ARITHMETIC_OVERFLOW"),
        ("(0L * one - 9223372036854775807L - 1L) % -1", 0),
        ("-(0L * one - 9223372036854775807L - 1L)", "ARITHMETIC_OVERFLOW"),
        ("abs(0L * one - 9223372036854775807L - 1L)", "ARITHMETIC_OVERFLOW"),
        ("-7 * one % 3", -1),
        ("pmod(-7 * one, 3)", 2),
        ("pmod(-7 * one, -3)", -1),
        ("7.5D * one % -2", 1.5),
        ("pmod(-7.5D * one, 2)", 0.5),
        ("pmod(-7.5 * one, 2)", Decimal("0.5")),
        ("-7.5 * one % 2", Decimal("-1.5")),
        ("7.5 * one div 2", 3),
        ("1.0 * one / 3", Decimal("0.333333")),
        ("99999999999999999999999999999999999999 * one + 1", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("one & 3 | 4 ^ ~one", -5),
    ],
)
def test_operators_equal_those_of_spark_or_raise_its_error(text: str, value: Any) -> None:
    assert answer(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("floor(-1.5 * one)", Decimal(-2)),
        ("ceil(-1.5D * one)", -1),
        ("floor(one * 9223372036854775808.0D)", 9223372036854775807),
        ("floor(one * 1e19D)", "ARITHMETIC_OVERFLOW"),
        ("round(2.5 * one)", Decimal(3)),
        ("bround(2.5 * one)", Decimal(2)),
        ("round(-2.5D * one)", -3.0),
        ("round(0.125D * one, 2)", 0.13),
        ("bround(0.125D * one, 2)", 0.12),
        ("round(1550 * one, -2)", 1600),
        ("bround(1450 * one, -2)", 1400),
        ("round(CAST(one AS TINYINT) + 126Y, -1)", "ARITHMETIC_OVERFLOW"),
        ("round(155.5 * one, -1)", Decimal(160)),
        ("signum(-3 * one)", -1.0),
        ("sqrt(4 * one)", 2.0),
        ("ln(0 * one)", None),
        ("log10(100 * one)", 2.0),
        ("log2(-1 * one)", None),
        ("exp(0 * one)", 1.0),
        ("power(2 * one, 10)", 1024.0),
        ("power(-8 * one, 3001)", -INF),
        ("power(0.0D * one, -1)", INF),
        ("positive(-3 * one)", -3),
    ],
)
def test_functions_of_numbers_equal_those_of_spark(text: str, value: Any) -> None:
    assert answer(text) == value


@pytest.mark.parametrize(
    "text",
    ["power(-8 * one, 0.5)", "power(one, 1D / 0.0000000001D * 1e300)", "sqrt(-1 * one)", "round(CAST('NaN' AS DOUBLE) * one, 1)"],
)
def test_results_without_a_number_are_nan(text: str) -> None:
    assert math.isnan(answer(text))


def test_remainders_of_floats_keep_nan_and_infinity() -> None:
    column = pa.array([INF, 5.0, None, NAN])
    actual = answers("x % 3", x=column)
    assert math.isnan(actual[0]) and actual[1:3] == [2.0, None] and math.isnan(actual[3])


def test_a_zero_divisor_beside_null_is_no_division() -> None:
    assert answers("a / b", a=pa.array([None, 6], pa.int32()), b=pa.array([0, 4], pa.int32())) == [None, 1.5]
