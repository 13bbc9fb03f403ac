"""Columns that are qualified by the database of their table."""

from __future__ import annotations

import pytest

from tahoe.sql.dml import Delete, Merge, Update, row_statement
from tahoe.sql.short_names import with_short_names, without_databases

TABLES = [("spark_catalog", "db", "t"), ("db", "a b")]


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
    assert without_databases(text, TABLES) == expected
    assert without_databases(text, []) == text


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
    assert with_short_names(merge, [("db", "t"), ("db", "s")]) == expected
    update, delete = (
        row_statement("UPDATE db.t SET db.t.v = db.t.w WHERE db.t.id = 1"),
        row_statement("DELETE FROM db.t WHERE db.t.id = 1"),
    )
    assert isinstance(update, Update)
    assert isinstance(delete, Delete)
    assert with_short_names(update, [("db", "t")]) == row_statement("UPDATE db.t SET t.v = t.w WHERE t.id = 1")
    assert with_short_names(delete, [("db", "t")]) == row_statement("DELETE FROM db.t WHERE t.id = 1")
    assert with_short_names(Delete(delete.table, None, None), [("db", "t")]) == Delete(delete.table, None, None)
