"""The cost of deletion vectors for a scan on Spark: versions of one table with the same files, with randomly deleted rows and with none.

Goals: with a hundredth or a tenth of the rows deleted, 2 times on one column and 1.3 times on all. Planning fetches the vectors and sends
each task those of its own files, one bit per row: 12 MB for 100 million rows.

    python benchmarks/spark_deletion_vectors.py [--rows 5000000] [--rounds 7] [--query NAME]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from _spark import by_turns, rows, session, show
from pyroaring import BitMap64
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.ops.rows.row_changes import live_rows
from tahoe.protocol.dv import descriptor_in_file, pack
from tahoe.spark.scan.deleted_rows import bitmaps
from tahoe.txn.transaction import Operation

QUERIES: dict[str, Callable[[DataFrame], object]] = {
    "sum of one column": lambda frame: frame.agg(sf.sum("x")).collect(),
    "all columns": lambda frame: frame.write.format("noop").mode("overwrite").save(),
    "planning alone": lambda frame: frame._jdf.queryExecution().toRdd().getNumPartitions(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--query", choices=list(QUERIES), help="only this one")
    arguments = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table")
        rows(spark, arguments.rows, 8).write.format("delta").option("delta.enableDeletionVectors", "true").save(path)
        versions = {"whole": Table(path).version()}
        for percent in (1, 10):
            size = delete_at_random(Table(path), percent / 100)
            print(f"{percent} % deleted: {size / 1e6:.1f} MB of bits travel with the plan")
            versions[f"{percent} % deleted"] = Table(path).version()
        frames = {way: partial(at_version, spark, path, version) for way, version in versions.items()}
        table = {
            name: by_turns({way: lambda make=make, query=query: query(make()) for way, make in frames.items()}, arguments.rounds)  # type: ignore[misc]
            for name, query in QUERIES.items()
            if arguments.query in (None, name)
        }
    show(f"{arguments.rows:,} rows in 8 files", "query", table, "whole", {})
    spark.stop()


def at_version(spark: SparkSession, path: str, version: int) -> DataFrame:
    return spark.read.format("delta").option("versionAsOf", version).load(path)


def delete_at_random(table: Table, share: float) -> int:
    """Give each file a vector in the place of the one that it has, in one commit; the bytes of all bitmaps as a plan has them."""
    transaction, snapshot, random = table.begin(), table.snapshot(), np.random.default_rng(1)
    vectors = []
    for add in snapshot.scan().add_files():
        dead = np.flatnonzero(random.random(live_rows(snapshot, add)) < share)
        data, (place,) = pack([BitMap64(dead.astype(np.uint64))])
        uuid = table.clock.uuid()
        table.store.put(f"deletion_vector_{uuid}.bin", data)
        vectors.append(descriptor_in_file(uuid, place))
        transaction.stage(add.remove(0), replace(add, deletion_vector=vectors[-1]))
    table.commit(transaction, Operation("DELETE"))
    return int(bitmaps(table.store, vectors).nbytes)


if __name__ == "__main__":
    main()
