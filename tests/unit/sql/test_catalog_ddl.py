"""Which table a statement of the catalog creates or alters, and in which format."""

from __future__ import annotations

import pytest

from tahoe.sql.catalog_ddl import catalog_ddl, names_in_script


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE t (id INT) USING delta", [("CREATE TABLE", "t", True, "delta")]),
        (
            "-- a comment\ncreate table if not exists db.t (id int, u string) using DELTA",
            [("CREATE TABLE", "db.t", True, "delta")],
        ),
        ("CREATE OR REPLACE TABLE t USING `delta` AS SELECT * FROM a JOIN b USING (id)", [("REPLACE TABLE", "t", True, "delta")]),
        ("REPLACE TABLE t (a INT) USING parquet", [("REPLACE TABLE", "t", True, "parquet")]),
        ("CREATE EXTERNAL TABLE t (a INT) LOCATION '/p'", [("CREATE TABLE", "t", True, None)]),
        ("CREATE TABLE t AS SELECT a FROM x JOIN y USING delta", [("CREATE TABLE", "t", True, None)]),
        ("CREATE TABLE t (a INT) STORED AS parquet", [("CREATE TABLE", "t", True, "hive")]),
        ("CREATE TABLE a LIKE b USING delta", [("CREATE TABLE", "a", True, "delta")]),
        ("CREATE TABLE t (using STRING) USING csv", [("CREATE TABLE", "t", True, "csv")]),
        ("ALTER TABLE spark_catalog.db.t ADD COLUMN x INT", [("ALTER TABLE", "spark_catalog.db.t", False, None)]),
        ("alter table delta.`/a b` set tblproperties ('a' = 'b')", [("ALTER TABLE", "delta.`/a b`", False, None)]),
        ("COMMENT ON TABLE t IS 'using delta'", [("COMMENT ON TABLE", "t", False, None)]),
        ("EXPLAIN EXTENDED CREATE TABLE t (a INT) USING delta", [("CREATE TABLE", "t", True, "delta")]),
        (
            "BEGIN IF a THEN CREATE TABLE t (a INT) USING delta; ALTER TABLE u RENAME TO v; END IF; END",
            [("CREATE TABLE", "t", True, "delta"), ("ALTER TABLE", "u", False, None)],
        ),
        ("CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/p')", []),
        ("CREATE DATABASE d COMMENT 'CREATE TABLE t USING delta'", []),
        ("SELECT 'CREATE TABLE t USING delta'", []),
        ("INSERT INTO t SELECT 1", []),
        ("", []),
    ],
)
def test_a_statement_names_its_table_and_format(text, expected):
    assert [(item.words, str(item.table), item.creates, item.provider) for item in catalog_ddl(text)] == expected


def test_a_name_that_an_expression_makes_is_not_known():
    assert [item.table for item in catalog_ddl("ALTER TABLE IDENTIFIER('a' || :b) ADD COLUMN x INT")] == [None]


def test_names_in_a_script_are_those_of_tables() -> None:
    script = """BEGIN
        DECLARE n INT DEFAULT 0;
        INSERT INTO a SELECT * FROM b JOIN delta.`/c` ON true;
        IF n = (SELECT max(id) FROM b) THEN UPDATE d SET x = extract(YEAR FROM day); DELETE FROM db.e; END IF;
        MERGE INTO f USING (SELECT 1) s ON true WHEN MATCHED THEN DELETE; INSERT OVERWRITE TABLE g VALUES (1);
    END"""
    assert [str(name) for name in names_in_script(script)] == ["a", "b", "delta.`/c`", "d", "day", "db.e", "f", "TABLE", "g"]
