"""Which texts are statements of Delta, and what they ask for."""

from __future__ import annotations

import pytest

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.expr.parse.lexer import string_value
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.sql.parse import may_be_delta, parse, with_values
from tahoe.sql.statements import (
    AddConstraint,
    Delete,
    DescribeDetail,
    DescribeHistory,
    DescribeTable,
    DropConstraint,
    Purge,
    SetProperties,
    ShowProperties,
    SyncMetadata,
    TableAtPath,
    UnsetProperties,
    Update,
    UpgradeUniform,
)

P = TableAtPath("/p", "delta.`/p`")


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES ('a' = 'b')", SetProperties(P, {"a": "b"})),
        ("alter table delta.`/p` set tblproperties (a 'b', `c d`='e');", SetProperties(P, {"a": "b", "c d": "e"})),
        (
            "ALTER TABLE delta.`/p` SET TBLPROPERTIES (delta.appendOnly = TRUE, x.y = 1.5, z = -3)",
            SetProperties(P, {"delta.appendOnly": "true", "x.y": "1.5", "z": "-3"}),
        ),
        (
            """ALTER TABLE delta.`/p` SET TBLPROPERTIES ("a" = 'it''s', 'b' = "\\u0041\\n", c = r'\\d', d = 'two' ' parts')""",
            SetProperties(P, {"a": "it's", "b": "A\n", "c": "\\d", "d": "two parts"}),
        ),
        ("ALTER TABLE delta.`/p` UNSET TBLPROPERTIES (a, 'b.c')", UnsetProperties(P, ("a", "b.c"), False)),
        ("ALTER TABLE delta.`/p` UNSET TBLPROPERTIES IF EXISTS (a)", UnsetProperties(P, ("a",), True)),
        (
            "ALTER TABLE delta.`/p` ADD CONSTRAINT pos CHECK (a > 0 AND b IN (1, 2))",
            AddConstraint(P, "pos", "a > 0 AND b IN (1, 2)"),
        ),
        ("ALTER TABLE delta.`/p` DROP CONSTRAINT IF EXISTS `my one`", DropConstraint(P, "my one", True)),
        ("SHOW TBLPROPERTIES delta.`/p`", ShowProperties(P, None)),
        ("SHOW TBLPROPERTIES delta.`/p` ('delta.appendOnly')", ShowProperties(P, "delta.appendOnly")),
        ("SHOW TBLPROPERTIES delta.`/p` (delta.appendOnly)", ShowProperties(P, "delta.appendOnly")),
        ("DESCRIBE DETAIL delta.`/p`", DescribeDetail(P)),
        ("desc detail '/p'", DescribeDetail(TableAtPath("/p", "'/p'"))),
        ("DESCRIBE HISTORY delta.`/p` LIMIT 3", DescribeHistory(P, 3)),
        ('DESC HISTORY "/p"', DescribeHistory(TableAtPath("/p", '"/p"'), None)),
        ("DESCRIBE delta.`/p`", DescribeTable(P)),
        ("DESCRIBE TABLE delta.`/p`;", DescribeTable(P)),
        ("MSCK REPAIR TABLE delta.`/p` SYNC METADATA", SyncMetadata(P)),
        ("REORG TABLE delta.`/p` APPLY (PURGE)", Purge(P, None)),
        ("REORG TABLE delta.`/p` WHERE d = ')' AND (x > 1) APPLY (PURGE)", Purge(P, "d = ')' AND (x > 1)")),
        ("REORG TABLE delta.`/p` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", UpgradeUniform(P, 2)),
        ("reorg table delta.`/p` apply(upgrade uniform(iceberg_compat_version=3))", UpgradeUniform(P, 3)),
        ("DELETE FROM delta.`/p`", Delete(P, None, None)),
        ("DELETE FROM delta.`/p` AS t WHERE t.a = 'WHERE'", Delete(P, "t", "t.a = 'WHERE'")),
        ("delete from delta.`/p` t where a > 1;", Delete(P, "t", "a > 1")),
        ("UPDATE delta.`/p` SET a = a + 1", Update(P, None, {"a": "a + 1"}, None)),
        (
            "UPDATE delta.`/p` AS t SET t.a = f(a, ','), `b c` = CASE WHEN x = 1 THEN 2 END, s.f = 'SET' WHERE a = (1)",
            Update(P, "t", {"t.a": "f(a, ',')", "`b c`": "CASE WHEN x = 1 THEN 2 END", "s.f": "'SET'"}, "a = (1)"),
        ),
        (
            "-- first\n/* delta.`/x` /* nested */ */ DESCRIBE /* why */ DETAIL delta . `/p`",
            DescribeDetail(TableAtPath("/p", "delta . `/p`")),
        ),
        ("DESCRIBE DETAIL DELTA.`/a``b`", DescribeDetail(TableAtPath("/a`b", "DELTA.`/a``b`"))),
        ("DESCRIBE DETAIL `delta`.`/p`", DescribeDetail(TableAtPath("/p", "`delta`.`/p`"))),
        ("DESCRIBE DETAIL IDENTIFIER('delta.`/p`')", DescribeDetail(TableAtPath("/p", "IDENTIFIER('delta.`/p`')"))),
        ("DESCRIBE DETAIL spark_catalog.delta.`/p`", DescribeDetail(TableAtPath("/p", "spark_catalog.delta.`/p`"))),
    ],
    ids=lambda value: value[:70] if isinstance(value, str) else "",
)
def test_a_statement_of_delta_is_understood(text, statement):
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT 1",
        "SELECT 'delta.`/p`' AS delta",
        'SELECT "ALTER TABLE delta.`/p` SET TBLPROPERTIES (a = 1)"',
        "-- SELECT * FROM delta.`/p`\nSELECT 1",
        "/* FROM delta.`/p` */ SELECT 1 /* FROM /* FROM delta.`/p` */ delta.`/p` */",
        "SELECT `FROM delta.``/p```FROM t",
        "SELECT delta.`x` FROM delta",
        "SELECT a, delta.`x`, b FROM t delta WHERE delta.`x` = 1 ORDER BY a, delta.`x`",
        "SELECT extract(YEAR FROM delta.`x`), trim(BOTH 'a' FROM delta.`y`) FROM t delta",
        "SELECT a IS NOT DISTINCT FROM delta.`x` FROM t delta",
        "SELECT * FROM t delta JOIN u ON f(a, delta.`x`) = delta.`y` GROUP BY delta.`a`, delta.`b`",
        "SELECT * FROM delta.x",
        "SELECT * FROM delta.`x`.`y`",
        "SELECT * FROM delta.x.`y`",
        "SELECT * FROM other.delta.`/p`",
        "SELECT * FROM parquet.`/delta/p`",
        "SELECT r'\\' FROM t WHERE x = 'FROM delta.`/p`'",
        "SELECT $a$ FROM delta.`/p` ' $a$ AS x",
        "SELECT 'unfinished FROM delta.`/p`",
        "ALTER TABLE delta SET TBLPROPERTIES (a = 'b')",
        "ALTER TABLE delta.t SET TBLPROPERTIES (a = 'b')",
        "DESCRIBE HISTORY delta",
        "DESCRIBE detail",
        "SHOW TBLPROPERTIES delta",
        "MSCK REPAIR TABLE delta",
        "UPDATE delta SET a = 1",
        "DELETE FROM delta WHERE a = 1",
        "OPTIMIZE delta",
        "CREATE TABLE t (a INT) USING parquet COMMENT 'USING delta'",
        "CREATE TABLE t (delta INT) USING parquet",
        "CREATE TEMP VIEW v USING delta OPTIONS (path '/p')",
        "CREATE TABLE t AS SELECT a FROM x JOIN y USING (delta)",
        "SET spark.databricks.delta.x = SELECT * FROM delta.`/p`",
        "INSERT INTO t VALUES ('delta.`/p`')",
    ],
)
def test_what_is_not_delta_is_left_alone(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "OPTIMIZE delta.`/p` ZORDER BY (a)",
        "OPTIMIZE '/p'",
        "VACUUM delta.`/p` RETAIN 0 HOURS",
        "vacuum '/p' dry run",
        "RESTORE TABLE delta.`/p` TO VERSION AS OF 1",
        "RESTORE delta.`/p` VERSION AS OF 1",
        "MERGE INTO delta.`/p` t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "MERGE WITH SCHEMA EVOLUTION INTO delta.`/p` t USING s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "INSERT INTO delta.`/p` SELECT * FROM delta.`/q`",
        "INSERT OVERWRITE TABLE delta.`/p` VALUES (1)",
        "TRUNCATE TABLE delta.`/p`",
        "CREATE TABLE delta.`/p` (a INT) USING delta",
        "CREATE TABLE t (a INT) USING delta LOCATION '/p'",
        "CREATE OR REPLACE TABLE t USING DELTA AS SELECT 1",
        "CREATE TABLE IF NOT EXISTS t SHALLOW CLONE delta.`/p`",
        "CONVERT TO DELTA parquet.`/p`",
        "GENERATE symlink_format_manifest FOR TABLE delta.`/p`",
        "DROP TABLE IF EXISTS delta.`/p`",
        "ALTER TABLE delta.`/p` ADD COLUMNS (a INT)",
        "ALTER TABLE delta.`/p` DROP FEATURE deletionVectors",
        "MSCK REPAIR TABLE delta.`/p`",
        "DESCRIBE EXTENDED delta.`/p`",
        "SHOW CREATE TABLE delta.`/p`",
        "CACHE TABLE delta.`/p`",
    ],
)
def test_a_statement_of_delta_that_is_not_here_is_refused_by_name(text):
    with pytest.raises(Unsupported, match=text.split()[0].upper()):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DESCRIBE HISTORY delta.`/p` LIMIT x", r"near 'x' \(line 1, pos 34\): expected a whole number"),
        ("DESCRIBE DETAIL delta.`/p` more", "expected the end of the statement"),
        ("REORG TABLE delta.`/p`\nAPPLY (UPGRADE UNIFORM (VERSION = 2))", r"near 'VERSION' \(line 2, pos 24\)"),
        ("REORG TABLE delta.`/p` WHERE a = 1 APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "expected PURGE"),
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES ()", "expected a name"),
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES (a = )", "expected a value"),
        ("UPDATE delta.`/p` t", "expected SET"),
        ("UPDATE delta.`/p` SET a = WHERE b = 1", "expected an expression"),
        ("DELETE FROM delta.`/p` WHERE", "near the end of input"),
    ],
)
def test_what_cannot_be_understood_is_told_with_its_place(text, message):
    with pytest.raises(SqlSyntaxError, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES (a, b = 1)", r"Values must be specified for key\(s\): \[a\]"),
        ("ALTER TABLE delta.`/p` UNSET TBLPROPERTIES (a = 1)", r"Values should not be specified for key\(s\): \[a\]"),
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES (a = 1, 'a' = 2)", "duplicate keys 'a'"),
        ("ALTER TABLE delta.`/p` SET TBLPROPERTIES (a = b + 1)", "must be a string"),
        ("UPDATE delta.`/p` SET a = 1, a = 2", "sets column a twice"),
    ],
)
def test_properties_and_assignments_that_make_no_sense_are_refused(text, message):
    with pytest.raises(InvalidRequest, match=message):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM delta.`/p` WHERE a IN (SELECT a FROM delta.`/q`)",
        "UPDATE delta.`/p` SET a = 1 WHERE exists(SELECT 1 FROM delta.`/q`)",
    ],
)
def test_a_subquery_over_a_table_in_a_condition_is_refused_by_name(text):
    with pytest.raises(Unsupported, match="subquery"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "values", "bound"),
    [
        ("a = :x AND b = ':x' AND c::int = :y", {"x": "1", "y": "'it''s :x ?'"}, "a = 1 AND b = ':x' AND c::int = 'it''s :x ?'"),
        ("a = ? -- ?\nAND `?` = ?", ["1", "CAST('2' AS DATE)"], "a = 1 -- ?\nAND `?` = CAST('2' AS DATE)"),
        ("a = 1", {"unused": "2"}, "a = 1"),
    ],
)
def test_parameters_are_replaced_where_they_are_parameters(text, values, bound):
    assert with_values(text, values) == bound


@pytest.mark.parametrize(
    ("text", "values"), [("a = :x", {"y": "1"}), ("a = ? OR a = ?", ["1"]), ("a = ?", {"x": "1"}), ("a = :x", ["1"])]
)
def test_a_parameter_without_a_value_is_told(text, values):
    with pytest.raises(InvalidRequest, match="unbound parameter"):
        with_values(text, values)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        ("'it''s \"\"'", 'it\'s ""'),
        ('"it\'s ""x"""', 'it\'s "x"'),
        (r"'\'\"\\\t\0\x'", "'\"\\\t\0x"),
        (r"'\u00e4\U0001F600\101'", "ä😀A"),
        (r"'100\% a\_b'", r"100\% a\_b"),
        (r"r'\n'", r"\n"),
        ('R"a\'b"', "a'b"),
        ("$$it's$$", "it's"),
        ("$tag$a$b$tag$", "a$b"),
    ],
)
def test_strings_mean_what_they_mean_to_spark(literal, value):
    assert string_value(literal) == value


def test_the_quick_look_lets_every_statement_of_delta_through():
    for text in (
        "desc history '/p'",
        "DESCRIBE\nDETAIL /* x */ '/p'",
        "vacuum\t'/p'",
        "-- x\n/* y */ OPTIMIZE -- x\n'/p'",
        "select * from DELTA.`/p`",
    ):
        assert may_be_delta(text)
    for text in ("SELECT detail, history FROM t", "SELECT 'x' AS optimize", "INSERT INTO t VALUES ('a')", ""):
        assert not may_be_delta(text)
