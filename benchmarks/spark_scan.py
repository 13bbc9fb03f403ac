"""Reading on Spark: Tahoe's scan against plain Parquet over the same files, and against itself with rows deleted by vectors.

Goals: 1.05 times plain Parquet without vectors; with a tenth of the rows deleted, 1.4 times on all columns.

    python benchmarks/spark_scan.py [--rows 5000000] [--rounds 7]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from _spark import by_turns, rows, session, show
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.protocol.dv import descriptor_in_file, pack
from tahoe.txn.transaction import Operation

QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "count": lambda frame: frame.count(),
    "sum of one column": lambda frame: frame.agg(sf.sum("x")).collect(),
    "one value in a thousand": lambda frame: frame.where("k = 5").agg(sf.sum("x")).collect(),
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        whole = str(Path(folder) / "whole")
        rows(spark, arguments.rows, 8).write.format("delta").save(whole)
        frames = {"Parquet": plain(spark, whole), "Tahoe": delta(spark, whole)}
        for percent in (1, 10):
            path = str(Path(folder) / f"deleted{percent}")
            rows(spark, arguments.rows, 8).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
            delete_every(Table(path), 100 // percent)
            frames[f"{percent} % deleted"] = delta(spark, path)
            assert frames[f"{percent} % deleted"]().count() == arguments.rows - arguments.rows * percent // 100
        table = {
            name: by_turns({way: lambda make=make, query=query: query(make()) for way, make in frames.items()}, arguments.rounds)  # type: ignore[misc]
            for name, query in QUERIES.items()
        }
    show(f"{arguments.rows:,} rows in 8 files", "query", table, "Parquet", {"Tahoe": "1.05"})
    spark.stop()


def plain(spark: SparkSession, path: str) -> Callable[[], DataFrame]:
    files = [str(file) for file in Path(path).glob("*.parquet")]
    return lambda: spark.read.parquet(*files)


def delta(spark: SparkSession, path: str) -> Callable[[], DataFrame]:
    return lambda: spark.read.format("delta").load(path)


def delete_every(table: Table, step: int) -> None:
    """Give each file a vector with every so many-th row; as DELETE would, in one commit."""
    transaction = table.begin()
    for add in table.snapshot().scan().add_files():
        count = int(add.stats.split('"numRecords":')[1].split(",")[0])
        data, (place,) = pack([BitMap64(range(0, count, step))])
        uuid = table.clock.uuid()
        table.store.put(f"deletion_vector_{uuid}.bin", data)
        transaction.stage(add.remove(0), replace(add, deletion_vector=descriptor_in_file(uuid, place)))
    table.commit(transaction, Operation("DELETE"))


if __name__ == "__main__":
    main()
