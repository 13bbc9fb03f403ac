"""Expressions over Arrow tables: values, NULLs, errors that name the row, and branches that are not taken."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.compute.compute import _KERNELS, compute, compute_mask
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.functions import FUNCTIONS
from tahoe.schema.arrow import from_arrow_schema

TABLE = pa.table(
    {
        "a": pa.array([1, None, 3], pa.int32()),
        "b": [2.5, 0.0, None],
        "s": ["abc", "x%", None],
        "d": pa.array([0, 1000, None], pa.date32()),
        "st": [{"x": 1}, {"x": None}, None],
        "l": [[1, 2], [], None],
        "m": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "tiny": pa.array([127, 1, None], pa.int8()),
        "dec": pa.array([Decimal("1.10"), Decimal("-2.25"), None], pa.decimal128(7, 2)),
    }
)
SCHEMA = from_arrow_schema(TABLE.schema)


def values(text, table=TABLE):
    return compute(parse_expression(text, SCHEMA), table).to_pylist()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + 1", [2, None, 4]),
        ("a / 2", [0.5, None, 1.5]),
        ("a div 2", [0, None, 1]),
        ("-a % 2", [-1, None, -1]),
        ("pmod(-a, 2)", [1, None, 1]),
        ("dec * dec", [Decimal("1.2100"), Decimal("5.0625"), None]),
        ("round(dec, 1)", [Decimal("1.1"), Decimal("-2.3"), None]),
        ("CASE WHEN a = 1 THEN 'x' ELSE s END", ["x", "x%", None]),
        ("CASE a WHEN 1 THEN 'one' END", ["one", None, None]),
        ("if(a > 1, a, 0)", [0, 0, 3]),
        ("a BETWEEN 1 AND 2", [True, None, False]),
        (r"s LIKE '%\\%'", [False, True, None]),
        ("s RLIKE '^[a-c]+$'", [True, False, None]),
        ("upper(s) || '!'", ["ABC!", "X%!", None]),
        ("st.x + 1", [2, None, None]),
        ("m['k']", [1, None, None]),
        ("CAST(b AS STRING)", ["2.5", "0.0", None]),
        ("TRY_CAST(s AS INT)", [None, None, None]),
        ("a IN (1, NULL)", [True, None, None]),
        ("coalesce(a, -1)", [1, -1, 3]),
        ("year(d)", [1970, 1972, None]),
        ("date_add(d, 1)", [date(1970, 1, 2), date(1972, 9, 28), None]),
        ("substring(s, -2)", ["bc", "x%", None]),
    ],
)
def test_values_are_those_of_spark(text, expected):
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "row"),
    [
        ("1 / (a - 3)", "DIVIDE_BY_ZERO", 2),
        ("tiny + tiny", "BINARY_ARITHMETIC_OVERFLOW", 0),
        ("CAST(s AS INT)", "CAST_INVALID_INPUT", 0),
        ("l[0]", "INVALID_ARRAY_INDEX", 1),
        ("CAST(b * 1e300 AS BIGINT)", "CAST_OVERFLOW", 0),
    ],
)
def test_errors_name_the_expression_and_the_row(text, code, row):
    with pytest.raises(InvalidRequest, match=f"row {row}") as caught:
        values(text)
    assert caught.value.code == code
    assert caught.value.facts["row"] == row


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN b <> 0 THEN a / b ELSE -1 END", [0.4, -1.0, -1.0]),
        ("b <> 0 AND 1 / b > 0", [True, False, None]),
        ("b = 0 OR 1 / b > 0", [True, True, None]),
        ("coalesce(a, 1 / (a - 1))", [1.0, None, 3.0]),
        ("if(size(l) > 0, l[0], 0)", [1, 0, 0]),
    ],
)
def test_a_branch_that_is_not_taken_cannot_fail(text, expected):
    assert values(text) == expected


def test_only_true_is_true_for_a_mask():
    assert compute_mask(parse_expression("a > 1", SCHEMA), TABLE).to_pylist() == [False, False, True]


def test_no_rows_give_no_values():
    assert values("CASE WHEN a / 0 > 1 THEN s ELSE CAST(b AS STRING) END", TABLE.slice(0, 0)) == []


def test_every_name_that_a_call_can_have_is_computed():
    rewritten = {"and", "or", "coalesce"}  # computed by the walk itself
    aliases = {
        name
        for name in FUNCTIONS
        if name
        in (
            *(
                "isnull",
                "isnotnull",
                "if",
                "iff",
                "nvl",
                "ifnull",
                "nvl2",
                "nullif",
                "nanvl",
                "mod",
                "positive",
                "ceiling",
                "sign",
            ),
            *("pow", "||", "regexp_like", "regexp", "char_length", "character_length", "len", "lcase", "ucase", "substr"),
            *("cardinality", "array_size", "dayofmonth", "date_diff", "to_date", "to_timestamp"),
        )
    }
    assert set(_KERNELS) == set(FUNCTIONS) - rewritten - aliases


def test_columns_of_two_tables_are_distinguished_by_their_qualifier():
    schemas = {"source": from_arrow_schema(pa.schema({"id": pa.int64(), "v": pa.string()})), "target": SCHEMA}
    joined = pa.table({"source.id": [1, 2], "target.a": pa.array([1, 1], pa.int32())})
    assert compute(parse_expression("source.id = target.a", schemas), joined).to_pylist() == [True, False]
    assert compute(parse_expression("id = a", schemas), joined).to_pylist() == [True, False]
    with pytest.raises(InvalidRequest, match="more than one"):
        parse_expression("a = 1", {"source": SCHEMA, "target": SCHEMA})
