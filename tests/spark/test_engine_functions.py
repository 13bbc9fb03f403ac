"""Stored expressions that Spark evaluates and Tahoe's own evaluator does not: constraints, generated columns and defaults."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation, TahoeError, Unsupported
from tahoe.protocol.features import ENFORCED
from tahoe.spark.jvm.bridge import is_classic
from tahoe.tables import DeltaTable
from tahoe.txn.transaction import Operation
from tests.sampling import SAMPLE_OR_ALL

# The generated column's type and expression over s STRING, n BIGINT, t TIMESTAMP, m MAP<STRING, INT>.
GENERATED = {
    "sha2": ("STRING", "sha2(s, 256)"),
    "xxhash64": ("BIGINT", "xxhash64(s, n)"),
    "hash": ("INT", "hash(n)"),
    "regexp_extract": ("STRING", "regexp_extract(s, '(a+)(b*)', 1)"),
    "split": ("STRING", "split(s, ',')[0]"),
    "get_json_object": ("STRING", "get_json_object(s, '$.x')"),
    "from_json": ("INT", "from_json(s, 'x INT').x"),
    "parse_url": ("STRING", "parse_url(concat('http://h/', n), 'HOST')"),
    "unix_timestamp": ("BIGINT", "unix_timestamp(t)"),
    "initcap": ("STRING", "initcap(s)"),
    "substring_index": ("STRING", "substring_index(s, ',', 1)"),
    "array_max": ("BIGINT", "array_max(array(n, 5))"),
    "map_keys": ("ARRAY<STRING>", "map_keys(m)"),
    "soundex": ("STRING", "soundex(upper(s))"),
    "md5": ("STRING", "CASE WHEN n > 1 THEN md5(s) ELSE 'small' END"),
    "transform": ("ARRAY<BIGINT>", "transform(array(n, 2L), (x, i) -> x + n + i)"),
    "exists": ("BOOLEAN", "exists(map_keys(m), x -> x = 'k')"),
    "interval": ("TIMESTAMP", "t + INTERVAL 1 DAY"),
    "like_any": ("BOOLEAN", "s LIKE ANY ('a%', '%d')"),
    "date_part": ("INT", "date_part('YEAR', t) /* of 'the row */"),
    "struct": ("BIGINT", "hash(named_struct('s', s, 'm', map_values(m))) + 0L"),
    "double_quotes": ("STRING", 'initcap("n")'),
}
ROWS = "SELECT 'ab,c' AS s, 1L AS n, TIMESTAMP'2026-01-01 00:00:01' AS t, map('k', 1) AS m UNION ALL SELECT 'd', 2L, NULL, NULL"


def stored_by_another_writer(table: Table, column: int, expression: str) -> None:
    transaction = table.begin()
    transaction.enforces = ENFORCED
    metadata = transaction.existing().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"][column]["metadata"] = {"delta.generationExpression": expression}
    transaction.set_metadata(replace(metadata, schema_string=json.dumps(schema)))
    table.commit(transaction, Operation("REPLACE COLUMNS"))


@pytest.mark.parametrize("step", SAMPLE_OR_ALL)
def test_spark_computes_and_checks_generated_columns(spark, path, step) -> None:
    # With "sha2" and "regexp_extract", of which more is expected below.
    generated = {name: GENERATED[name] for name in dict.fromkeys([*list(GENERATED)[::step], "sha2", "regexp_extract"])}
    columns = ", ".join(f"g_{name} {data_type} GENERATED ALWAYS AS ({text})" for name, (data_type, text) in generated.items())
    spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, n BIGINT, t TIMESTAMP, m MAP<STRING, INT>, {columns}) USING delta")
    spark.sql(ROWS).write.format("delta").mode("append").save(path)
    spark.sql(f"UPDATE delta.`{path}` SET s = 'aaab', n = 7 WHERE n = 2")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 9L AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (s, n) VALUES ('e,f', s.n)"
    )
    wrong = " OR ".join(f"NOT (g_{name} <=> ({text}))" for name, (_, text) in generated.items())
    rows = spark.read.format("delta").load(path)
    assert (rows.count(), rows.where(wrong).count()) == (3, 0)
    assert rows.where("n = 7").select("g_regexp_extract").first()[0] == "aaa"
    with pytest.raises(InvariantViolation, match="g_sha2"):
        spark.sql("SELECT 'x' AS s, 'not the hash' AS g_sha2").write.format("delta").mode("append").save(path)


def test_spark_checks_constraints_over_new_and_existing_rows(spark, path) -> None:
    spark.sql(ROWS).write.format("delta").save(path)
    with pytest.raises(InvariantViolation, match="1 row of table"):
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT comma CHECK (size(split(s, ',')) = 2)")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (levenshtein(s, 'd') < 5)")
    with pytest.raises(InvariantViolation, match="short"):
        spark.sql(f"INSERT INTO delta.`{path}` (s, n) VALUES ('far too long', 3)")
    spark.sql(f"INSERT INTO delta.`{path}` (s, n) VALUES ('dd', 3)")
    assert DeltaTable.forPath(spark, path).toDF().count() == 3


@pytest.mark.parametrize(
    ("column", "code"),
    [
        ("g INT GENERATED ALWAYS AS (sha2(s, 256))", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g BIGINT GENERATED ALWAYS AS (crc32(s) % 2 = 0)", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g BIGINT GENERATED ALWAYS AS (levenshtein(s, s))", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("g STRING GENERATED ALWAYS AS (sha2(s, s, s))", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("g STRING GENERATED ALWAYS AS (reflect('java.lang.System', 'getenv'))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (`java_method`('x.Y', 'z'))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (try_reflect('x.Y', 'z'))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (xpath_string(s, 'a'))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (current_user)", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g BIGINT GENERATED ALWAYS AS (unix_timestamp())", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (any_value(s))", "DELTA_AGGREGATE_IN_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (explode(array(s)))", "DELTA_UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (uuid())", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS ((SELECT 'x'))", "UNSUPPORTED_EXPRESSION_GENERATED_COLUMN"),
        ("g STRING GENERATED ALWAYS AS (initcap(other))", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ],
)
def test_an_expression_that_does_not_fit_is_refused_when_the_table_is_created(spark, path, column: str, code: str) -> None:
    with pytest.raises(TahoeError) as raised:
        spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, {column}) USING delta")
    assert raised.value.code == code
    assert not Table(path).exists()


def test_a_condition_that_is_not_boolean_is_refused(spark, path) -> None:
    spark.sql(ROWS).write.format("delta").save(path)
    with pytest.raises(InvalidRequest) as raised:
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (crc32(s))")
    assert raised.value.code == "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"
    assert Table(path).version() == 0


def test_conditions_that_are_no_function_of_the_row_are_refused_but_for_the_time(spark, path) -> None:
    spark.sql(ROWS).write.format("delta").save(path)
    for condition, code in (
        ("n < rand()", "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_CHECK_CONSTRAINT"),
        ("n IN (SELECT 1)", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("reflect('x.Y', 'z') = 'a'", "DELTA_UNSUPPORTED_EXPRESSION_CHECK_CONSTRAINT"),
        ("default.initcap(s) = 'A'", "DELTA_UDF_IN_CHECK_CONSTRAINT"),
        ("`no such`(s) = 'A'", "UNRESOLVED_ROUTINE"),
    ):
        with pytest.raises(TahoeError) as raised:
            spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK ({condition})")
        assert raised.value.code == code, condition
    assert Table(path).version() == 0
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT past CHECK (t IS NULL OR t - INTERVAL 1 DAY < current_timestamp())")
    with pytest.raises(InvariantViolation, match="past"):
        spark.sql(f"INSERT INTO delta.`{path}` (t) VALUES (TIMESTAMP'9000-01-01 00:00:00')")


def test_a_variable_of_the_session_is_no_column(spark, path) -> None:
    spark.sql("DECLARE OR REPLACE VARIABLE mine STRING DEFAULT 'x'")
    with pytest.raises(TahoeError):
        spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, g STRING GENERATED ALWAYS AS (initcap(mine))) USING delta")
    spark.sql("DROP TEMPORARY VARIABLE mine")


def test_spark_evaluates_defaults(either_session, path) -> None:
    spark = either_session
    enabled = "TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (n INT, h STRING DEFAULT sha2('a', 256), d DATE DEFAULT current_date() - INTERVAL 1 DAY, "
        f"u STRING DEFAULT current_user(), m MAP<STRING, INT> DEFAULT map('a', 1)) USING delta {enabled}"
    )
    spark.sql(f"INSERT INTO delta.`{path}` (n) VALUES (1)")
    spark.range(2, 3).selectExpr("CAST(id AS INT) n").write.format("delta").mode("append").save(path)
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (3, 'own', NULL, 'me', NULL)")
    spark.sql(f"UPDATE delta.`{path}` SET h = DEFAULT, d = DEFAULT, u = DEFAULT, m = DEFAULT WHERE n = 3")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 4 AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (n, h, u) "
        "VALUES (s.n, DEFAULT, DEFAULT)"
    )
    wrong = "NOT (h <=> sha2('a', 256) AND d >= current_date() - 2 AND u <=> current_user() AND m['a'] <=> 1)"
    rows = spark.read.format("delta").load(path)
    assert (rows.count(), rows.where(wrong).count()) == (4, 0)
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN h SET DEFAULT initcap('abc')")
    for default, code in (
        ("uuid()", "NON_DETERMINISTIC"),
        ("(SELECT 'x')", "SUBQUERY_EXPRESSION"),
        ("reflect('x.Y', 'z')", "NOT_CONSTANT"),
        ("initcap(other)", "UNRESOLVED_EXPRESSION"),
        ("hex(n)", "UNRESOLVED_EXPRESSION"),
        ("hex(id)", "UNRESOLVED_EXPRESSION"),
        ("map_keys(map('a', 1))", "DATA_TYPE"),
    ):
        with pytest.raises(TahoeError) as raised:
            spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN h SET DEFAULT {default}")
        # A client has no Catalyst, which tells why a function cannot be used.
        codes = {code} if is_classic(spark) else {code, "NOT_CONSTANT"}
        assert raised.value.code in {f"INVALID_DEFAULT_VALUE.{each}" for each in codes}, default
    spark.sql(f"INSERT INTO delta.`{path}` (n) VALUES (5)")
    assert spark.read.format("delta").load(path).where("n = 5").first()["h"] == "Abc"
    with pytest.raises(Unsupported, match="Only Spark"):
        Table(path).append(pa.table({"n": pa.array([6], pa.int32())}))
    Table(path).delete("n = 5")


def test_defaults_are_filled_in_before_other_rules_read_them(either_session, path) -> None:
    spark, enabled = either_session, "TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')"
    spark.sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT GENERATED ALWAYS AS IDENTITY, n INT DEFAULT 7, u STRING DEFAULT current_user(), "
        "g STRING GENERATED ALWAYS AS (md5(u)), c CHAR(4) DEFAULT initcap('ab'), p STRING DEFAULT concat_ws('-', 'a', 'b')) "
        f"USING delta PARTITIONED BY (p) {enabled}"
    )
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT known CHECK (soundex(u) <> '' AND n > 0)")
    spark.sql(f"INSERT INTO delta.`{path}` (n) VALUES (DEFAULT), (2)")
    replaced = spark.range(1).selectExpr("'x' AS u").write.format("delta").mode("overwrite")
    replaced.option("replaceWhere", "n = 7 AND p = 'a-b'").save(path)
    wrong = "NOT (g <=> md5(u) AND c <=> 'Ab  ' AND p <=> 'a-b')"
    rows = spark.read.format("delta").load(path)
    assert [row[0] for row in rows.select("n").orderBy("n").collect()] == [2, 7]
    assert (rows.where(wrong).count(), rows.select("id").distinct().count()) == (0, 2)
    with pytest.raises(InvariantViolation, match="known"):
        spark.sql(f"INSERT INTO delta.`{path}` (n) VALUES (-1)")
    assert Table(path).check(deep=True) == []


def test_other_settings_of_the_session_do_not_change_the_meaning_of_a_text(spark, path) -> None:
    hostile = """concat('\\' || reflect("x.Y", "z") || \\'', initcap(s))"""
    spark.sql("SELECT 'x' AS s, '1' AS h").write.format("delta").save(path)
    stored_by_another_writer(Table(path), 1, hostile)
    for setting in ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers"):
        spark.conf.set(setting, "true")
    try:
        spark.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
    finally:
        for setting in ("spark.sql.parser.escapedStringLiterals", "spark.sql.ansi.doubleQuotedIdentifiers"):
            spark.conf.unset(setting)
    values = {row[0] for row in spark.read.format("delta").load(path).select("h").collect()}
    assert values == {"1", """' || reflect("x.Y", "z") || 'Abc"""}


def test_a_function_of_the_session_never_replaces_the_built_in_one(spark, path) -> None:
    spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, g STRING GENERATED ALWAYS AS (soundex(s))) USING delta")
    session = tahoe.enable(spark.newSession())
    session.udf.register("soundex", lambda text: "mine")
    if session.sql("SELECT soundex('abc')").first()[0] == "mine":  # up to PySpark 4.2
        with pytest.raises(Unsupported, match="built-in function"):
            session.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
        assert Table(path).version() == 0
    else:
        session.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
        assert Table(path).to_arrow()["g"].to_pylist() == ["A120"]


def test_a_table_of_another_writer_with_such_a_column_is_written(spark, path) -> None:
    spark.sql("SELECT 'x' AS s, '1' AS h").write.format("delta").save(path)
    table = Table(path)
    stored_by_another_writer(table, 1, "reverse(initcap(s))")
    spark.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
    assert sorted(table.to_arrow()["h"].to_pylist()) == ["1", "cbA"]
    stored_by_another_writer(table, 1, "initcap('${spark.app.name}')")
    with pytest.raises(Unsupported, match="variable"):
        spark.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
