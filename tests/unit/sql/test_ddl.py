"""The parser of CREATE, ALTER, DESCRIBE and SHOW for clients without Spark's parser."""

from __future__ import annotations

import pytest

from tahoe.sql.ddl import (
    AddColumns,
    ChangeColumns,
    ChangedColumn,
    ClusterBy,
    ColumnText,
    CommentOn,
    Create,
    CreateLike,
    Describe,
    DropColumns,
    Other,
    RenameColumn,
    ReplaceColumns,
    SetProperties,
    Truncate,
    UnsetProperties,
    table_statement,
)
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.sql.table_name import TableName

T = TableName(None, ("t",))

STATEMENTS = {
    "CREATE TABLE t (id INT) USING delta": Create(T, "create", (ColumnText("`id` INT"),), "delta"),
    "CREATE OR REPLACE TABLE t AS SELECT 1": Create(T, "createOrReplace", query="SELECT 1"),
    "REPLACE TABLE t (id INT) USING DELTA": Create(T, "replace", (ColumnText("`id` INT"),), "delta"),
    "CREATE TABLE t LIKE u": CreateLike(T, TableName(None, ("u",))),
    "CREATE TABLE IF NOT EXISTS t LIKE delta.`/x` USING DELTA LOCATION '/y' TBLPROPERTIES ('a' = 'b')": CreateLike(
        T, TableName("/x"), True, "delta", "/y", {"a": "b"}
    ),
    "ALTER TABLE t ADD COLUMNS (a INT FIRST, b.c STRING AFTER d)": AddColumns(
        T, (ColumnText("`a` INT", is_first=True), ColumnText("`c` STRING", "`b`", position="d"))
    ),
    "ALTER TABLE t ADD COLUMN a INT": AddColumns(T, (ColumnText("`a` INT"),)),
    "ALTER TABLE t DROP COLUMNS IF EXISTS (a, b.c)": DropColumns(T, ("`a`", "`b`.`c`"), True),
    "ALTER TABLE t RENAME COLUMN a.b TO c": RenameColumn(T, "`a`.`b`", "c"),
    "ALTER TABLE t RENAME TO u": None,
    "ALTER TABLE t ALTER COLUMN a TYPE DECIMAL(10, 2)": ChangeColumns(T, (ChangedColumn("`a`", "DECIMAL(10,2)"),)),
    "ALTER TABLE t ALTER a SET NOT NULL": ChangeColumns(T, (ChangedColumn("`a`", nullable=False),)),
    "SHOW PARTITIONS t PARTITION (day = DATE'2022-01-01', n = 1)": Describe(
        T, "SHOW PARTITIONS", partition=(("day", "DATE'2022-01-01'"), ("n", "1"))
    ),
    "ALTER TABLE t CHANGE COLUMN a DROP NOT NULL": ChangeColumns(T, (ChangedColumn("`a`", nullable=True),)),
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT 1 + 1": ChangeColumns(T, (ChangedColumn("`a`", default="1 + 1"),)),
    "ALTER TABLE t ALTER COLUMN a AFTER b": ChangeColumns(T, (ChangedColumn("`a`", after="b"),)),
    "ALTER TABLE t ALTER COLUMN a SET DEFAULT concat('x', 'y'), s.b COMMENT 'c', d FIRST": ChangeColumns(
        T,
        (
            ChangedColumn("`a`", default="concat('x', 'y')"),
            ChangedColumn("`s`.`b`", comment="c"),
            ChangedColumn("`d`", after=""),
        ),
    ),
    "ALTER TABLE t CHANGE COLUMN s.a A VARCHAR(3) COMMENT 'x' AFTER b": ChangeColumns(
        T, (ChangedColumn("`s`.`a`", "VARCHAR(3)", comment="x", after="b"),)
    ),
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b', c.d = 1)": SetProperties(T, {"a": "b", "c.d": "1"}),
    "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('a')": UnsetProperties(T, ("a",)),
    "ALTER TABLE t CLUSTER BY (a, b)": ClusterBy(T, ("`a`", "`b`")),
    "ALTER TABLE t CLUSTER BY NONE": ClusterBy(T, ()),
    "ALTER TABLE t RECOVER PARTITIONS": Other(T, "ALTER TABLE RECOVER PARTITIONS"),
    "ALTER TABLE t ADD IF NOT EXISTS PARTITION (p = 1)": Other(T, "ALTER TABLE ADD PARTITION"),
    "ALTER TABLE t DROP IF EXISTS PARTITION (p = 1)": Other(T, "ALTER TABLE DROP PARTITION"),
    "ALTER TABLE t DROP CONSTRAINTS": Other(T, "ALTER TABLE DROP"),
    "ALTER TABLE t PARTITION (p = (1)) RENAME TO PARTITION (p = 2)": Other(T, "ALTER TABLE RENAME PARTITION"),
    "ALTER TABLE t PARTITION (p = 1) SET LOCATION '/x'": Other(T, "ALTER TABLE PARTITION … SET"),
    "ALTER TABLE t SET SERDE 'x'": Other(T, "ALTER TABLE SET SERDEPROPERTIES"),
    "CREATE TABLE t (a INT) USING delta CLUSTERED BY (a) SORTED BY (a) INTO 4 BUCKETS": Create(
        T, "create", (ColumnText("`a` INT"),), "delta", has_buckets=True
    ),
    "CREATE TABLE t (d DATE) USING delta PARTITIONED BY (d, bucket(3, d))": Create(
        T, "create", (ColumnText("`d` DATE"),), "delta", partition_expression="bucket(3, d)"
    ),
    "TRUNCATE TABLE t": Truncate(T),
    "DESC EXTENDED t": Describe(T, "extended"),
    "DESCRIBE TABLE delta.`/x`": Describe(TableName("/x"), "columns"),
    "DESCRIBE t a": Describe(T, "column", column=("a",)),
    "DESCRIBE EXTENDED t s.`a.b`;": Describe(T, "column", column=("s", "a.b")),
    "DESCRIBE t AS JSON": None,
    "DESCRIBE t PARTITION (p = 1)": Other(T, "DESCRIBE TABLE PARTITION"),
    "DESCRIBE HISTORY t": None,
    "SHOW COLUMNS IN t": Describe(T, "SHOW COLUMNS"),
    "SHOW TBLPROPERTIES t ('a')": Describe(T, "SHOW TBLPROPERTIES", "a"),
    "SHOW TABLES": None,
    "COMMENT ON TABLE t IS 'x'": CommentOn(T, "x"),
    "COMMENT ON TABLE t IS NULL": CommentOn(T, ""),
    "SHOW CREATE TABLE t": Describe(T, "SHOW CREATE TABLE"),
    "SHOW CREATE TABLE t AS SERDE": Other(T, "SHOW CREATE TABLE … AS SERDE"),
    "ALTER TABLE t REPLACE COLUMNS (a INT COMMENT 'x', b STRING)": ReplaceColumns(
        T, (ColumnText("`a` INT COMMENT 'x'"), ColumnText("`b` STRING"))
    ),
    "CREATE VIEW v AS SELECT 1": None,
    "SELECT 1": None,
}


@pytest.mark.parametrize(("text", "expected"), STATEMENTS.items(), ids=STATEMENTS)
def test_a_statement_becomes_a_value(text: str, expected: object) -> None:
    assert table_statement(text) == expected


def test_a_creation_has_all_clauses() -> None:
    actual = table_statement(
        "CREATE EXTERNAL TABLE IF NOT EXISTS t (id BIGINT NOT NULL COMMENT 'it''s', n STRUCT<a: INT, b: ARRAY<DECIMAL(10, 2)>>, "
        "g INT GENERATED ALWAYS AS (id + 1), i BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 3 INCREMENT BY -2), d INT DEFAULT 5) "
        "USING delta PARTITIONED BY (p INT) LOCATION '/x' COMMENT 'c' TBLPROPERTIES ('k' = 'v') OPTIONS (o 'w') AS SELECT 1"
    )
    assert actual == Create(
        T,
        "createIfNotExists",
        (
            ColumnText("`id` BIGINT NOT NULL COMMENT 'it''s'"),
            ColumnText("`n` STRUCT<a:INT,b:ARRAY<DECIMAL(10,2)>>"),
            ColumnText("`g` INT", generated="id + 1"),
            ColumnText("`i` BIGINT", identity=(3, -2, True)),
            ColumnText("`d` INT", default="5"),
            ColumnText("`p` INT"),
        ),
        "delta",
        ("p",),
        None,
        "/x",
        "c",
        {"k": "v"},
        {"o": "w"},
        "SELECT 1",
    )


def test_a_default_may_contain_not() -> None:
    actual = table_statement(
        "CREATE TABLE t (a BOOLEAN DEFAULT true AND NOT false NOT NULL, constraint INT DEFAULT NULL) USING delta"
    )
    assert isinstance(actual, Create)
    assert actual.columns == (
        ColumnText("`a` BOOLEAN NOT NULL", default="true AND NOT false"),
        ColumnText("`constraint` INT", default="NULL"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE t STORED AS ORC",
        "ALTER TABLE t DROP COLUMNS ()",
        "ALTER TABLE t ALTER COLUMN a",
        "ALTER TABLE t CHANGE a b INT",
        "ALTER TABLE t ALTER COLUMN a a INT",
        "CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0)) USING delta",
        "CREATE TABLE t (a INT, CONSTRAINT c PRIMARY KEY (a)) USING delta",
    ],
)
def test_invalid_syntax_is_an_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="expected"):
        table_statement(text)


@pytest.mark.parametrize("query", ["AS SELECT 1", "SELECT 1", "TABLE b", "VALUES (1)", "(SELECT 1)", "AS FROM b SELECT *"])
def test_a_creation_has_a_query_with_or_without_as(query: str) -> None:
    statement = table_statement(f"CREATE TABLE t USING csv {query};")
    assert isinstance(statement, Create)
    assert statement.query == query.removeprefix("AS ")
    assert statement.head + statement.query == f"CREATE TABLE t USING csv {query}"


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE TABLE t MORE",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b') MORE",
        "ALTER TABLE t SET TBLPROPERTIES ('a' MORE = 'b')",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 1 + 1)",
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b', 'a' = 'c')",
        "ALTER TABLE t UNSET TBLPROPERTIES ('a') MORE",
        "ALTER TABLE t CLUSTER BY NONE MORE",
        "SHOW CREATE TABLE t MORE",
        "CREATE TABLE t (a INT) USING delta USING delta",
        "CREATE TABLE t (a INT) USING delta OPTIONS (a 'b', a 'c')",
        "CREATE TABLE t (a INT FIRST) USING delta",
        "CREATE TABLE t (a INT, b INT AFTER a) USING delta",
        "CREATE TABLE t (a INT) COMMENT 'c' USING delta",
        "ALTER TABLE t REPLACE COLUMNS (a INT FIRST)",
    ],
)
def test_no_part_of_a_statement_is_ignored(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        table_statement(text)


def test_values_of_properties_may_be_numbers_and_booleans() -> None:
    statement = table_statement("ALTER TABLE t SET TBLPROPERTIES ('a' 'b', c = 1.5, d.e = true, 'f' = 2, g = .5)")
    assert isinstance(statement, SetProperties)
    assert statement.properties == {"a": "b", "c": "1.5", "d.e": "true", "f": "2", "g": ".5"}


def test_a_truncated_partition_is_parsed() -> None:
    assert table_statement("TRUNCATE TABLE t PARTITION (p = 'a');") == Truncate(T, "p = 'a'")


@pytest.mark.parametrize(
    ("text", "table", "comment"),
    [
        ("COMMENT ON COLUMN t.a IS 'x'", T, "x"),
        ("COMMENT ON COLUMN delta.`/p.q`.a IS NULL", TableName("/p.q"), ""),
        ("COMMENT ON COLUMN delta.t.a IS 'x';", TableName(None, ("delta", "t")), "x"),
    ],
)
def test_a_comment_on_a_column_changes_the_column(text: str, table: TableName, comment: str) -> None:
    assert table_statement(text) == ChangeColumns(table, (ChangedColumn("`a`", comment=comment),))


def test_a_comment_on_a_column_names_a_table() -> None:
    with pytest.raises(SqlSyntaxError):
        table_statement("COMMENT ON COLUMN a IS 'x'")
