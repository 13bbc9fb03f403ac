"""Parsing of the statements that only Delta has."""

from __future__ import annotations

import pytest

from tahoe.expr.parse.lexer import string_value
from tahoe.spark.statements.delta_alter_table import AddConstraint, DropConstraint, DropFeature, SyncIdentity
from tahoe.spark.statements.delta_copies import Clone, Convert, CopyInto, Restore
from tahoe.spark.statements.delta_maintenance import (
    ComputeStatistics,
    Fsck,
    Generate,
    Optimize,
    Purge,
    SyncMetadata,
    UpgradeUniform,
    Vacuum,
)
from tahoe.spark.statements.describe import DescribeDetail, DescribeHistory
from tahoe.spark.statements.registry import STATEMENTS_OF_DELTA, parse
from tahoe.sql.dialect import SqlSyntaxError
from tahoe.sql.table_name import TableName

P, T = TableName("/p"), TableName(None, ("db", "t"))


CASES = [
    (
        "ALTER TABLE delta.`/p` ADD CONSTRAINT pos CHECK (a > 0 AND b IN (1, 2))",
        AddConstraint(P, "pos", "a > 0 AND b IN (1, 2)"),
    ),
    ("ALTER TABLE db.t DROP CONSTRAINT IF EXISTS `my one`", DropConstraint(T, "my one", True)),
    ("ALTER TABLE db.t ALTER COLUMN id SYNC IDENTITY", SyncIdentity(T, ("id",))),
    ("alter table delta.`/p` change s.`my id` sync identity;", SyncIdentity(P, ("s", "my id"))),
    ("DESCRIBE DETAIL delta.`/p`", DescribeDetail(P)),
    ("DESCRIBE DETAIL db.t", DescribeDetail(T)),
    ("desc detail '/p'", DescribeDetail(P, is_text=True)),
    ("DESCRIBE HISTORY delta.`/p` LIMIT 3", DescribeHistory(P, 3)),
    ('DESC HISTORY "/p"', DescribeHistory(P, None)),
    ("MSCK REPAIR TABLE delta.`/p` SYNC METADATA", SyncMetadata(P)),
    ("REORG TABLE db.t APPLY (PURGE)", Purge(T, None)),
    ("REORG TABLE delta.`/p` WHERE d = ')' AND (x > 1) APPLY (PURGE)", Purge(P, "d = ')' AND (x > 1)")),
    ("REORG TABLE delta.`/p` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", UpgradeUniform(P, 2)),
    ("reorg table delta.`/p` apply(upgrade uniform(iceberg_compat_version=3))", UpgradeUniform(P, 3)),
    ("-- first\n/* delta.`/x` /* nested */ */ DESCRIBE /* why */ DETAIL delta . `/p`", DescribeDetail(P)),
    ("DESCRIBE DETAIL DELTA.`/a``b`", DescribeDetail(TableName("/a`b"))),
    ("DESCRIBE DETAIL `delta`.`/p`", DescribeDetail(P)),
    ("DESCRIBE DETAIL IDENTIFIER('delta.`/p`')", DescribeDetail(P)),
    ("DESCRIBE DETAIL spark_catalog.delta.`/p`", DescribeDetail(P)),
    ("OPTIMIZE delta.`/p` ZORDER BY (a)", Optimize(P, None, ("a",), False)),
    ("OPTIMIZE '/p'", Optimize(P, None, (), False)),
    (
        "optimize db.t where d = 'x;' and (e = 1) zorder by a, b.`c d`;",
        Optimize(T, "d = 'x;' and (e = 1)", ("a", "b.`c d`"), False),
    ),
    ("OPTIMIZE db.t FULL", Optimize(T, None, (), True)),
    ("VACUUM db.t", Vacuum(T)),
    ("VACUUM db.t RETAIN 0 HOURS", Vacuum(T, retain_hours=0.0)),
    ("VACUUM db.t DRY RUN RETAIN 1.5 HOURS FULL;", Vacuum(T, False, None, 1.5, True)),
    ("vacuum '/p' dry run", Vacuum(P, dry_run=True)),
    ("VACUUM delta.`/p` LITE RETAIN -1 HOURS", Vacuum(P, True, retain_hours=-1.0)),
    ("VACUUM db.t USING INVENTORY a.`b c` DRY RUN", Vacuum(T, None, "SELECT * FROM a.`b c`", None, True)),
    ("VACUUM db.t USING INVENTORY (SELECT f(x) FROM y)", Vacuum(T, inventory="SELECT f(x) FROM y")),
    ("RESTORE TABLE delta.`/p` TO VERSION AS OF 1", Restore(P, 1, None)),
    ("RESTORE delta.`/p` VERSION AS OF '2'", Restore(P, 2, None)),
    ("restore '/p' to for system_version as of 3", Restore(P, 3, None)),
    ("RESTORE db.t TO TIMESTAMP AS OF '2026-01-02 03:04:05'", Restore(T, None, "2026-01-02 03:04:05")),
    ("CREATE TABLE IF NOT EXISTS db.t SHALLOW CLONE delta.`/p`", Clone(T, "createIfNotExists", P, True)),
    ("CREATE OR REPLACE TABLE db.t CLONE delta.`/p`", Clone(T, "createOrReplace", P, False)),
    ("REPLACE TABLE delta.`/p` DEEP CLONE db.t VERSION AS OF 3;", Clone(P, "replace", T, False, 3)),
    (
        "CREATE TABLE db.t SHALLOW CLONE parquet.`/p` TIMESTAMP AS OF '2026-01-02' TBLPROPERTIES ('a' = 'b', d.x '1') LOCATION '/q'",
        Clone(T, "create", TableName(None, ("parquet", "/p")), True, None, "2026-01-02", (("a", "b"), ("d.x", "1")), "/q"),
    ),
    ("CONVERT TO DELTA parquet.`/p`", Convert(TableName(None, ("parquet", "/p")), True, None)),
    ("ANALYZE TABLE db.t COMPUTE DELTA STATISTICS", ComputeStatistics(T)),
    ("FSCK REPAIR TABLE '/p' DRY RUN;", Fsck(P, True)),
    ("fsck repair table db.t", Fsck(T, False)),
    ("GENERATE symlink_format_manifest FOR TABLE delta.`/p`", Generate(P, "symlink_format_manifest")),
    ("convert to delta db.t no statistics;", Convert(T, False, None)),
    (
        "CONVERT TO DELTA db.t PARTITIONED BY (p DECIMAL(5, 2) COMMENT ')') NO STATISTICS",
        Convert(T, False, "p DECIMAL(5, 2) COMMENT ')'"),
    ),
    ("COPY INTO delta.`/p` FROM '/x'", CopyInto(P)),
    ("ALTER TABLE delta.`/p` DROP FEATURE deletionVectors", DropFeature(P, "deletionVectors", False)),
    (
        "alter table delta.`/p` drop feature 'typeWidening-preview' truncate history;",
        DropFeature(P, "typeWidening-preview", True),
    ),
]


@pytest.mark.parametrize(
    ("text", "statement"),
    CASES,
    ids=lambda value: value[:70] if isinstance(value, str) else "",
)
def test_a_statement_of_delta_is_understood(text, statement):
    assert parse(text) == statement


def test_every_statement_has_a_case():
    assert {type(statement) for _, statement in CASES} == set(STATEMENTS_OF_DELTA)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        "SELECT 1",
        'SELECT "ALTER TABLE delta.`/p` ADD CONSTRAINT a CHECK (x)"',
        "-- DESCRIBE DETAIL delta.`/p`\nSELECT 1",
        "/* VACUUM t */ SELECT 1",
        "ALTER TABLE delta.`/p` SET TBLPROPERTIES (a = 'b')",
        "ALTER TABLE t ADD CONSTRAINT key PRIMARY KEY (a)",
        "ALTER TABLE t ADD COLUMNS (a INT)",
        "DESCRIBE detail",
        "DESCRIBE EXTENDED delta.`/p`",
        "SHOW TBLPROPERTIES delta",
        "MSCK REPAIR TABLE delta",
        "UPDATE delta SET a = 1",
        "DELETE FROM delta WHERE a = 1",
        "CREATE TABLE t (a INT) USING parquet",
        "CREATE TABLE t (a INT) USING delta",
        "CREATE TEMP VIEW v AS SELECT 1",
        "CREATE TABLE clone AS SELECT 1",
        "INSERT INTO t VALUES ('delta.`/p`')",
    ],
)
def test_statements_that_spark_parses_are_left_to_it(text):
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("DESCRIBE HISTORY delta.`/p` LIMIT x", r"near 'x' \(line 1, pos 34\): expected a whole number"),
        ("DESCRIBE DETAIL delta.`/p` more", "expected the end of the statement"),
        ("REORG TABLE delta.`/p`\nAPPLY (UPGRADE UNIFORM (VERSION = 2))", r"near 'VERSION' \(line 2, pos 24\)"),
        ("REORG TABLE delta.`/p` WHERE a = 1 APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))", "expected PURGE"),
    ],
)
def test_statements_that_cannot_be_parsed_are_reported_with_their_position(text, message):
    with pytest.raises(SqlSyntaxError, match=message):
        parse(text)


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
def test_strings_have_the_meaning_of_spark(literal, value):
    assert string_value(literal) == value
