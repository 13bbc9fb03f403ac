"""The stars of a query, without a column of some relations."""

from __future__ import annotations

import pytest

from tahoe.sql.stars import without_column


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT *, a FROM t", "SELECT * EXCEPT (t.m), a FROM t"),
        ("SELECT * FROM t AS x JOIN u y", "SELECT * EXCEPT (x.m, y.m) FROM t AS x JOIN u y"),
        ("SELECT x.*, o.* FROM t x, other o", "SELECT x.* EXCEPT (x.m), o.* FROM t x, other o"),
        (
            "SELECT X.* FROM t TABLESAMPLE (1 ROWS) REPEATABLE (2) x",
            "SELECT X.* EXCEPT (x.m) FROM t TABLESAMPLE (1 ROWS) REPEATABLE (2) x",
        ),
        ("SELECT * EXCEPT (a) FROM t", "SELECT * EXCEPT (t.m, a) FROM t"),
        ("SELECT * FROM t EXCEPT (SELECT * FROM other)", "SELECT * EXCEPT (t.m) FROM t EXCEPT (SELECT * FROM other)"),
        ("SELECT * FROM (SELECT * FROM t)", "SELECT * FROM (SELECT * EXCEPT (t.m) FROM t)"),
        ("SELECT * FROM (t JOIN other)", "SELECT * EXCEPT (t.m) FROM (t JOIN other)"),
        ("WITH c AS (SELECT * FROM t) SELECT * FROM c", "WITH c AS (SELECT * EXCEPT (t.m) FROM t) SELECT * FROM c"),
        ("SELECT * FROM other UNION SELECT * FROM t", "SELECT * FROM other UNION SELECT * EXCEPT (t.m) FROM t"),
        ("SELECT count(*), 2 * a, struct(*) FROM t", "SELECT count(*), 2 * a, struct(* EXCEPT (t.m)) FROM t"),
        ("SELECT 'a * b', * FROM t -- *", "SELECT 'a * b', * EXCEPT (t.m) FROM t -- *"),
        ("SELECT * FROM t `a b`", "SELECT * EXCEPT (`a b`.m) FROM t `a b`"),
    ],
)
def test_stars_leave_out_the_column(query: str, expected: str) -> None:
    text = without_column(query, {"t", "u"}, "m")
    assert text is not None
    assert text.replace("`t`", "t").replace("`x`", "x").replace("`y`", "y").replace("`m`", "m") == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a FROM t NATURAL JOIN u",
        "FROM t SELECT *",
        "FROM t |> SELECT a",
        "SELECT a FROM (FROM t SELECT *)",
        "TABLE t",
        "SELECT a FROM t AS x (a, b)",
        "SELECT * FROM t PIVOT (sum(a) FOR b IN (1))",
    ],
)
def test_a_query_that_means_all_columns_without_a_star_stays(query: str) -> None:
    assert without_column(query, {"t", "u"}, "m") is None
