"""TPC-H's 22 queries over named tables: seconds and rows, of Tahoe's tables and of the same rows in Parquet tables, in one JVM.

Each table is one file. The variants alternate for each query; results are compared, and a difference ends the run. With ``--delta-spark``
delta-spark 4.0.1 also reads its own tables, in a session beside Tahoe's; that needs PySpark 4.0 and Maven Central (`make interop`'s
environment).

Goal: all queries together at most Parquet's time, and at most delta-spark's.

    python benchmarks/spark_tpch.py [--scale 0.1] [--rounds 3] [--delta-spark] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _ratios import record
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

from benchmarks._spark import beside_delta_spark, by_turns, session
from tests.tpc import generate, queries, tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delta-spark", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(sessions(arguments.delta_spark), Path(folder), arguments.scale, arguments.rounds)
    for way, taken in figures["all"].items():
        if way != "tahoe":
            record(f"all queries, {way}", figures["all"]["tahoe"] / taken)
    if arguments.json:
        print(json.dumps(figures))
        return
    ways = list(figures["all"])
    grid = Grid(
        "query",
        *(f"{way}, s" for way in ways),
        *(f"tahoe / {way}" for way in ways[1:]),
        title=f"TPC-H at scale {arguments.scale}",
    )
    for name, taken in figures.items():
        ratios = [f"{taken['tahoe'] / taken[way]:.2f}" for way in ways[1:]]
        grid.add_row(name, *(f"{taken[way]:.2f}" for way in ways), *ratios)
    Console(width=110).print(grid)


def sessions(delta_spark: bool) -> dict[str, SparkSession]:
    """Name of a way, which is its database's too → the session that goes it."""
    if not delta_spark:
        spark = session()
        return {"tahoe": spark, "parquet": spark}
    mine, theirs = beside_delta_spark()
    return {"tahoe": mine, "parquet": mine, "delta_spark": theirs}


def measure(ways: Mapping[str, SparkSession], folder: Path, scale: float, rounds: int) -> dict[str, dict[str, float]]:
    """Query → way → median seconds; ``all`` is the sum."""
    database = generate("tpch", scale)
    files = tables(database, folder)
    for way, spark in ways.items():
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.sql(f"CREATE DATABASE {way} LOCATION '{folder}/{way}'")
        for name, path in files.items():
            format = "parquet" if way == "parquet" else "delta"
            spark.sql(f"CREATE TABLE {way}.{name} USING {format} AS SELECT * FROM parquet.`{path}`")
    figures: dict[str, dict[str, float]] = {}
    for number, text in queries(database, "tpch").items():
        query = text.rstrip(";\n ")
        answers = [answer(spark, way, query) for way, spark in ways.items()]
        if any(other != answers[0] for other in answers):
            raise SystemExit(f"query {number}: the answers differ")
        runs = {way: partial(answer, spark, way, query) for way, spark in ways.items()}
        figures[f"Q{number}"] = {way: statistics.median(item) for way, item in by_turns(runs, rounds).items()}
    figures["all"] = {way: sum(item[way] for item in figures.values()) for way in ways}
    next(iter(ways.values())).stop()
    return figures


def answer(spark: SparkSession, database: str, query: str) -> list[tuple[object, ...]]:
    """The rows; the last digits of averages of doubles depend on the order of rows."""
    spark.sql(f"USE {database}")
    rows = spark.sql(query).collect()
    return [tuple(round(item, 4) if isinstance(item, float | Decimal) else item for item in row) for row in rows]


if __name__ == "__main__":
    main()
