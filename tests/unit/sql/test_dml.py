"""The parser of DELETE, UPDATE, MERGE and INSERT for clients without Spark's parser."""

from __future__ import annotations

import pytest

from tahoe.sql.dialect import SqlSyntaxError
from tahoe.sql.dml import Delete, Insert, Merge, MergeClause, Update, row_statement, several_inserts, writes_directory_of_delta
from tahoe.sql.table_name import TableName

T, PATH = TableName(None, ("t",)), TableName("/a b")

STATEMENTS = {
    "DELETE FROM t": Delete(T, None, None),
    "delete from delta.`/a b` as x where x.id in (1, 2);": Delete(PATH, "x", "x.id in (1, 2)"),
    "UPDATE t SET a = 1, b.c = 'x, y' WHERE d": Update(T, None, (("`a`", "1"), ("`b`.`c`", "'x, y'")), "d"),
    "UPDATE t u SET a = CASE WHEN b THEN 1 END": Update(T, "u", (("`a`", "CASE WHEN b THEN 1 END"),), None),
    "INSERT INTO t VALUES (1, 'a')": Insert(T, False, "VALUES (1, 'a')"),
    "INSERT INTO TABLE t (a, b) SELECT 1, 2": Insert(T, False, "SELECT 1, 2", ("a", "b")),
    "INSERT INTO table VALUES (1)": Insert(TableName(None, ("table",)), False, "VALUES (1)"),
    "INSERT OVERWRITE table (a) SELECT 1": Insert(TableName(None, ("table",)), True, "SELECT 1", ("a",)),
    "INSERT INTO TABLE table SELECT 1": Insert(TableName(None, ("table",)), False, "SELECT 1"),
    "INSERT INTO t WITH (a = 'b', 'c.d' 1) PARTITION (p) SELECT 1": Insert(
        T, False, "SELECT 1", partition=(("p", None),), options={"a": "b", "c.d": "1"}
    ),
    "INSERT INTO t WITH a AS (SELECT 1) SELECT * FROM a": Insert(T, False, "WITH a AS (SELECT 1) SELECT * FROM a"),
    "INSERT INTO t (SELECT 1)": Insert(T, False, "(SELECT 1)"),
    "INSERT INTO t BY NAME SELECT 1 AS a": Insert(T, False, "SELECT 1 AS a", by_name=True),
    "INSERT OVERWRITE t PARTITION (p = 1, q) SELECT 2": Insert(T, True, "SELECT 2", partition=(("p", "1"), ("q", None))),
    "INSERT INTO t REPLACE WHERE p = 1 SELECT 1": Insert(T, False, "SELECT 1", replaced={"replaceWhere": "p = 1"}),
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a": Insert(T, False, "WITH a AS (SELECT 1) SELECT * FROM a"),
    "WITH a (insert, b) AS (SELECT (1), 2), c AS (SELECT 3) DELETE FROM t": Delete(T, None, None),
}


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items(), ids=STATEMENTS)
def test_a_statement_becomes_a_value(text: str, expected: object) -> None:
    assert row_statement(text) == expected


def test_a_merge_has_all_kinds_of_clauses() -> None:
    merge = row_statement(
        "MERGE WITH SCHEMA EVOLUTION INTO t AS a USING (SELECT 1 AS id) b ON a.id = b.id AND CASE WHEN true THEN true END "
        "WHEN MATCHED AND b.x > 1 THEN UPDATE SET a.v = b.v, w = (1 + 2) WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED BY TARGET THEN INSERT (id, v) VALUES (b.id, coalesce(b.v, 0)) "
        "WHEN NOT MATCHED BY SOURCE AND a.id < 0 THEN UPDATE SET v = 0;"
    )
    assert merge == Merge(
        T,
        "a",
        "SELECT 1 AS id",
        "b",
        "a.id = b.id AND CASE WHEN true THEN true END",
        (
            MergeClause("MATCHED", "UPDATE", "b.x > 1", (("`a`.`v`", "b.v"), ("`w`", "(1 + 2)"))),
            MergeClause("MATCHED", "DELETE", None, ()),
            MergeClause("NOT_MATCHED", "INSERT", None, (("`id`", "b.id"), ("`v`", "coalesce(b.v, 0)"))),
            MergeClause("NOT_MATCHED_BY_SOURCE", "UPDATE", "a.id < 0", (("`v`", "0"),)),
        ),
        schema_evolution=True,
    )


def test_a_source_without_alias_has_the_name_of_its_table() -> None:
    merge = row_statement("MERGE INTO t USING db.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
    assert isinstance(merge, Merge)
    assert (merge.source, merge.source_alias) == ("SELECT * FROM db.s", "s")
    assert [clause.values for clause in merge.clauses] == [None, None]


@pytest.mark.parametrize(
    "text", ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "INSERT OVERWRITE DIRECTORY '/x' SELECT 1", ""]
)
def test_other_text_is_none(text: str) -> None:
    assert row_statement(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM t WHERE",
        "UPDATE t SET a",
        "MERGE INTO t USING s ON t.id = s.id",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT * WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *",
        "INSERT INTO t WITH (a = 1, a = 2) SELECT 1",
        "INSERT INTO t",
    ],
)
def test_invalid_syntax_is_an_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="expected"):
        row_statement(text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("(SELECT * FROM a)", "WITH a AS (SELECT 1) SELECT * FROM (SELECT * FROM a)"),
    ],
)
def test_named_queries_before_a_merge_belong_to_its_source(source: str, expected: str) -> None:
    statement = row_statement(f"WITH a AS (SELECT 1) MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE")
    assert isinstance(statement, Merge)
    assert (statement.source, statement.source_alias) == (expected, "s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "FROM s JOIN u USING (id) INSERT INTO t SELECT id WHERE id < 1 insert overwrite v PARTITION (p = 1) SELECT 'INSERT';",
            (
                "INSERT INTO t FROM s JOIN u USING (id) SELECT id WHERE id < 1",
                "INSERT overwrite v PARTITION (p = 1) FROM s JOIN u USING (id) SELECT 'INSERT'",
            ),
        ),
        ("WITH s AS (SELECT 1) FROM s INSERT INTO t SELECT *", ("WITH s AS (SELECT 1) INSERT INTO t FROM s SELECT *",)),
        ("FROM s SELECT id", ()),
        ("WITH s AS (SELECT 1) SELECT * FROM s", ()),
        ("INSERT INTO t SELECT 1", ()),
    ],
)
def test_an_insert_into_several_tables_is_one_for_each(text: str, expected: tuple[str, ...]) -> None:
    assert several_inserts(text) == expected


def test_the_text_before_the_query_of_an_insert_is_known() -> None:
    statement = row_statement("WITH a AS (SELECT 1) INSERT INTO TABLE t PARTITION (p = 'x') (b)\nSELECT * FROM a; ")
    assert isinstance(statement, Insert)
    assert statement.head + statement.query == "INSERT INTO TABLE t PARTITION (p = 'x') (b)\nWITH a AS (SELECT 1) SELECT * FROM a"


@pytest.mark.parametrize(
    "clause",
    [
        "MATCHED THEN INSERT *",
        "NOT MATCHED THEN UPDATE SET *",
        "NOT MATCHED THEN DELETE",
        "NOT MATCHED BY SOURCE THEN INSERT (a) VALUES (1)",
    ],
)
def test_a_clause_has_an_action_for_its_rows(clause: str) -> None:
    with pytest.raises(SqlSyntaxError):
        row_statement(f"MERGE INTO t USING s ON t.a = s.a WHEN {clause}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT INTO t REPLACE USING (a, b) SELECT 1", Insert(T, False, "SELECT 1", replaced={"replaceUsing": "a, b"})),
        (
            "INSERT INTO t REPLACE ON (t.a = s.a) AND f(b) SELECT 1",
            Insert(T, False, "SELECT 1", replaced={"replaceOn": "(t.a = s.a) AND f(b)", "targetAlias": "t"}),
        ),
        (
            "INSERT INTO t AS x BY NAME REPLACE ON x.a = s.a (SELECT 1) AS s;",
            Insert(T, False, "SELECT 1", by_name=True, replaced={"replaceOn": "x.a = s.a", "targetAlias": "x"}, source_alias="s"),
        ),
    ],
)
def test_an_insert_replaces_rows(text: str, expected: Insert) -> None:
    assert row_statement(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t AS x SELECT 1",
        "INSERT INTO t AS x REPLACE USING (a) SELECT 1",
        "INSERT OVERWRITE t REPLACE USING (a) SELECT 1",
        "INSERT INTO t REPLACE ON SELECT 1",
        "INSERT INTO t REPLACE ON t.a = s.a (SELECT 1) AS s MORE",
    ],
)
def test_a_wrong_replacement_is_refused(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        row_statement(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INSERT OVERWRITE DIRECTORY '/x' USING delta SELECT 1", True),
        ("insert overwrite local directory '/x' using DELTA options (a = 'b') SELECT 1", True),
        ("INSERT OVERWRITE DIRECTORY USING delta OPTIONS (path = '/x') SELECT 1", True),
        ("INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT * FROM delta.`/x`", False),
        ("INSERT OVERWRITE directory_of_delta SELECT 1", False),
        ("INSERT INTO directory SELECT 1", False),
    ],
)
def test_a_directory_in_the_format_of_delta_is_recognized(text: str, expected: bool) -> None:
    assert writes_directory_of_delta(text) is expected
