"""Columns of one type as columns of another, by Spark's rules."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.column_cast import cast_array, text_of
from tahoe.expr.compute.decimals import as_decimals
from tahoe.expr.compute.values import Incomputable
from tahoe.schema.arrow import from_arrow_type
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

TEXT, LONG = PrimitiveType("string"), PrimitiveType("long")


def cast(values: pa.Array, target: DataType, zone: str = "UTC", *, lenient: bool = False) -> list[Any]:
    return cast_array(values, from_arrow_type(values.type), target, zone, lenient=lenient).to_pylist()


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "boolean", "true"),
        (1e7, "double", "1.0E7"),
        (1e-3, "double", "0.001"),
        (1e-4, "double", "1.0E-4"),
        (123456.789, "double", "123456.789"),
        (math.nan, "double", "NaN"),
        (-math.inf, "double", "-Infinity"),
        (0.10000000149011612, "float", "0.1"),
        (Decimal("1E+3"), "decimal", "1000"),
        (b"\xff", "binary", "\ufffd"),
        (datetime(24, 1, 2, 3, 4, 5, 600000), "timestamp_ntz", "0024-01-02 03:04:05.6"),
        (datetime(2024, 7, 1, 10, tzinfo=UTC), "timestamp", "2024-07-01 12:00:00"),
    ],
)
def test_a_value_becomes_the_text_that_spark_shows(value: Any, kind: str, text: str) -> None:
    data_type = DecimalType(38, 0) if kind == "decimal" else PrimitiveType(kind)
    assert text_of(value, data_type, "Europe/Berlin") == text


def test_texts_are_cast_and_invalid_ones_are_an_error_or_null() -> None:
    texts = pa.array([" 12 ", None, "x"])
    with pytest.raises(Incomputable, match="'x' cannot be read as BIGINT"):
        cast(texts, LONG)
    assert cast(texts, LONG, lenient=True) == [12, None, None]


@pytest.mark.parametrize(
    ("values", "target", "found"),
    [
        (pa.array([1.9, -1.9, None]), LONG, [1, -1, None]),
        (pa.array([300]), PrimitiveType("short"), [300]),
        (pa.array([True, False]), LONG, [1, 0]),
        (pa.array([0.0, 0.5]), PrimitiveType("boolean"), [False, True]),
        (pa.array([Decimal("2.50")]), DecimalType(3, 1), [Decimal("2.5")]),
        (pa.array([7]), DecimalType(3, 1), [Decimal("7.0")]),
        (pa.array([date(2024, 1, 2)]), TEXT, ["2024-01-02"]),
        (pa.nulls(2), TEXT, [None, None]),
        (pa.array([-1], pa.int64()), PrimitiveType("timestamp"), [datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)]),
        (pa.array([datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)], pa.timestamp("us", "UTC")), LONG, [-1]),
    ],
)
def test_columns_are_cast_value_by_value(values: pa.Array, target: DataType, found: list[Any]) -> None:
    assert cast(values, target) == found


def test_values_that_do_not_fit_raise_or_become_null_on_request() -> None:
    for values, target in (
        (pa.array([1, 128]), PrimitiveType("byte")),
        (pa.array([1.0, math.nan]), LONG),
        (pa.array([1, 1000]), DecimalType(3, 1)),
    ):
        with pytest.raises(Incomputable):
            cast(values, target)
        assert cast(values, target, lenient=True)[1] is None


def test_days_and_moments_meet_at_the_sessions_midnight() -> None:
    midnight = datetime(2024, 6, 30, 22, tzinfo=UTC)
    assert cast(pa.array([date(2024, 7, 1)]), PrimitiveType("timestamp"), "Europe/Berlin") == [midnight]
    moments = pa.array([midnight], pa.timestamp("us", "UTC"))
    assert cast(moments, PrimitiveType("date"), "Europe/Berlin") == [date(2024, 7, 1)]
    assert cast(moments, PrimitiveType("timestamp_ntz"), "Europe/Berlin") == [datetime(2024, 7, 1)]


def test_there_is_no_cast_between_lists_and_numbers() -> None:
    with pytest.raises(InvalidRequest, match="There is no cast from") as caught:
        cast(pa.array([[1]]), LONG)
    assert caught.value.code == "DATATYPE_MISMATCH"


def test_decimals_are_rounded_half_up_and_must_fit() -> None:
    values = pa.array([Decimal("1.005"), Decimal("-1.005")])
    assert as_decimals(values, pa.decimal128(3, 2)).to_pylist() == [Decimal("1.01"), Decimal("-1.01")]
    with pytest.raises(Incomputable, match=r"decimal\(2,2\)"):
        as_decimals(values, pa.decimal128(2, 2))
