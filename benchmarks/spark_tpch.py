"""TPC-H's 22 queries over named tables: seconds and rows, of Tahoe's tables beside views of the same rows in Parquet files, in one session.

Both have one file a table. Each query runs with each by turns; the answers of both are compared, and a difference ends the run.

Goal: all queries together at most 1.10 times Parquet's time.

    python benchmarks/spark_tpch.py [--scale 0.1] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

from benchmarks._spark import by_turns, session
from tests.tpc import generate, tables, tpch_queries

WAYS = ("tahoe", "parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), arguments.scale, arguments.rounds)
    if arguments.json:
        print(json.dumps(figures))
        return
    grid = Grid("query", "Tahoe, s", "Parquet, s", "ratio", title=f"TPC-H at scale {arguments.scale}")
    for name, (mine, theirs) in figures.items():
        grid.add_row(name, f"{mine:.2f}", f"{theirs:.2f}", f"{mine / theirs:.2f}")
    Console(width=80).print(grid)


def measure(folder: Path, scale: float, rounds: int) -> dict[str, tuple[float, float]]:
    """Query → median seconds of both ways; ``all`` is the sum."""
    spark = session()
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    database = generate("tpch", scale)
    for way in WAYS:
        spark.sql(f"CREATE DATABASE {way} LOCATION '{folder}/{way}'")
    for name, path in tables(database, folder).items():
        spark.sql(f"CREATE TABLE tahoe.{name} USING delta AS SELECT * FROM parquet.`{path}`")
        spark.sql(f"CREATE TABLE parquet.{name} USING parquet AS SELECT * FROM parquet.`{path}`")
    figures = {}
    for number, text in tpch_queries(database).items():
        query = text.rstrip(";\n ")
        if answer(spark, "tahoe", query) != answer(spark, "parquet", query):
            raise SystemExit(f"query {number}: the answers differ")
        taken = by_turns({way: lambda way=way, query=query: answer(spark, way, query) for way in WAYS}, rounds)
        figures[f"Q{number}"] = tuple(statistics.median(taken[way]) for way in WAYS)
    figures["all"] = tuple(sum(one[place] for one in figures.values()) for place in range(2))
    spark.stop()
    return figures


def answer(spark: SparkSession, database: str, query: str) -> list[tuple[object, ...]]:
    """The rows; the last digits of averages of doubles depend on the order of rows."""
    spark.sql(f"USE {database}")
    rows = spark.sql(query).collect()
    return [tuple(round(one, 4) if isinstance(one, float | Decimal) else one for one in row) for row in rows]


if __name__ == "__main__":
    main()
