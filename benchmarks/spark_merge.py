"""MERGE on Spark: an upsert of 1 % of a table's rows, against the operation written by hand without MERGE, and against deltalake's MERGE.

By hand: Parquet, the target without the source's keys united with the source, rewritten. Goal: a fifth of that time with deletion vectors.
The keys are scattered over all files, or adjacent at the table's end. Each round uses different keys; a tenth of them are new.

    python benchmarks/spark_merge.py [--rows 10000000] [--rounds 3] [--files 16] [--profile]
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path

import deltalake
from _spark import COLUMNS, by_turns, rows, session, show
from pyspark.sql import DataFrame, SparkSession

import tahoe
from tahoe.tables import DeltaTable

VECTORS = "delta.enableDeletionVectors"
GOALS = {"vectors": "0.20", "rewritten": "1.00"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--profile", action="store_true", help="tell how long each part of the last MERGE took")
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        cases = {"scattered": scattered, "together": together}
        table = {
            f"1 % of {arguments.rows:,} rows, {name}": measured(spark, Path(folder) / name, keys, arguments)
            for name, keys in cases.items()
        }
    show("MERGE", "rows", table, "by hand", GOALS)
    spark.stop()


def scattered(spark: SparkSession, count: int, turn: int) -> DataFrame:
    """Every hundredth row, and a tenth as many new ones."""
    old = spark.range(turn % 100, count, 100, 2)
    return old.union(spark.range(count * (2 + turn), count * (2 + turn) + count // 1000, 1, 1))


def together(spark: SparkSession, count: int, turn: int) -> DataFrame:
    """A hundredth of the rows near the end, and a tenth as many new ones."""
    first = count - (turn + 1) * count // 100
    old = spark.range(first, first + count // 100, 1, 2)
    return old.union(spark.range(count * (2 + turn), count * (2 + turn) + count // 1000, 1, 1))


def measured(
    spark: SparkSession, folder: Path, keys: Callable[[SparkSession, int, int], DataFrame], arguments: argparse.Namespace
) -> dict[str, list[float]]:
    data = rows(spark, arguments.rows, arguments.files)
    data.write.parquet(str(folder / "parquet"))
    for name, vectors in (("vectors", "true"), ("rewritten", "false"), ("deltalake", "false")):
        data.write.format("delta").option(VECTORS, vectors).save(str(folder / name))
    turns = {name: itertools.count() for name in ("by hand", "vectors", "rewritten", "deltalake")}

    def source(name: str) -> DataFrame:
        return keys(spark, arguments.rows, next(turns[name])).selectExpr(*COLUMNS)

    def by_hand() -> None:
        news = source("by hand")
        remaining = spark.read.parquet(str(folder / "parquet")).join(news, "id", "left_anti")
        remaining.unionByName(news).write.mode("overwrite").parquet(str(folder / "anew"))

    def merge(name: str) -> None:
        target = DeltaTable.forPath(spark, str(folder / name)).alias("t")
        merged = target.merge(source(name).alias("s"), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert merged.first()["num_inserted_rows"] == arguments.rows // 1000
        if arguments.profile:
            metrics = tahoe.Table(folder / name).history(1)[0]["operationMetrics"]
            print(name, {key: value for key, value in metrics.items() if key.endswith("Ms") or "Files" in key})

    def other() -> None:
        news = source("deltalake").toArrow()
        merger = deltalake.DeltaTable(str(folder / "deltalake")).merge(news, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()

    runs = {"by hand": by_hand, "vectors": lambda: merge("vectors"), "rewritten": lambda: merge("rewritten"), "deltalake": other}
    return by_turns(runs, arguments.rounds)


if __name__ == "__main__":
    main()
