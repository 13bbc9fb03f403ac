"""CHECK constraints and generated columns with functions that Spark evaluates and Tahoe's own evaluator does not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import tahoe
from tahoe.exceptions import InvalidRequest, InvariantViolation, TahoeError, Unsupported
from tahoe.protocol.enforced import ENFORCED
from tahoe.table import Table
from tahoe.tables import DeltaTable
from tahoe.txn.transaction import Operation

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
}
ROWS = "SELECT 'ab,c' AS s, 1L AS n, TIMESTAMP'2026-01-01 00:00:01' AS t, map('k', 1) AS m UNION ALL SELECT 'd', 2L, NULL, NULL"


def test_spark_computes_and_checks_generated_columns(spark, path) -> None:
    columns = ", ".join(f"g_{name} {data_type} GENERATED ALWAYS AS ({text})" for name, (data_type, text) in GENERATED.items())
    spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, n BIGINT, t TIMESTAMP, m MAP<STRING, INT>, {columns}) USING delta")
    spark.sql(ROWS).write.format("delta").mode("append").save(path)
    spark.sql(f"UPDATE delta.`{path}` SET s = 'aaab', n = 7 WHERE n = 2")
    spark.sql(
        f"MERGE INTO delta.`{path}` t USING (SELECT 9L AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (s, n) VALUES ('e,f', s.n)"
    )
    wrong = " OR ".join(f"NOT (g_{name} <=> {text})" for name, (_, text) in GENERATED.items())
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
        ("g INT GENERATED ALWAYS AS (sha2(s, 256))", "DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH"),
        ("g STRING GENERATED ALWAYS AS (sha2(s, s, s))", "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
        ("g STRING GENERATED ALWAYS AS (reflect('java.lang.System', 'getenv'))", "TAHOE_EXPRESSION_NOT_ALLOWED"),
        ("g BIGINT GENERATED ALWAYS AS (unix_timestamp())", "TAHOE_EXPRESSION_NOT_ALLOWED"),
    ],
)
def test_an_expression_that_does_not_fit_is_refused_when_the_table_is_created(spark, path, column: str, code: str) -> None:
    with pytest.raises(TahoeError) as raised:
        spark.sql(f"CREATE TABLE delta.`{path}` (s STRING, {column}) USING delta")
    assert raised.value.code == code
    assert not Table(path).exists()


def test_a_condition_that_is_not_boolean_is_refused(spark, path) -> None:
    spark.sql(ROWS).write.format("delta").save(path)
    with pytest.raises(InvalidRequest, match="must be boolean"):
        spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT c CHECK (crc32(s))")
    assert Table(path).version() == 0


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
    transaction = table.begin()
    transaction.enforces = ENFORCED
    metadata = transaction.existing().metadata
    schema = json.loads(metadata.schema_string)
    schema["fields"][1]["metadata"] = {"delta.generationExpression": "reverse(initcap(s))"}
    transaction.set_metadata(replace(metadata, schema_string=json.dumps(schema)))
    table.commit(transaction, Operation("REPLACE COLUMNS"))
    spark.sql("SELECT 'abc' AS s").write.format("delta").mode("append").save(path)
    assert sorted(table.to_arrow()["h"].to_pylist()) == ["1", "cbA"]
