"""Lists of comparisons and pyarrow's expressions as predicates: they find the rows that pyarrow finds."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.evaluate import filter_table
from tahoe.expr.condition_forms import predicate_of
from tahoe.expr.row_condition import row_condition
from tahoe.schema.arrow import from_arrow_schema

NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, None], pa.int64()),
        "small": pa.array([1, 2, None, 4], pa.int32()),
        "x": pa.array([1.5, math.nan, None, -2.0], pa.float64()),
        "f": pa.array([1.5, math.nan, None, 0.1], pa.float32()),
        "s": pa.array(["a", 'b"c\\', None, "and (x > 1)"]),
        "b": pa.array([True, False, None, True]),
        "day": pa.array([dt.date(2026, 1, 1), dt.date(2026, 1, 2), None, dt.date(2026, 1, 4)]),
        "at": pa.array([NOON, None, NOON.replace(hour=13, microsecond=5), NOON], pa.timestamp("us", "UTC")),
        "local": pa.array([NOON.replace(tzinfo=None), None, None, NOON.replace(tzinfo=None, hour=1)], pa.timestamp("us")),
        "price": pa.array([Decimal("1.20"), Decimal("2.50"), None, Decimal("3.00")], pa.decimal128(10, 2)),
        "bin": pa.array([b"ab\0", b"", None, b"z"]),
        "st": pa.array([{"y": 1}, {"y": 2}, None, {"y": None}], pa.struct({"y": pa.int64()})),
        "id 2 > x": pa.array([1, 2, 3, 4]),
    }
)
SCHEMA = from_arrow_schema(ROWS.schema)
f = pc.field
EXPRESSIONS = [
    *(op(f("id"), 2) for op in (pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal)),
    *(op(f("x"), 1.5) for op in (pc.equal, pc.not_equal, pc.less, pc.less_equal, pc.greater, pc.greater_equal)),
    *(op(f("x"), 1) for op in (pc.not_equal, pc.greater)),
    f("f") > 1.0,
    f("small") == 2,
    f("small") == pa.scalar(2, pa.int32()),
    (f("id") > 1) & (f("s") == 'b"c\\'),
    (f("id") > 1) | (f("s") == "a") | f("b"),
    ~((f("id") > 1) & ~f("b")),
    ~f("b"),
    f("b"),
    f("b") == True,  # noqa: E712
    f("id").isin([1, 3]),
    ~f("id").isin([1, 3]),
    f("id").isin([1, None]),
    ~f("id").isin([1, None]),
    f("s").isin(["a", 'b"c\\']),
    f("id").is_null(),
    f("id").is_valid(),
    f("x").is_null(nan_is_null=True),
    f("x").is_nan(),
    ~f("x").is_nan(),
    f("day") >= dt.date(2026, 1, 2),
    f("at") > NOON,
    f("local") == NOON.replace(tzinfo=None),
    f("price") == Decimal("2.50"),
    f("price") > 1.5,
    f("bin") == b"ab\0",
    f("st", "y") == 1,
    pc.starts_with(f("s"), "a"),
    pc.scalar(True),
    f("id 2 > x") == 3,
    f("s") == "and (x > 1)",
    f("x") == float("inf"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=str)
def test_an_expression_finds_the_rows_that_pyarrow_finds(expression: Any) -> None:
    actual = filter_table(predicate_of(expression, SCHEMA), ROWS)
    assert actual["id 2 > x"].to_pylist() == ROWS.filter(expression)["id 2 > x"].to_pylist()


@pytest.mark.parametrize(
    "expression",
    [
        f("id") + 1 > 2,
        f("id") > f("small"),
        f("x") == float("nan"),
        f("id").isin(list(range(100))),
        f("nope") == 1,
        pc.and_(f("b"), f("b")),
        pc.starts_with(f("s"), "a", ignore_case=True),
        f("id").cast("int8") == 1,
        pc.starts_with(f("bin"), "a"),
    ],
    ids=str,
)
def test_an_expression_that_is_not_understood_is_refused_with_the_remedy(expression: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"cannot be read.*write SQL text") as raised:
        predicate_of(expression, SCHEMA)
    assert raised.value.code == "TAHOE_CONDITION"


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ([("id", ">", 1)], "`id` > 1"),
        (("id", "==", 1), "`id` = 1"),
        ([["id", "<>", 1]], "`id` != 1"),
        ([("id", ">", 1), ("s", "=", "a")], "`id` > 1 AND `s` = 'a'"),
        ([[("id", ">", 1)], [("s", "=", "a"), ("b", "=", True)]], "`id` > 1 OR (`s` = 'a' AND `b` = true)"),
        ([("id", "in", [1, 2])], "`id` IN (1, 2)"),
        ([("ID", "not  IN", {3})], "NOT (`id` IN (3))"),
        ([("id", "in", [])], "false"),
        ([("id", "in", [1, None])], "`id` IN (1) OR `id` IS NULL"),
        ([("id", "=", None)], "`id` IS NULL"),
        ([("id", "!=", None)], "`id` IS NOT NULL"),
        ([("st.y", "<", 2)], "`st`.`y` < 2"),
        ([("day", ">=", "2026-01-02")], "`day` >= DATE '2026-01-02'"),
        ([("small", "<", 2.5)], "`small` < 3"),
        ([("id", "=", pa.scalar(5))], "`id` = 5"),
        ([], "true"),
        (True, "true"),
    ],
)
def test_a_list_of_comparisons_is_a_predicate(condition: Any, text: str) -> None:
    assert str(predicate_of(condition, SCHEMA)) == text
    assert row_condition(condition, SCHEMA).text == text


@pytest.mark.parametrize(
    "condition",
    [
        [("id", "~", 1)],
        [("id", ">", None)],
        [("id", "in", "ab")],
        [("id", "in", 5)],
        [(5, "=", 1)],
        ["id > 1"],
        [[]],
        [[("id", "=", 1)], ("id", "=", 1)],
        [[("id", "=", 1)], "b"],
        [object()],
        [("id", "=", object())],
        [("id", "=", "abc")],
        [("b", "=", 5)],
        [("nope", "=", 5)],
    ],
    ids=str,
)
def test_a_list_that_is_no_condition_is_refused(condition: Any) -> None:
    with pytest.raises(InvalidRequest):
        predicate_of(condition, SCHEMA)


def test_text_stays_text() -> None:
    assert row_condition("id > 1", SCHEMA).text == "id > 1" and row_condition(None, SCHEMA).text is None
