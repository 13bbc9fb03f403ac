"""Where the names of common table expressions have their meaning."""

from __future__ import annotations

import pytest

from tahoe.sql.dialect import tokenize
from tahoe.sql.named_queries import named_queries, uses_each_at_most_once


def meanings(text: str, name: str) -> list[bool]:
    """Whether each token with the name is that of a query."""
    tokens = tokenize(text)
    queries = list(named_queries(tokens))
    return [
        any(query.is_meant(name, place) for query in queries)
        for place, token in enumerate(tokens)
        if token.name is not None and token.name.lower() == name and not tokens[max(place - 1, 0)].is_word("WITH")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", [False, True]),
        ("WITH `T` (a, b) AS (SELECT * FROM t) SELECT * FROM t", [False, True]),
        ("WITH RECURSIVE t AS (SELECT * FROM t) SELECT 1", [False, True]),
        ("WITH RECURSIVE t (a) MAX RECURSION LEVEL 5 AS (SELECT * FROM t) SELECT 1", [False, True]),
        (
            "WITH a AS (SELECT * FROM t), t AS (SELECT * FROM t), b AS (TABLE t) SELECT * FROM t",
            [False, False, False, True, True],
        ),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) JOIN t", [True, False]),
        ("WITH t AS (SELECT 1) SELECT * FROM (SELECT * FROM t) UNION ALL TABLE t", [True, True]),
        ("INSERT INTO x WITH t AS (SELECT 1) SELECT * FROM t", [True]),
        ("SELECT * FROM t WITH (versionAsOf = 1)", [False]),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s", [False]),
        ("WITH t AS (SELECT 1", []),
        ("WITH t", []),
        ("WITH", []),
    ],
)
def test_a_name_is_known_after_its_query_inside_the_brackets(text: str, expected: list[bool]) -> None:
    assert meanings(text, "t") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", True),
        ("WITH a AS (SELECT * FROM t) SELECT a.id FROM a WHERE a.id > 1", True),
        ("WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT * FROM b", True),
        ("WITH a AS (SELECT * FROM t) SELECT * FROM a JOIN a AS b", False),
        ("WITH a AS (SELECT * FROM t) SELECT * FROM x, a WHERE id IN (SELECT id FROM a)", False),
        ("WITH a AS (SELECT * FROM t), b AS (SELECT * FROM a) SELECT * FROM b, b c", False),
        ('WITH "a" AS (SELECT * FROM t) SELECT * FROM "a" JOIN "a"', False),
        ("WITH t AS (SELECT * FROM x AS t) SELECT * FROM t", True),
        ("WITH a AS (SELECT * FROM t) SELECT a FROM a", True),
        ("WITH a AS (SELECT * FROM t) SELECT b, a FROM a", False),  # by caution
    ],
)
def test_queries_that_are_scanned_twice_are_recognized(text: str, expected: bool) -> None:
    assert uses_each_at_most_once(tokenize(text)) == expected
