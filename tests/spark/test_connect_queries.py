"""The queries of TPC-H and TPC-DS over Spark Connect: the rows of Parquet files, though only the columns that they name are read."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.connect_server import remote, server_session
from tests.tpc import generate, queries, tables

SCALE = 0.01
LEAST = {"tpch": 22, "tpcds": 90}
"""The number of queries that Spark can parse and resolve."""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory, java_options: str) -> Iterator[Any]:
    """A session of a server without Tahoe."""
    with server_session(tmp_path_factory.mktemp("server"), java_options, "3g") as session:
        yield session


@pytest.mark.parametrize("name", LEAST)
def test_queries_give_the_rows_of_parquet(connect: Any, tmp_path: Path, name: str) -> None:
    database = generate(name, SCALE)
    with remote():
        for kind in ("delta", "parquet"):
            connect.sql(f"CREATE DATABASE {name}_{kind}")
        for table, path in tables(database, tmp_path).items():
            connect.sql(f"CREATE TABLE {name}_parquet.{table} USING parquet LOCATION '{path}'")
            connect.sql(f"CREATE TABLE {name}_delta.{table} USING delta AS SELECT * FROM parquet.`{path}`")
        compared = 0
        for number, text in queries(database, name).items():
            try:
                expected = answer(connect, f"{name}_parquet", text)
            except PySparkException:  # a function or a name that Spark lacks
                continue
            assert answer(connect, f"{name}_delta", text) == expected, number
            compared += 1
    assert compared >= LEAST[name]


def answer(spark: Any, database: str, text: str) -> list[str]:
    """Return the rows in any order; averages of doubles depend on the order of the rows in their last digits."""
    spark.sql(f"USE {database}")
    rows = spark.sql(text.rstrip(";\n ")).collect()
    return sorted(str([round(item, 4) if isinstance(item, float | Decimal) else item for item in row]) for row in rows)
