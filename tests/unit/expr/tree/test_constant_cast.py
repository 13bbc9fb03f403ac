"""A constant is cast as Spark casts it, or refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.schema.types import ArrayType, DataType, DecimalType, PrimitiveType

BERLIN = ZoneInfo("Europe/Berlin")


def to(name: str) -> PrimitiveType:
    return PrimitiveType(name)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        ("  Yes ", to("boolean"), True),
        ("0", to("boolean"), False),
        (" -12 ", to("long"), -12),
        (127, to("byte"), 127),
        ("1.5d", to("double"), 1.5),
        ("-INF", to("double"), -math.inf),
        (0.1, to("float"), 0.10000000149011612),
        (1e300, to("float"), math.inf),
        ("1.005", DecimalType(3, 2), Decimal("1.01")),
        (7, DecimalType(3, 1), Decimal("7.0")),
        ("ü", to("binary"), "ü".encode()),
        ("2024", to("date"), date(2024, 1, 1)),
        ("2024-2-3T any", to("date"), date(2024, 2, 3)),
        (datetime(2024, 1, 1, 23, 30, tzinfo=UTC), to("date"), date(2024, 1, 2)),
        ("2024-07-01 12:00", to("timestamp"), datetime(2024, 7, 1, 10, tzinfo=UTC)),
        ("2024-07-01 12:00:00.1234567+02:30", to("timestamp"), datetime(2024, 7, 1, 9, 30, 0, 123456, UTC)),
        ("2024-07-01 12:00:00 Europe/Berlin", to("timestamp_ntz"), datetime(2024, 7, 1, 12)),
        (date(2024, 7, 1), to("timestamp"), datetime(2024, 6, 30, 22, tzinfo=UTC)),
        (datetime(2024, 7, 1, 10, tzinfo=UTC), to("timestamp_ntz"), datetime(2024, 7, 1, 12)),
    ],
)
def test_a_value_is_cast_as_spark_casts_it_in_the_sessions_zone(value: Any, target: DataType, expected: Any) -> None:
    actual = cast_value(value, target, BERLIN)
    assert actual == expected and type(actual) is type(expected)


def test_nan_is_read_by_its_name() -> None:
    assert math.isnan(cast_value("NaN", to("double"), UTC))


@pytest.mark.parametrize(
    ("value", "target", "code"),
    [
        ("maybe", to("boolean"), "CAST_INVALID_INPUT"),
        ("1.5", to("long"), "CAST_INVALID_INPUT"),
        ("1_000", to("integer"), "CAST_INVALID_INPUT"),
        (128, to("byte"), "CAST_OVERFLOW"),
        ("1e", to("double"), "CAST_INVALID_INPUT"),
        ("1000", DecimalType(3, 0), "CAST_OVERFLOW"),
        ("2024-02-30", to("date"), "CAST_INVALID_INPUT"),
        ("2024-01-01 25:00", to("timestamp"), "CAST_INVALID_INPUT"),
        ("2024-01-01 12:00:00 Nowhere/City", to("timestamp"), "CAST_INVALID_INPUT"),
        ("2024-01-01 12:00:00+19:00", to("timestamp"), "CAST_INVALID_INPUT"),
        (True, to("long"), "TAHOE_EXPRESSION_NOT_ALLOWED"),
        ([1], ArrayType(to("long"), True), "TAHOE_EXPRESSION_NOT_ALLOWED"),
    ],
)
def test_constants_that_do_not_fit_are_refused_with_their_kind(value: Any, target: DataType, code: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        cast_value(value, target, UTC)
    assert caught.value.code == code
