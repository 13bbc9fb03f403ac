"""Our filters and Spark's, on the same rows: the same texts, the same answers, NULLs included."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import Column
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import DataType, StructField, StructType
from tests.unit.expr import sql_model

KINDS = sorted(sql_model.POOLS)
BATCH = 60

MIXED = [
    *(
        f"c_integer {op} {value}"
        for op in ("=", "<", ">=", "!=", "<=>")
        for value in ("0.5", "1.0", "3000000000", "'1'", "1D", "NULL")
    ),
    *(f"c_byte {op} {value}" for op in ("=", "<", ">", "<=>") for value in ("128", "-129", "127", "126.5", "1e2")),
    *(
        f"c_long {op} {value}"
        for op in ("=", "<", "<=", ">", ">=")
        for value in ("9007199254740992D", "-9007199254740992D", "1e18", "0.5")
    ),
    *(
        f"c_float {op} {value}"
        for op in ("=", "<", "<=", ">", ">=")
        for value in ("0.1", "0.1D", "1.5", "1e300", "CAST(0.1 AS FLOAT)", "1")
    ),
    *(f"c_double {op} {value}" for op in ("=", "<", ">=") for value in ("0.1", "0", "CAST('NaN' AS DOUBLE)", "'0.1'", "1.5BD")),
    *(
        f"c_decimal {op} {value}"
        for op in ("=", "<", ">=", "<=>")
        for value in ("1.1", "1.101", "1.1D", "100000", "'1.1'", "-0.01")
    ),
    *(
        f"c_date {op} {value}"
        for op in ("=", "<", ">=")
        for value in ("'1970-01-01'", "'2024-2-29'", "TIMESTAMP '1970-01-01 12:00:00'")
    ),
    *(f"c_date {op} TIMESTAMP_NTZ '1970-01-01 00:00:00'" for op in ("=", "<=", ">")),
    *(
        f"c_timestamp {op} {value}"
        for op in ("=", "<", ">=")
        for value in ("'1970-01-01'", "DATE '1970-01-01'", "'1970-01-01T01:00:00+01:00'")
    ),
    *(
        f"c_timestamp_ntz {op} {value}"
        for op in ("=", ">=")
        for value in ("DATE '1970-01-01'", "TIMESTAMP '1970-01-01 00:00:00.001'")
    ),
    "c_string LIKE 'a%'",
    "c_string NOT LIKE 'a%'",
    "startswith(c_string, '')",
    "c_string IN ('a', NULL)",
    "c_string NOT IN ('a', NULL)",
    r"c_string = 'z\nq\'\"\\'",
    "c_string < 'b'",
    "c_binary = 'a'",
    "c_binary >= X'61'",
    "c_boolean",
    "NOT c_boolean",
    "c_boolean IS NOT TRUE",
    "c_boolean = 'yes'",
    "c_integer IN (1, 2.5, NULL)",
    "c_integer BETWEEN -1 AND 1.5",
    "c_integer IS DISTINCT FROM 1",
    "c_integer IS NOT DISTINCT FROM NULL",
    "s.inner = 1 OR s.inner IS NULL",
]


@pytest.fixture(scope="module")
def plain_spark() -> Iterator[SparkSession]:
    """A session in UTC; the one that is running, where there is one."""
    running = SparkSession.getActiveSession()
    session = running or SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    before = session.conf.get("spark.sql.session.timeZone")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    yield session
    session.conf.set("spark.sql.session.timeZone", str(before))
    if running is None:
        session.stop()


def schema() -> StructType:
    inner: DataType = StructType((StructField("inner", sql_model.POOLS["integer"][0]),))
    return StructType((*(StructField(f"c_{kind}", sql_model.POOLS[kind][0]) for kind in KINDS), StructField("s", inner)))


def rows() -> list[dict[str, Any]]:
    """Every value of every pool, NULL among them."""
    longest = max(len(pool) for _, pool in sql_model.POOLS.values())
    actual = []
    for i in range(longest + 1):
        row: dict[str, Any] = {}
        for kind in KINDS:
            pool = [*sql_model.POOLS[kind][1], None]
            row[f"c_{kind}"] = pool[i % len(pool)]
        actual.append({**row, "s": None if i % 4 == 3 else {"inner": [1, 2, None][i % 4]}})
    return actual


def answers_of_spark(session: SparkSession, table: pa.Table, texts: list[str]) -> list[list[bool | None]]:
    frame = session.createDataFrame(table)
    actual: list[list[bool | None]] = []
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        collected = frame.selectExpr(*(f"({text}) AS e{i}" for i, text in enumerate(batch))).toArrow()
        actual += [column.to_pylist() for column in collected.columns]
    return actual


def assert_same_answers(session: SparkSession, texts: list[str]) -> None:
    table = pa.Table.from_pylist(rows(), to_arrow_schema(schema()))
    differing = []
    for text, theirs in zip(texts, answers_of_spark(session, table, texts), strict=True):
        ours = evaluate(row_condition(text, schema()).exact, table).to_pylist()
        differing += [] if ours == theirs else [(text, ours, theirs)]
    assert not differing


def test_literals_of_other_types_meet_columns_as_on_spark(plain_spark: SparkSession) -> None:
    assert_same_answers(plain_spark, MIXED)


def test_our_sql_has_the_same_meaning_for_spark(plain_spark: SparkSession) -> None:
    chance = random.Random(1)
    columns = [(Column((f"c_{kind}",)), kind) for kind in KINDS] + [(Column(("s", "inner")), "integer")]
    assert_same_answers(plain_spark, [str(sql_model.random_predicate(chance, columns)) for _ in range(240)])
