"""The cost of table names: `SELECT 1` and the planning of a query of two tables, in a session with Delta enabled and in one of the same JVM
without; and the time of `tahoe.enable` in a new session, compared with the session's own first statement.

Goals: `SELECT 1` at most 2 ms slower; a query of two tables at most 20 ms more planning than of two Parquet tables; `enable` at most 2 s.

    python benchmarks/spark_names.py [--rounds 40] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable

from _ratios import record
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

import tahoe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(folder, arguments.rounds)
    for name, (mine, other, _) in figures.items():
        record(name, mine / other)
    if arguments.json:
        print(json.dumps(figures))
        return
    grid = Grid("what", "Tahoe, ms", "Parquet or plain, ms", "more, ms", "goal", title="names")
    for name, (mine, other, goal) in figures.items():
        grid.add_row(name, f"{mine:.1f}", f"{other:.1f}", f"{mine - other:.1f}", f"{goal:.0f}")
    Console(width=110).print(grid)


def measure(folder: str, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Name → milliseconds with Tahoe, without, and how many more are allowed."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    plain = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    started = time.perf_counter()
    plain.sql("SELECT 1").collect()
    first = (time.perf_counter() - started) * 1000
    spark = plain.newSession()
    started = time.perf_counter()
    tahoe.enable(spark)
    enabled = (time.perf_counter() - started) * 1000
    for name in ("a", "b"):
        rows = "SELECT id, id % 10 AS p, CAST(id AS string) AS s FROM range(1000)"
        plain.sql(f"CREATE TABLE {name}_parquet USING parquet LOCATION '{folder}/{name}-parquet' AS {rows}")
        spark.sql(f"CREATE TABLE {name}_delta USING delta LOCATION '{folder}/{name}' AS {rows}")
    query = "SELECT a.p, count(*) FROM a_{kind} a JOIN b_{kind} b ON a.id = b.id WHERE a.p > 3 GROUP BY a.p"
    mine, theirs = query.format(kind="delta"), query.format(kind="parquet")
    select = by_turns(lambda: spark.sql("SELECT 1"), lambda: plain.sql("SELECT 1"), rounds)
    planning = by_turns(lambda: planned(spark, mine), lambda: planned(plain, theirs), rounds)
    plain.stop()
    return {
        "enable, beside the session's first statement": (enabled + first, first, 2000),
        "SELECT 1": (*select, 2),
        "planning of two tables": (*planning, 20),
    }


def planned(spark: SparkSession, text: str) -> None:
    """Everything up to the physical plan."""
    spark.sql(text)._jdf.queryExecution().executedPlan()


def by_turns(one: Callable[[], object], other: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median milliseconds of both."""
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 5):
        for place, run in enumerate((one, other)):
            started = time.perf_counter()
            run()
            if number >= 5:
                taken[place].append((time.perf_counter() - started) * 1000)
    return statistics.median(taken[0]), statistics.median(taken[1])


if __name__ == "__main__":
    main()
