"""OPTIMIZE of many small files on Spark: seconds of Tahoe, of a hand-written read, repartition and overwrite, and of delta-spark.

Each variant gets its own copy of one table in each round, in one JVM, alternating. ``--delta-spark`` needs PySpark 4.0 and Maven Central
(`make interop`'s environment).

Goals: at most delta-spark's time, and at most a third of the hand-written variant's.

    python benchmarks/spark_optimize.py [--files 10000] [--rows 200] [--rounds 3] [--delta-spark]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pyarrow as pa
from _ratios import record
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

from benchmarks._spark import beside_delta_spark, session
from tahoe import Table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delta-spark", action="store_true")
    arguments = parser.parse_args()
    mine, theirs = beside_delta_spark() if arguments.delta_spark else (session(), None)
    ways: dict[str, Callable[[str], object]] = {"tahoe": partial(optimized, mine), "by hand": partial(by_hand, mine)}
    if theirs is not None:
        ways["delta_spark"] = partial(optimized, theirs)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder, "first")
        make(str(first), arguments.files, arguments.rows)
        seconds = measure(ways, first, arguments.rounds)
    mine.stop()
    grid = Grid("way", "seconds", "to Tahoe's", title=f"{arguments.files} files of {arguments.rows} rows")
    for name, taken in seconds.items():
        ratio = statistics.median(item / own for item, own in zip(taken, seconds["tahoe"], strict=True))
        if name != "tahoe":
            record(f"OPTIMIZE, {name}", 1 / ratio)
        grid.add_row(name, f"{statistics.median(taken):.2f}", f"{ratio:.2f}")
    Console(width=100).print(grid)


def make(path: str, files: int, rows: int) -> None:
    """A table of so many files, which both can read."""
    ids = np.arange(files * rows)
    table = pa.table({"id": ids, "v": np.random.default_rng(1).random(len(ids)), "s": pa.array(ids % 1000).cast(pa.string())})
    made = Table.create(path, table.schema, properties={"delta.enableDeletionVectors": "false"})
    made.append(table, max_rows_per_file=rows)


def measure(ways: Mapping[str, Callable[[str], object]], first: Path, rounds: int) -> dict[str, list[float]]:
    """Way → seconds of each round but the first."""
    measured: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, run in ways.items():
            place = first.with_name(f"{name.replace(' ', '-')}-{turn}")
            shutil.copytree(first, place, copy_function=os.link)
            started = time.perf_counter()
            run(str(place))
            if turn:
                measured[name].append(time.perf_counter() - started)
            shutil.rmtree(place)
    return measured


def optimized(spark: SparkSession, path: str) -> object:
    return spark.sql(f"OPTIMIZE delta.`{path}`").collect()


def by_hand(spark: SparkSession, path: str) -> object:
    return spark.read.format("delta").load(path).repartition(1).write.format("delta").mode("overwrite").save(path)


if __name__ == "__main__":
    main()
