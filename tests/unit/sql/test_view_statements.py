"""CREATE VIEW and ALTER VIEW … AS: name, columns and query."""

from __future__ import annotations

import pytest

from tahoe.sql.table_name import TableName
from tahoe.sql.view_statements import CacheStatement, ViewColumn, ViewStatement, cache_statement, view_statement

V = TableName(None, ("v",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE VIEW v AS SELECT 1", ViewStatement(V, "SELECT 1")),
        ("create or replace temp view v as select 1", ViewStatement(V, "select 1", replaces=True, scope="TEMPORARY")),
        ("CREATE GLOBAL TEMPORARY VIEW v AS (SELECT 1)", ViewStatement(V, "(SELECT 1)", scope="GLOBAL TEMPORARY")),
        ("CREATE VIEW IF NOT EXISTS db.v AS SELECT 1", ViewStatement(TableName(None, ("db", "v")), "SELECT 1")),
        (
            "CREATE VIEW v (a COMMENT 'x AS y', `b c`) COMMENT 'as of SELECT' TBLPROPERTIES ('a' = 'AS') WITH SCHEMA BINDING AS SELECT 1, 2",
            ViewStatement(V, "SELECT 1, 2", (ViewColumn("a", "x AS y"), ViewColumn("b c")), comment="as of SELECT"),
        ),
        (
            "CREATE TEMPORARY VIEW v USING Delta OPTIONS (path '/p', versionAsOf = 3);",
            ViewStatement(V, "", scope="TEMPORARY", source="delta", options=(("path", "/p"), ("versionAsOf", "3"))),
        ),
        ("CREATE TEMP VIEW v USING csv", ViewStatement(V, "", scope="TEMPORARY", source="csv")),
        ("ALTER VIEW v AS SELECT a AS b FROM t", ViewStatement(V, "SELECT a AS b FROM t", alters=True)),
        (
            "ALTER VIEW v WITH c AS (SELECT 1) SELECT * FROM c",
            ViewStatement(V, "WITH c AS (SELECT 1) SELECT * FROM c", alters=True),
        ),
    ],
)
def test_a_view_statement_is_parsed(text: str, expected: ViewStatement) -> None:
    assert view_statement(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "CREATE TABLE v AS SELECT 1",
        "ALTER VIEW v RENAME TO w",
        "ALTER VIEW v SET TBLPROPERTIES ('a' = 'b')",
        "ALTER VIEW v WITH SCHEMA EVOLUTION",
        "CREATE TEMPORARY VIEW v (id INT) USING delta OPTIONS (path '/p')",
        "CREATE TEMPORARY VIEW v USING delta AS SELECT 1",
        "CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT 1",
        "CREATE VIEW v () AS SELECT 1",
        "CREATE VIEW v",
        "",
    ],
)
def test_other_statements_are_left_alone(text: str) -> None:
    assert view_statement(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CACHE TABLE v", CacheStatement(V, False, None, None)),
        ("cache lazy table v AS SELECT 1", CacheStatement(V, True, None, "SELECT 1")),
        ("CACHE TABLE v OPTIONS ('storageLevel' = 'DISK_ONLY') SELECT 1", CacheStatement(V, False, "DISK_ONLY", "SELECT 1")),
        ("CACHE TABLE v OPTIONS (storageLevel 'DISK_ONLY')", CacheStatement(V, False, "DISK_ONLY", None)),
        ("CACHE TABLE v OPTIONS (other 'x')", None),
        ("CACHE TABLE", None),
        ("UNCACHE TABLE v", None),
    ],
)
def test_a_cache_statement_is_parsed(text: str, expected: CacheStatement | None) -> None:
    assert cache_statement(text) == expected


def test_a_global_view_is_found_in_its_database() -> None:
    found = [view_statement(f"CREATE {scope} VIEW v AS SELECT 1") for scope in ("", "TEMP", "GLOBAL TEMP")]
    assert [view.parts for view in found if view is not None] == [("v",), ("v",), ("global_temp", "v")]
