"""Columns that are qualified by the database of their table."""

from __future__ import annotations

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.sql.dialect import tokenize
from tahoe.sql.dml import Delete, Merge, Update, row_statement
from tahoe.sql.short_names import QualifiedText, QueriedTable, replaced, with_short_names

AROUND = [QueriedTable(("spark_catalog", "db", "t")), QueriedTable(("db", "a b"))]
ONE, TWO = ("spark_catalog", "d1", "t"), ("spark_catalog", "d2", "t")
ONE_ALIAS, TWO_ALIAS = "`spark_catalog.d1.t`", "`spark_catalog.d2.t`"


def tables_in(text: str) -> list[QueriedTable]:
    """Return the tables after FROM, JOIN and a comma of a text, each a database and a name, or a name with an alias."""
    tokens = tokenize(text)
    tables = []
    for before, first, dot, second, after in zip(
        tokens, tokens[1:], tokens[2:], tokens[3:], [*tokens[4:], tokens[0]], strict=False
    ):
        if before.is_word("FROM", "JOIN") and dot.is_symbol("."):
            alias = after.text if after.is_word("X", "T") else None
            name = ("spark_catalog", first.text, second.text)
            tables.append(QueriedTable(name, first.start, second.stop, alias, takes_alias=alias is None))
    return tables


def with_aliases(text: str) -> str:
    """Return a query with the columns named by aliases."""
    qualified = QualifiedText(text, tables_in(text))
    return replaced(text, qualified.replacements(qualified.whole_names()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.t.id = 1 AND DB . T . v > spark_catalog.db.t.v", "t.id = 1 AND T . v > t.v"),
        ("SELECT db.t.*, `db`.`a b`.`c d` FROM x", "SELECT t.*, `a b`.`c d` FROM x"),
        ("'db.t.id' = db.t -- db.t.id", "'db.t.id' = db.t -- db.t.id"),
        ("other.db.t.id + x.db.t + db2.t.id + t.id", "other.db.t.id + x.db.t + db2.t.id + t.id"),
        ("spark_catalog.db.`a b`.id", "spark_catalog.db.`a b`.id"),
    ],
)
def test_the_database_is_left_out_before_a_column(text: str, expected: str) -> None:
    qualified = QualifiedText(text, AROUND)
    assert replaced(text, qualified.replacements(qualified.whole_names())) == expected
    assert list(QualifiedText(text, []).replacements(())) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT d1.t.id, v FROM d1.t JOIN d2.s ON d1.t.id = d2.s.id", "SELECT t.id, v FROM d1.t JOIN d2.s ON t.id = s.id"),
        ("SELECT t.id FROM d1.t UNION ALL SELECT d2.t.id FROM d2.t", "SELECT t.id FROM d1.t UNION ALL SELECT t.id FROM d2.t"),
        (
            "SELECT d1.t.id, D2.T.* FROM d1.t JOIN d2.t ON d1.t.id = spark_catalog.d2.t.id",
            f"SELECT {ONE_ALIAS}.id, {TWO_ALIAS}.* FROM d1.t JOIN d2.t ON {ONE_ALIAS}.id = {TWO_ALIAS}.id",
        ),
        (
            "SELECT t.v FROM d1.t WHERE EXISTS (SELECT 1 FROM d2.t WHERE t.id = d1.t.id AND d2.t.v = t.v)",
            f"SELECT {ONE_ALIAS}.v FROM d1.t WHERE EXISTS (SELECT 1 FROM d2.t WHERE t.id = {ONE_ALIAS}.id AND t.v = t.v)",
        ),
        (
            "SELECT * FROM d1.t WHERE EXISTS (SELECT 1 FROM d2.s T WHERE T.id = d1.t.id)",
            f"SELECT * FROM d1.t WHERE EXISTS (SELECT 1 FROM d2.s T WHERE T.id = {ONE_ALIAS}.id)",
        ),
        (
            "SELECT t.id FROM d1.t WHERE v IN (SELECT v FROM (SELECT 1 AS v) AS t WHERE t.v = d1.t.v)",
            f"SELECT {ONE_ALIAS}.id FROM d1.t WHERE v IN (SELECT v FROM (SELECT 1 AS v) AS t WHERE t.v = {ONE_ALIAS}.v)",
        ),
        ("SELECT d1.t.id AS t, t.v FROM d1.t", "SELECT t.id AS t, t.v FROM d1.t"),
        ("SELECT d1.t.id FROM d1.t x, d2.t", "SELECT d1.t.id FROM d1.t x, d2.t"),
    ],
)
def test_an_alias_is_the_whole_name_where_a_short_one_would_mean_another_table(text: str, expected: str) -> None:
    assert with_aliases(text) == expected


def test_one_name_for_two_tables_is_an_error() -> None:
    with pytest.raises(InvalidRequest, match=r"t before a column is ambiguous: .*spark_catalog\.d1\.t or spark_catalog\.d2\.t"):
        with_aliases("SELECT t.id, d1.t.v FROM d1.t JOIN d2.t ON d1.t.id = d2.t.id")
    assert [QueriedTable(ONE).alias_among({each}) for each in (ONE, TWO)] == ["spark_catalog.d1.t", "t"]


def test_all_parts_of_a_statement_lose_the_database() -> None:
    merge = row_statement(
        "MERGE INTO db.t USING db.s ON db.t.id = db.s.id WHEN MATCHED AND db.t.v > 1 THEN UPDATE SET db.t.v = db.s.v "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (db.s.id) WHEN NOT MATCHED THEN INSERT *"
    )
    expected = row_statement(
        "MERGE INTO db.t USING db.s ON t.id = s.id WHEN MATCHED AND t.v > 1 THEN UPDATE SET t.v = s.v "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id) WHEN NOT MATCHED THEN INSERT *"
    )
    assert isinstance(merge, Merge)
    assert with_short_names(merge, QueriedTable(("db", "t")), QueriedTable(("db", "s")), tables_in) == expected
    update, delete = (
        row_statement("UPDATE db.t SET db.t.v = db.t.w WHERE db.t.id = 1"),
        row_statement("DELETE FROM db.t WHERE db.t.id = 1"),
    )
    assert isinstance(update, Update)
    assert isinstance(delete, Delete)
    target = QueriedTable(("db", "t"))
    assert with_short_names(update, target, None, tables_in) == row_statement("UPDATE db.t SET t.v = t.w WHERE t.id = 1")
    assert with_short_names(delete, target, None, tables_in) == row_statement("DELETE FROM db.t WHERE t.id = 1")
    assert with_short_names(Delete(delete.table, None, None), target, None, tables_in) == Delete(delete.table, None, None)


def test_the_tables_of_a_statement_with_one_name_have_their_whole_names_as_aliases() -> None:
    merge = row_statement(
        "MERGE INTO d1.t USING d2.t ON d1.t.id = d2.t.id WHEN MATCHED THEN UPDATE SET d1.t.v = d2.t.v "
        "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (d2.t.id, d2.t.v)"
    )
    assert isinstance(merge, Merge)
    changed = with_short_names(merge, QueriedTable(ONE), QueriedTable(TWO), tables_in)
    assert isinstance(changed, Merge)
    assert (changed.alias, changed.source_alias) == ("spark_catalog.d1.t", "spark_catalog.d2.t")
    assert changed.on == f"{ONE_ALIAS}.id = {TWO_ALIAS}.id"
    update = row_statement("UPDATE d1.t SET v = (SELECT max(v) FROM d2.t WHERE t.id = d1.t.id)")
    assert isinstance(update, Update)
    changed = with_short_names(
        update,
        QueriedTable(ONE),
        None,
        lambda text: [QueriedTable(table.name, table.start, table.stop) for table in tables_in(text)],
    )
    assert isinstance(changed, Update)
    assert changed.alias == "spark_catalog.d1.t"
    assert changed.values == (("`v`", f"(SELECT max(v) FROM d2.t WHERE t.id = {ONE_ALIAS}.id)"),)
