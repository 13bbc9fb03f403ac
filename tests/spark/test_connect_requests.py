"""The requests of each operation to a server of Spark Connect (docs/guide/connect.md): each takes a round to a distant server."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.client import SparkConnectClient

from tests.spark.connect_server import remote

PAGE = Path(__file__).parents[2] / "docs/guide/connect.md"
MERGE = (
    "MERGE INTO counted USING (SELECT 2 AS id, 'z' AS name) s ON counted.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def appended(spark: Any, path: str) -> None:
    rows = spark.range(1).selectExpr("CAST(id AS INT) AS id", "'x' AS name")
    rows.write.format("delta").mode("append").save(path)


OPERATIONS: dict[str, Callable[[Any, str], object]] = {
    "SELECT": lambda spark, _: spark.sql("SELECT * FROM counted").collect(),
    '`spark.table("t").count()`': lambda spark, _: spark.table("counted").count(),
    '`spark.read.format("delta").load(path).count()`': lambda spark, path: spark.read.format("delta").load(path).count(),
    '`df.write.format("delta").mode("append").save(path)`': appended,
    "INSERT … VALUES": lambda spark, _: spark.sql("INSERT INTO counted VALUES (3, 'c')"),
    "DELETE": lambda spark, _: spark.sql("DELETE FROM counted WHERE id = 3"),
    "UPDATE": lambda spark, _: spark.sql("UPDATE counted SET name = 'q' WHERE id = 2"),
    "MERGE": lambda spark, _: spark.sql(MERGE),
    "SELECT from a temporary view": lambda spark, _: spark.sql("SELECT * FROM counted_view").collect(),
    "a query without Delta tables": lambda spark, _: spark.sql("SELECT 1").collect(),
}


def test_operations_take_as_many_requests_as_the_guide_says(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = {name: int(most) for name, most in re.findall(r"^\| (.+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)}
    assert stated.keys() == OPERATIONS.keys()
    path, requests = str(tmp_path / "counted"), list[str]()
    for name in ("config", "_analyze", "_execute_and_fetch_as_iterator"):
        monkeypatch.setattr(SparkConnectClient, name, counted(getattr(SparkConnectClient, name), name, requests))
    with remote():
        connect.sql(f"CREATE TABLE counted (id INT, name STRING) USING delta LOCATION '{path}'")
        connect.sql("INSERT INTO counted VALUES (1, 'a'), (2, 'b')")
        connect.table("counted").createOrReplaceTempView("counted_view")
        actual = {}
        for name, operation in OPERATIONS.items():
            requests.clear()
            operation(connect, path)
            actual[name] = len(requests)
        connect.sql("DROP VIEW counted_view")
        connect.sql("DROP TABLE counted")
    assert {name: count for name, count in actual.items() if count > stated[name]} == {}, f"{actual}"


def counted(original: Callable[..., Any], name: str, requests: list[str]) -> Callable[..., Any]:
    def method(client: Any, *positional: Any, **named: Any) -> Any:
        requests.append(name)
        return original(client, *positional, **named)

    return method
