"""The SELECT that each token of a query belongs to."""

from __future__ import annotations

import pytest

from tahoe.sql.dialect import tokenize
from tahoe.sql.selects import Selects, has_subquery, selects_of, subqueries_in


def selects(text: str) -> tuple[dict[str, int | None], Selects]:
    """Return the SELECT of each one-letter name."""
    tokens = tokenize(text)
    found = selects_of(tokens)
    return {token.text: number for token, number in zip(tokens, found.of_tokens, strict=True) if len(token.text) == 1}, found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM b", {"a": 0, "b": 0}),
        ("SELECT f(a) FROM (b JOIN c)", {"a": 0, "b": 0, "c": 0}),
        ("SELECT a FROM (SELECT b FROM c) d", {"a": 0, "b": 1, "c": 1, "d": 0}),
        ("SELECT a FROM b UNION SELECT c FROM d", {"a": 0, "b": 0, "c": 1, "d": 1}),
        ("WITH w AS (SELECT a FROM b) SELECT c FROM w", {"w": 1, "a": 0, "b": 0, "c": 1}),
        ("FROM a SELECT b", {"a": None, "b": 0}),
        ("SELECT a FROM (FROM b SELECT c)", {"a": 0, "b": None, "c": 1}),
    ],
)
def test_the_select_of_each_name(text: str, expected: dict[str, int | None]) -> None:
    names, _ = selects(text)
    assert {name: names[name] for name in expected} == expected


def test_subqueries_are_inside() -> None:
    names, found = selects("SELECT a FROM (b JOIN (SELECT c FROM (SELECT d))) UNION SELECT e")
    assert found.is_inside(names["a"], names["a"])
    assert found.is_inside(names["d"], names["a"])
    assert found.is_inside(names["d"], names["c"])
    assert not found.is_inside(names["a"], names["c"])
    assert not found.is_inside(names["e"], names["a"])
    assert not found.is_inside(None, names["a"])


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("day IN (SELECT max(day) FROM t)", True),
        ("EXISTS (WITH c AS (SELECT 1) SELECT * FROM c)", True),
        ("x > (VALUES (1))", True),
        ("day >= current_date() - INTERVAL 1 DAY", False),
        ("text = '(SELECT 1)'", False),
        ("upper(values) = 'A'", False),
    ],
)
def test_a_query_in_an_expression_is_seen(expression: str, expected: bool) -> None:
    assert has_subquery(expression) is expected


@pytest.mark.parametrize(
    ("expression", "kinds"),
    [
        ("1 + (SELECT max(a) FROM t)", ["ScalarSubquery"]),
        ("(SELECT a IN (SELECT b FROM u) FROM t)", ["ScalarSubquery", "ListQuery"]),
        ("NOT EXISTS (SELECT 1) OR a NOT IN (SELECT b FROM u)", ["Exists", "ListQuery"]),
        ("a IN (1, 2)", []),
    ],
)
def test_the_kinds_of_subqueries(expression: str, kinds: list[str]) -> None:
    assert list(subqueries_in(expression)) == kinds
