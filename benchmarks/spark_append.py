"""Appending on Spark: Tahoe's write, including statistics and commit, against Spark's plain Parquet write of the same rows.

Goal: 1.10 times plain Parquet. The small append shows the cost of a commit for a trivial job.

    python benchmarks/spark_append.py [--rows 5000000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from _spark import by_turns, rows, session, show
from pyspark.sql import DataFrame

GOALS = {"Tahoe": "1.10"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        table = {
            f"{arguments.rows:,} rows": measured(rows(spark, arguments.rows, 4), Path(folder) / "many", arguments.rounds, ()),
            f"{arguments.rows // 5:,} rows in 24 partitions": measured(
                rows(spark, arguments.rows // 5, 4).withColumnRenamed("k", "p").selectExpr("*", "p % 24 as part").drop("p"),
                Path(folder) / "partitioned",
                arguments.rounds,
                ("part",),
            ),
            "one row": measured(rows(spark, 1, 1), Path(folder) / "one", arguments.rounds * 3, ()),
        }
    show("Append", "rows", table, "Parquet", GOALS)
    spark.stop()


def measured(frame: DataFrame, folder: Path, rounds: int, partition_by: tuple[str, ...]) -> dict[str, list[float]]:
    def parquet() -> None:
        frame.write.mode("append").partitionBy(*partition_by).parquet(str(folder / "parquet"))

    def delta() -> None:
        frame.write.format("delta").mode("append").partitionBy(*partition_by).save(str(folder / "delta"))

    return by_turns({"Parquet": parquet, "Tahoe": delta}, rounds)


if __name__ == "__main__":
    main()
