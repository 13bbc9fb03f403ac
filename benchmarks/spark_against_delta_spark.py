"""Tahoe against delta-spark 4.0.1 in one JVM: commands that rewrite files or write deletion vectors, counts, a small MERGE, and an append.

Both engines work on tables of their own with the same rows, by turns, with the settings that suit delta-spark best. Each round changes other
rows. Needs PySpark 4.0 and Maven Central.

    .venv-oldest/bin/python benchmarks/spark_against_delta_spark.py [--rows 4000000] [--files 8] [--rounds 5]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from rich.console import Console
from rich.table import Table as Grid

from benchmarks._spark import COLUMNS, beside_delta_spark, by_turns, numbered, rows, show

VECTORS = "delta.enableDeletionVectors"
Command = Callable[[SparkSession, str, int], object]


def main() -> None:
    """Measure each command with both engines, and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sessions = dict(zip(("Tahoe", "delta-spark"), beside_delta_spark(), strict=True))
    with tempfile.TemporaryDirectory() as name:
        for kind, vectors in (("rewriting", "false"), ("vectors", "true")):
            for engine, spark in sessions.items():
                frame = rows(spark, arguments.rows, arguments.files)
                frame.write.format("delta").option(VECTORS, vectors).save(f"{name}/{engine}-{kind}")
        table = {
            f"{case} (goal {goal})": by_turns(
                {engine: numbered(command, spark, f"{name}/{engine}-{kind}") for engine, spark in sessions.items()},
                arguments.rounds,
            )
            for case, (goal, kind, command) in cases(arguments.rows).items()
        }
        show(
            f"{arguments.rows:,} rows in {arguments.files} files",
            "command",
            table,
            "delta-spark",
            {"Tahoe": "in the first column"},
        )
        own_work(sessions["Tahoe"], Path(name), arguments)
        floors(sessions["Tahoe"], Path(name), arguments)
    sessions["Tahoe"].stop()


def cases(count: int) -> dict[str, tuple[str, str, Command]]:
    """Return for each case its goal, the kind of its table, and its command."""

    def delete(spark: SparkSession, path: str, turn: int) -> object:
        return spark.sql(f"DELETE FROM delta.`{path}` WHERE pmod(hash(id), 100) = {turn}").collect()

    def update(spark: SparkSession, path: str, turn: int) -> object:
        return spark.sql(f"UPDATE delta.`{path}` SET x = x + 1 WHERE pmod(hash(id), 100) = {50 + turn}").collect()

    def merge(spark: SparkSession, path: str, turn: int, step: int = 100) -> object:
        old = spark.range(turn, count, step, 2)
        source = old.union(spark.range(count * (2 + turn), count * (2 + turn) + count // (10 * step), 1, 1)).selectExpr(*COLUMNS)
        source.createOrReplaceTempView("changes")
        return spark.sql(
            f"MERGE INTO delta.`{path}` t USING changes s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def counted(spark: SparkSession, path: str, _: int) -> object:
        return spark.sql(f"SELECT COUNT(*) FROM delta.`{path}`").collect()

    return {
        "DELETE of 1 %, rewriting": ("0.5", "rewriting", delete),
        "UPDATE of 1 %, rewriting": ("0.5", "rewriting", update),
        "MERGE of 1 %, rewriting": ("0.5", "rewriting", merge),
        "DELETE of 1 %, vectors": ("none", "vectors", delete),
        "UPDATE of 1 %, vectors": ("0.3", "vectors", update),
        "MERGE of 1 %, vectors": ("none", "vectors", merge),
        "MERGE of 100 rows, vectors": ("none", "vectors", partial(merge, step=count // 90)),
        "COUNT(*) with vectors": ("0.6", "vectors", counted),
    }


def own_work(spark: SparkSession, folder: Path, arguments: argparse.Namespace) -> None:
    """Print Tahoe's ratios to Spark's own work: a MERGE of 100 rows to a scan of the key, and an append to plain Parquet."""
    target, frame = f"{folder}/Tahoe-vectors", rows(spark, arguments.rows, arguments.files)
    merge = cases(arguments.rows)["MERGE of 100 rows, vectors"][2]
    numbers = itertools.count(20)
    small = {
        "Tahoe": lambda: merge(spark, target, next(numbers)),
        "Spark": lambda: spark.read.format("delta").load(target).selectExpr("max(id)").collect(),
    }
    append = {
        "Tahoe": lambda: frame.write.format("delta").mode("append").save(f"{folder}/appended"),
        "Spark": lambda: frame.write.mode("append").parquet(f"{folder}/parquet"),
    }
    table = {
        "MERGE of 100 rows / scan of the key (goal 0.4 s)": by_turns(small, arguments.rounds),
        f"append of {arguments.rows:,} rows / Parquet (goal 1.0)": by_turns(append, arguments.rounds),
    }
    show("Tahoe against Spark alone", "work", table, "Spark", {"Tahoe": "in the first column"})


def floors(spark: SparkSession, folder: Path, arguments: argparse.Namespace) -> None:
    """Print the seconds of the least work in which Spark alone has the result of a command, on plain Parquet files of the same rows."""
    path, numbers = f"{folder}/floors", itertools.count()
    rows(spark, arguments.rows, arguments.files).write.parquet(path)
    source = spark.range(0, arguments.rows, arguments.rows // 90).withColumnRenamed("id", "key")

    def written(frame: DataFrame) -> None:
        frame.write.parquet(f"{folder}/floor-{next(numbers)}")

    def files() -> DataFrame:
        return spark.read.parquet(path)

    work: dict[str, Callable[[], object]] = {
        "UPDATE, rewriting: all rows read and written": lambda: written(
            files().withColumn("x", sf.expr("CASE WHEN pmod(hash(id), 100) = 3 THEN x + 1 ELSE x END"))
        ),
        "UPDATE, vectors: rows found and written": lambda: written(files().where("pmod(hash(id), 100) = 3")),
        "MERGE of 100 rows: keys joined, pairs written": lambda: written(files().join(sf.broadcast(source), sf.expr("id = key"))),
        "COUNT(*): a query without files": lambda: spark.sql("SELECT COUNT(*) FROM VALUES (1)").collect(),
    }
    grid = Grid(title=f"Spark alone (medians of {arguments.rounds})")
    grid.add_column("work")
    grid.add_column("seconds", justify="right")
    for name, seconds in by_turns(work, arguments.rounds).items():
        grid.add_row(name, f"{statistics.median(seconds):.3f}")
    Console(width=140).print(grid)


if __name__ == "__main__":
    main()
