"""Numbers have the types that Spark gives them."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.literals import hexadecimal, number
from tahoe.expr.tree.predicate import Literal
from tahoe.schema.types import PrimitiveType


@pytest.mark.parametrize(
    ("text", "value", "data_type"),
    [
        ("1", 1, "integer"),
        ("-2147483648", -(1 << 31), "integer"),
        ("2147483648", 1 << 31, "long"),
        ("9223372036854775808", Decimal(1 << 63), "decimal(19,0)"),
        ("1L", 1, "long"),
        ("1s", 1, "short"),
        ("-128Y", -128, "byte"),
        ("1.50", Decimal("1.50"), "decimal(3,2)"),
        (".5", Decimal("0.5"), "decimal(1,1)"),
        ("1e3", 1000.0, "double"),
        ("1.5D", 1.5, "double"),
        ("1.5f", 1.5, "float"),
        ("1BD", Decimal(1), "decimal(1,0)"),
    ],
)
def test_a_number_has_the_value_and_the_type_that_spark_gives_it(text: str, value: Any, data_type: str) -> None:
    actual = number(text, UTC)
    assert (actual.value, str(actual.data_type)) == (value, data_type)


@pytest.mark.parametrize("text", ["128Y", "32768S", "9223372036854775808L", "1" * 39])
def test_a_number_that_does_not_fit_its_type_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        number(text, UTC)


def test_bytes_are_written_in_hexadecimal() -> None:
    assert hexadecimal("1F", "X'1F'") == Literal(b"\x1f", PrimitiveType("binary"))
    with pytest.raises(InvalidRequest, match="hexadecimal digits"):
        hexadecimal("XY", "X'XY'")
