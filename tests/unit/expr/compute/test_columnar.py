"""Computations on whole columns equal those on single values: decimals of every type, remainders, positions in texts."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tahoe.expr.compute.compute import compute
from tahoe.expr.compute.decimals import COLUMNAR
from tahoe.expr.compute.values import Incomputable
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.schema.arrow import from_arrow_schema
from tests.sampling import examples

EXACT = Context(prec=200)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    precision = draw(st.integers(1, 38))
    scale = draw(st.integers(0, precision))
    limit = 10**precision - 1
    numbers = st.none() | st.sampled_from([0, 1, -1, 5, limit, -limit]) | st.integers(-limit, limit)
    values = draw(st.lists(numbers, min_size=4, max_size=4))
    exact = [None if value is None else Decimal(value).scaleb(-scale, EXACT) for value in values]
    return pa.array(exact, pa.decimal128(precision, scale))


def by_value(op: str, left: Decimal, right: Decimal) -> Decimal:
    if op in ("+", "-", "*", "/"):
        return {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide}[op](left, right)
    rest = EXACT.subtract(left, EXACT.multiply(EXACT.divide(left, right).quantize(Decimal(1), ROUND_DOWN, EXACT), right))
    return EXACT.add(rest, right) if op == "pmod" and rest < 0 < right else rest


@settings(max_examples=examples(150))
@given(columns(), columns(), st.sampled_from(sorted(COLUMNAR)), st.integers(20, 38), st.data())
def test_decimals_by_columns_are_those_of_single_values(
    left: pa.Array, right: pa.Array, op: str, precision: int, data: st.DataObject
) -> None:
    target = pa.decimal128(precision, data.draw(st.integers(0, precision)))
    if op in ("/", "%", "pmod"):
        right = pa.array([None if value == 0 else value for value in right.to_pylist()], right.type)
    expected: list[Decimal | None] = []
    fits = True
    for item, other in zip(left.to_pylist(), right.to_pylist(), strict=True):
        if item is None or other is None:
            expected.append(None)
            continue
        rounded = by_value(op, item, other).quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP, EXACT)
        fits &= len(rounded.as_tuple().digits) <= precision or abs(rounded) < Decimal(10) ** (precision - target.scale)
        expected.append(rounded)
    try:
        actual = COLUMNAR[op](left, right, target)
    except Incomputable:
        assert not fits
        return
    if actual is not None:
        assert fits
        assert actual.to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_remainders_of_whole_numbers_have_the_sign_of_the_dividend(kind: pa.DataType) -> None:
    least = -(2 ** (kind.bit_width - 1))
    table = pa.table(
        {"a": pa.array([7, -7, 7, -7, least, least, None, 5], kind), "b": pa.array([3, 3, -3, -3, -1, 3, 2, None], kind)}
    )
    schema = from_arrow_schema(table.schema)
    assert compute(parse_expression("a % b", schema), table).to_pylist() == [1, -1, 1, -1, 0, -(-least % 3), None, None]
    assert compute(parse_expression("pmod(a, b)", schema), table).to_pylist() == [1, 2, 1, -1, 0, least % 3, None, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a in (1, 3)", [True, False, None]),
        ("a in (1, null)", [True, None, None]),
        ("a in (null)", [None, None, None]),
        ("a not in (2, 5)", [True, False, None]),
        ("d in (0, 1.5)", [True, True, None]),
        ("s in ('x', 'y')", [True, False, None]),
    ],
)
def test_membership_of_constants_knows_three_answers(text: str, expected: list[Any]) -> None:
    table = pa.table({"a": [1, 2, None], "d": [-0.0, 1.5, None], "s": ["x", "z", None]})
    assert compute(parse_expression(text, from_arrow_schema(table.schema)), table).to_pylist() == expected


@given(st.lists(st.none() | st.text("aé😀", max_size=5), max_size=6), st.integers(-7, 7), st.integers(-1, 7))
def test_constant_places_in_texts_are_those_of_columns(texts: list[str | None], start: int, length: int) -> None:
    table = pa.table(
        {
            "s": pa.array(texts, pa.string()),
            "a": pa.array([start] * len(texts), pa.int32()),
            "b": pa.array([length] * len(texts), pa.int32()),
        }
    )
    schema = from_arrow_schema(table.schema)
    for constant, by_columns in (
        (f"substring(s, {start}, {length})", "substring(s, a, b)"),
        (f"substring(s, {start})", "substring(s, a)"),
        (f"left(s, {length})", "left(s, b)"),
        (f"right(s, {length})", "right(s, b)"),
    ):
        actual, expected = (compute(parse_expression(text, schema), table) for text in (constant, by_columns))
        assert actual.to_pylist() == expected.to_pylist(), constant
