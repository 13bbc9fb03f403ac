"""Parameters of statements that are replaced by literals."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.sql.parameters import all_literals, literal, with_values

LITERALS = [
    (None, "NULL"),
    (True, "true"),
    (1, "1"),
    (-(2**31), "CAST('-2147483648' AS INT)"),
    (2**31, "CAST('2147483648' AS BIGINT)"),
    (2**63, None),
    (0.1, "0.1D"),
    (1e300, "1e+300D"),
    (float("inf"), "CAST('inf' AS DOUBLE)"),
    (Decimal("1.50"), "1.50BD"),
    (Decimal("1E+3"), "1000BD"),
    (Decimal("NaN"), None),
    ("it's a \\ and\nmore", r"'it\'s a \\ and\nmore'"),
    (b"\x00\xff", "X'00ff'"),
    (date(2026, 1, 2), "DATE'2026-01-02'"),
    (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "TIMESTAMP'2026-01-02 03:04:05.000006+00:00'"),
    (datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), "TIMESTAMP'2026-01-02 01:00:00.000000+00:00'"),
    (timedelta(days=1, seconds=3661, microseconds=5), "INTERVAL '1 01:01:01.000005' DAY TO SECOND"),
    (-timedelta(hours=25), "INTERVAL '-1 01:00:00.000000' DAY TO SECOND"),
    ([1, "a"], "array(1, 'a')"),
    ([object()], None),
    (object(), None),
]


@pytest.mark.parametrize(("value", "text"), LITERALS, ids=repr)
def test_a_value_is_written_as_a_literal_of_sql(value: object, text: str | None) -> None:
    assert literal(value) == text


STATEMENTS = [
    ("DELETE FROM t WHERE a = :a AND b=:b", {"a": 1, "b": "x"}, "DELETE FROM t WHERE a = 1 AND b='x'"),
    ("DELETE FROM t WHERE a IN (:a,:a)", {"a": 1}, "DELETE FROM t WHERE a IN (1,1)"),
    ("DELETE FROM t WHERE a = ? AND b = ?", [1, None], "DELETE FROM t WHERE a = 1 AND b = NULL"),
    ("DELETE FROM IDENTIFIER(:t)", {"t": "db.t"}, "DELETE FROM IDENTIFIER('db.t')"),
    ("SELECT ':a', `:a`, v:a, v::int -- :a\n, :a", {"a": 1}, "SELECT ':a', `:a`, v:a, v::int -- :a\n, 1"),
    ("SELECT :a", {"a": "':b'", "b": 1}, r"SELECT '\':b\''"),
]


@pytest.mark.parametrize(("text", "values", "expected"), STATEMENTS, ids=[text for text, *_ in STATEMENTS])
def test_parameters_are_replaced_outside_of_strings_names_and_comments(
    text: str, values: dict[str, object] | list[object], expected: str
) -> None:
    assert all_literals(values)
    assert with_values(text, values) == expected


@pytest.mark.parametrize(
    ("text", "values"), [("SELECT :a", {"b": 1}), ("SELECT :a", [1]), ("SELECT ?, ?", [1]), ("SELECT ?", {"a": 1})]
)
def test_a_parameter_without_a_value_is_refused(text: str, values: dict[str, object] | list[object]) -> None:
    with pytest.raises(InvalidRequest, match="has no value") as error:
        with_values(text, values)
    assert error.value.code == "UNBOUND_SQL_PARAMETER"


def test_column_expressions_are_no_literals() -> None:
    assert not all_literals({"a": object()})
    assert not all_literals([1, object()])
