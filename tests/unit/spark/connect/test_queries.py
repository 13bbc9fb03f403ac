"""The table names in the text of a query."""

from __future__ import annotations

import pytest

from tahoe.spark.connect.queries import references

QUERIES = {
    "SELECT * FROM t": [("t", None, None, True)],
    "SELECT * FROM delta.`/a b` AS x, db.u y JOIN v ON x.id = v.id": [
        ("delta.`/a b`", None, None, False),
        ("db.u", None, None, False),
        ("v", None, None, True),
    ],
    "TABLE t": [("t", None, None, False)],
    "WITH c AS (TABLE t) TABLE c UNION ALL TABLE u": [("t", None, None, False), ("u", None, None, False)],
    "SELECT table x, (table.y) FROM t": [("t", None, None, True)],
    "SELECT * FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3) x, u TABLESAMPLE (2 ROWS) WHERE a": [
        ("t", None, None, False),
        ("u", None, None, True),
    ],
    "SELECT * FROM t VERSION AS OF 3 WHERE a IN (SELECT b FROM u FOR TIMESTAMP AS OF '2026-01-01' z)": [
        ("t", "3", None, True),
        ("u", None, "'2026-01-01'", False),
    ],
    "SELECT * FROM t TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY AS x, u FOR SYSTEM_TIME AS OF date_sub(now(), 1) WHERE a": [
        ("t", None, "current_timestamp() - INTERVAL 1 DAY", False),
        ("u", None, "date_sub(now(), 1)", True),
    ],
    "SELECT * FROM t TIMESTAMP AS OF TIMESTAMP '2026-01-01' JOIN u TIMESTAMP AS OF -(1 + 2) * f(3, (4))": [
        ("t", None, "TIMESTAMP '2026-01-01'", True),
        ("u", None, "-(1 + 2) * f(3, (4))", True),
    ],
    "WITH c AS (SELECT * FROM t) SELECT * FROM c": [("t", None, None, True)],
    "WITH t AS (SELECT * FROM t) SELECT * FROM t": [("t", None, None, True)],
    "WITH c (a, b) AS (SELECT * FROM t) SELECT * FROM c": [("t", None, None, True)],
    "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c), c": [("c", None, None, True)],
    "SELECT 'FROM x' FROM t -- FROM y\n/* FROM z */": [("t", None, None, True)],
    "SELECT a IS DISTINCT FROM b.c FROM t": [("t", None, None, True)],
    "SELECT * FROM range(3) JOIN LATERAL (SELECT 1)": [],
    "SELECT * FROM (SELECT * FROM t) q": [("t", None, None, True)],
    "SELECT * FROM (TABLE t) x JOIN (FROM u)": [("t", None, None, False), ("u", None, None, True)],
    "SELECT * FROM table JOIN table AS t ON a = b": [("table", None, None, True), ("table", None, None, False)],
    "SELECT * FROM TABLE(range(3)), t": [("t", None, None, True)],
    "SELECT extract(YEAR FROM d), trim(BOTH f(x) FROM s), substring((SELECT a FROM u) FROM 2 FOR 3) FROM t": [
        ("u", None, None, True),
        ("t", None, None, True),
    ],
    "SELECT overlay(s PLACING '_' FROM 6), trim(x), trim(FROM t.a) FROM t": [("t", None, None, True)],
    "SELECT 1": [],
}


@pytest.mark.parametrize(("text", "expected"), QUERIES.items(), ids=QUERIES)
def test_names_after_from_and_join_are_references(text: str, expected: list[object]) -> None:
    assert [(str(actual.name), actual.version, actual.timestamp, actual.needs_alias) for actual in references(text)] == expected


def test_a_reference_has_its_place_in_the_text_with_its_version() -> None:
    text = "SELECT * FROM delta.`/t` VERSION AS OF 1 AS x"
    (actual,) = references(text)
    assert text[actual.start : actual.stop] == "delta.`/t` VERSION AS OF 1"


def test_a_reference_has_its_options_and_its_sample() -> None:
    text = "SELECT * FROM t WITH ('versionAsOf' = '1', pushFilters = false) TABLESAMPLE (5 ROWS) REPEATABLE (1) AS x WHERE a"
    (actual,) = references(text)
    assert actual.options == (("versionAsOf", "1"), ("pushFilters", "false"))
    assert actual.sample == "TABLESAMPLE (5 ROWS) REPEATABLE (1)"
    assert text[actual.stop :] == " AS x WHERE a"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT * FROM (SELECT a FROM t, u x WHERE a IN (1, 2)) dn, v WHERE a = f(b, c)", "t u v"),
        ("SELECT * FROM (t CROSS JOIN u), ((v JOIN w)) LEFT JOIN x ON f(y, z) = 1, q", "t u v w x q"),
        ("SELECT * FROM t LATERAL VIEW explode(x) e AS p, q", "t"),
        ("SELECT 1 FROM t UNION SELECT b, c FROM u, v ORDER BY f, g", "t u v"),
        ("SELECT * FROM t VERSION AS OF 3 AS x, u TIMESTAMP AS OF '2026-01-01' y", "t u"),
        ("SELECT * FROM t, LATERAL (SELECT * FROM u), v", "t u v"),
        ("SELECT * FROM range(10), t", "t"),
        ("SELECT (SELECT max(x) FROM t), y FROM u", "t u"),
        ("SELECT * FROM VALUES (1, 2) AS v(a, b), t", "t"),
        ("SELECT x IS DISTINCT FROM y, z FROM t", "t"),
        ("SELECT sum(a) OVER (PARTITION BY b, c ORDER BY d, e), f FROM t GROUP BY g, h", "t"),
    ],
)
def test_a_comma_continues_a_from_and_nothing_else(text: str, names: str) -> None:
    assert [str(actual.name) for actual in references(text)] == names.split()


def test_a_table_function_has_its_arguments() -> None:
    text = "SELECT * FROM table_changes('db.t', 1 + f(2, 3), '2026-01-01') AS c JOIN Table_Changes_By_Path('/p', 0) WHERE x"
    first, second = references(text)
    assert (first.function, first.arguments, first.needs_alias) == (
        "table_changes",
        ("'db.t'", "1 + f(2, 3)", "'2026-01-01'"),
        False,
    )
    assert (second.function, second.arguments, second.needs_alias) == ("table_changes_by_path", ("'/p'", "0"), True)
    assert text[second.start : second.stop] == "Table_Changes_By_Path('/p', 0)"
