"""TPC-H's 22 queries over named tables: the same rows as over Parquet. `benchmarks/spark_tpch.py` measures their time."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.tpc import generate, queries, tables

SCALE = 0.01
SAMPLE, THEIR_TABLES = (1, 3, 13), ("customer", "lineitem", "orders")
SAMPLES = [SAMPLE, pytest.param(tuple(range(1, 23)), marks=pytest.mark.soak)]


@pytest.fixture(params=SAMPLES, ids=["sample", "all"])
def loaded(request, spark, tmp_path):
    """Queries by number; database ``tpch`` has Delta tables, ``tpch_parquet`` views of Parquet files."""
    database = generate("tpch", SCALE)
    for name in ("tpch", "tpch_parquet"):
        spark.sql(f"CREATE DATABASE {name}")
    for name, path in tables(database, tmp_path).items():
        if request.param == SAMPLE and name not in THEIR_TABLES:
            continue
        spark.sql(f"CREATE VIEW tpch_parquet.{name} AS SELECT * FROM parquet.`{path}`")
        spark.sql(f"CREATE TABLE tpch.{name} USING delta AS SELECT * FROM parquet.`{path}`")
    yield {number: text for number, text in queries(database, "tpch").items() if number in request.param}
    spark.sql("USE default")
    for name in ("tpch", "tpch_parquet"):
        spark.sql(f"DROP DATABASE {name} CASCADE")


def test_queries_give_the_rows_of_parquet(spark, loaded):
    for number, text in loaded.items():
        answers = []
        for database in ("tpch", "tpch_parquet"):
            spark.sql(f"USE {database}")
            answers.append([tuple(row) for row in spark.sql(text.rstrip(";\n ")).collect()])
        mine, theirs = answers
        assert [_rounded(row) for row in mine] == [_rounded(row) for row in theirs], number
        assert mine or number in _EMPTY_WHEN_SMALL, number


_EMPTY_WHEN_SMALL = (2, 8, 18, 20)


def _rounded(row: tuple[object, ...]) -> tuple[object, ...]:
    """Averages of doubles depend on the order of the rows in their last digits."""
    return tuple(round(item, 6) if isinstance(item, float | Decimal) else item for item in row)
