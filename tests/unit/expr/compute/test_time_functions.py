"""Dates and clocks, in the session's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tests.unit.expr.compute.answers import answer, answers

DAYS = pa.array([date(2024, 2, 29), date(2023, 1, 1), None], pa.date32())
# 2024-03-31 01:30 UTC is 03:30 in Berlin, the hour after clocks went on.
MOMENTS = pa.array(
    [datetime(2024, 3, 31, 1, 30, 15, 123456, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)], pa.timestamp("us", "UTC")
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("year(d)", [2024, 2023, None]),
        ("quarter(d) * 100 + month(d)", [102, 101, None]),
        ("dayofmonth(d)", [29, 1, None]),
        ("dayofweek(d)", [5, 1, None]),
        ("weekday(d)", [3, 6, None]),
        ("dayofyear(d)", [60, 1, None]),
        ("weekofyear(d)", [9, 52, None]),
        ("last_day(d)", [date(2024, 2, 29), date(2023, 1, 31), None]),
        ("add_months(d, 12)", [date(2025, 2, 28), date(2024, 1, 1), None]),
        ("add_months(d, -2)", [date(2023, 12, 29), date(2022, 11, 1), None]),
        ("date_add(d, 1)", [date(2024, 3, 1), date(2023, 1, 2), None]),
        ("d - 1", [date(2024, 2, 28), date(2022, 12, 31), None]),
        ("datediff(d, DATE '2023-01-01')", [424, 0, None]),
        ("trunc(d, 'MM')", [date(2024, 2, 1), date(2023, 1, 1), None]),
        ("trunc(d, 'week')", [date(2024, 2, 26), date(2022, 12, 26), None]),
        ("trunc(d, 'quarter')", [date(2024, 1, 1), date(2023, 1, 1), None]),
        ("date_format(d, 'dd.MM.yyyy')", ["29.02.2024", "01.01.2023", None]),
    ],
)
def test_functions_of_dates_equal_those_of_spark(text: str, found: list[Any]) -> None:
    assert answers(text, d=DAYS) == found


@pytest.mark.parametrize(
    ("text", "in_utc", "in_berlin"),
    [
        ("hour(t)", [1, 23], [3, 0]),
        ("minute(t) * 100 + second(t)", [3015, 5959], [3015, 5959]),
        (
            "date_format(t, 'yyyy-MM-dd HH:mm:ss')",
            ["2024-03-31 01:30:15", "1969-12-31 23:59:59"],
            ["2024-03-31 03:30:15", "1970-01-01 00:59:59"],
        ),
        ("year(t)", [2024, 1969], [2024, 1970]),
        (
            "date_trunc('DAY', t)",
            [datetime(2024, 3, 31, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)],
            [datetime(2024, 3, 30, 23, tzinfo=UTC), datetime(1969, 12, 31, 23, tzinfo=UTC)],
        ),
        (
            "date_trunc('millisecond', t)",
            [datetime(2024, 3, 31, 1, 30, 15, 123000, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)],
            [datetime(2024, 3, 31, 1, 30, 15, 123000, UTC), datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)],
        ),
    ],
)
def test_a_moment_is_shown_by_the_sessions_clock(text: str, in_utc: list[Any], in_berlin: list[Any]) -> None:
    assert answers(text, t=MOMENTS) == in_utc
    assert answers(text, "Europe/Berlin", t=MOMENTS) == in_berlin


def test_a_timestamp_without_zone_keeps_its_wall_clock() -> None:
    shown = pa.array([datetime(2024, 7, 1, 12, 30)], pa.timestamp("us"))
    assert answers("hour(t) * 100 + minute(t)", "Asia/Tokyo", t=shown) == [1230]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("CAST(trunc(day, 'YEAR') AS TIMESTAMP)", [date(1, 1, 3)]),
        ("date_format(trunc(day, 'YEAR'), 'yyyy')", [date(1, 1, 3)]),
        ("CAST(at AS DATE)", [datetime.max.replace(tzinfo=UTC)]),
        ("date_format(at, 'HH')", [datetime.max.replace(tzinfo=UTC)]),
    ],
)
def test_a_time_zone_that_moves_a_day_out_of_the_calendar_is_an_error_of_its_row(text: str, days: list[date]) -> None:
    columns = {"day" if "day" in text else "at": pa.array([None, *days])}
    with pytest.raises(InvalidRequest, match=r"row 1: the date is beyond the years 1 to 9999") as error:
        answers(text, "Pacific/Apia", **columns)
    assert error.value.code == "DATETIME_OVERFLOW"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("make_date(2024, 2, 30 * one)", "DATETIME_FIELD_OUT_OF_BOUNDS"),
        ("make_date(2024, 2, 29 * one)", date(2024, 2, 29)),
        ("date_add(DATE '9999-12-31', one)", "DATETIME_OVERFLOW"),
        ("date_sub(DATE '0001-01-01', one)", "DATETIME_OVERFLOW"),
        ("add_months(DATE '9999-12-31', one)", "DATETIME_OVERFLOW"),
        ("to_date('2024-01-02')", date(2024, 1, 2)),
        ("date_trunc('FORTNIGHT', TIMESTAMP '2024-01-01')", "DATATYPE_MISMATCH"),
        ("date_format(DATE '2024-01-01', 'EEEE')", "DATATYPE_MISMATCH"),
    ],
)
def test_texts_that_are_no_dates_are_errors(text: str, value: Any) -> None:
    assert answer(text) == value
