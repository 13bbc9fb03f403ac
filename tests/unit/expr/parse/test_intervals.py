"""Dates and timestamps plus and minus intervals; `tests/spark/test_expressions_answer_as_spark.py` compares the results with Spark's."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.expression import sql_of_expression
from tahoe.schema.types import PrimitiveType, StructField, StructType

SCHEMA = StructType(
    tuple(
        StructField(name, PrimitiveType(type_name))
        for name, type_name in (
            ("d", "date"),
            ("t", "timestamp"),
            ("w", "timestamp_ntz"),
            ("s", "string"),
            ("interval", "integer"),
        )
    )
)
NOON = datetime(2026, 1, 31, 12, 30)
ROW = pa.table(
    {
        "d": [date(2026, 1, 31)],
        "t": pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "UTC")),
        "w": pa.array([NOON], pa.timestamp("us")),
        "s": ["2026-01-31"],
        "interval": pa.array([3], pa.int32()),
    }
)


def value(text: str, time_zone: str = "UTC") -> object:
    expression = parse_expression(text, SCHEMA, time_zone)
    assert parse_expression(sql_of_expression(expression), SCHEMA, time_zone) == expression
    return compute(expression, ROW)[0].as_py()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("d - INTERVAL 7 DAYS", date(2026, 1, 24)),
        ("d + INTERVAL 1 MONTH", date(2026, 2, 28)),
        ("d + interval '1' week - INTERVAL -2 day", date(2026, 2, 9)),
        ("d + INTERVAL 1 DAY -2 DAYS", date(2026, 1, 30)),
        ("d + INTERVAL 1 YEAR 1 MONTH", date(2027, 2, 28)),
        ("d - INTERVAL '1 week 2 days'", date(2026, 1, 22)),
        ("d + INTERVAL 24 HOURS", datetime(2026, 2, 1, tzinfo=UTC)),
        ("t + INTERVAL 1 MONTH", datetime(2026, 2, 28, 12, 30, tzinfo=UTC)),
        ("t - INTERVAL 1 HOUR 30 MINUTES", datetime(2026, 1, 31, 11, tzinfo=UTC)),
        ("w - INTERVAL 1 HOUR 30 MINUTES", datetime(2026, 1, 31, 11)),
        ("w + INTERVAL 1 MONTH", datetime(2026, 2, 28, 12, 30)),
        ("t + INTERVAL '1 millisecond'", datetime(2026, 1, 31, 12, 30, 0, 1000, tzinfo=UTC)),
        ("NULL + 1 IS NULL AND d + INTERVAL 1 DAY > d", True),
        ("d + interval", date(2026, 2, 3)),
        ("d + interval - 2", date(2026, 2, 1)),
        ("interval * 2 - interval", 3),
    ],
)
def test_dates_and_timestamps_move(text, answer):
    assert value(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("TIMESTAMP'2026-03-28 12:00:00' + INTERVAL 24 HOURS", datetime(2026, 3, 29, 10, tzinfo=UTC)),
        ("TIMESTAMP'2026-03-28 12:00:00' + INTERVAL 23 HOURS", datetime(2026, 3, 29, 10, tzinfo=UTC)),
        ("TIMESTAMP'2026-03-28 02:30:00' + INTERVAL 1 DAY", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
        ("TIMESTAMP'2026-10-26 02:30:00' - INTERVAL 1 DAY", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
        ("TIMESTAMP'2026-10-24 02:30:00' + INTERVAL 1 DAY", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("TIMESTAMP'2026-09-25 02:30:00' + INTERVAL 1 MONTH", datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        ("TIMESTAMP'2026-11-25 02:30:00' - INTERVAL 1 MONTH", datetime(2026, 10, 25, 1, 30, tzinfo=UTC)),
    ],
)
def test_days_and_months_keep_the_local_time(text, answer):
    assert value(text, "Europe/Berlin") == answer


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("d + INTERVAL 1 MONTH 1 DAY", "either years and months, or weeks"),
        ("d + INTERVAL 1.5 DAYS", "whole"),
        ("d + INTERVAL '1-2' YEAR TO MONTH", "whole"),
        ("d + INTERVAL '1' DAY TO HOUR", "one number for each unit"),
        ("d + INTERVAL 'a while'", "whole numbers with YEAR"),
        ("d + INTERVAL 99999999999 DAYS", "too long"),
        ("d + INTERVAL 1 DAY * 2", "not on the list"),
        ("s + INTERVAL 1 DAY", "a date or a timestamp"),
        ("INTERVAL 1 DAY + d", "not on the list"),
        ("- INTERVAL 1 DAY", "not on the list"),
        ("`plus months`(t, 1)", "not on the list"),
    ],
)
def test_other_intervals_are_refused_by_name(text, reason):
    with pytest.raises(InvalidRequest, match=reason) as caught:
        parse_expression(text, SCHEMA)
    assert caught.value.code == "TAHOE_EXPRESSION_NOT_ALLOWED"


@pytest.mark.parametrize(
    "text", ["t + INTERVAL 300000 YEARS", "t + INTERVAL 99999999999999 MILLISECONDS + INTERVAL 9000000 DAYS"]
)
def test_a_time_beyond_the_calendar_is_an_error_of_the_row(text):
    with pytest.raises(InvalidRequest, match="DATETIME_OVERFLOW"):
        compute(parse_expression(text, SCHEMA, "Europe/Berlin"), ROW)
