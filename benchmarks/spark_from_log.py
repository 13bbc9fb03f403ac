"""Queries answered from the log, and a scan of many small files: seconds for `count(*)` of 5,000 files, of a table with deletion vectors,
and for a count with a filter on data, compared with the same rows in Parquet.

With ``--delta-spark`` delta-spark 4.0.1 reads the same tables, in a session beside Tahoe's in one JVM; that needs PySpark 4.0 and Maven
Central (`make interop`'s environment).

Goals: counts at most half of delta-spark's time; the filtered count at most Parquet's.

    python benchmarks/spark_from_log.py [--files 5000] [--rounds 5] [--delta-spark]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks._spark import beside_delta_spark, by_turns, session, show
from tahoe import Table

ROWS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delta-spark", action="store_true")
    arguments = parser.parse_args()
    mine, theirs = beside_delta_spark() if arguments.delta_spark else (session(), None)
    with tempfile.TemporaryDirectory() as folder:
        make(folder, arguments.files)
        table = {name: by_turns(runs, arguments.rounds) for name, runs in cases(mine, theirs, folder)}
    mine.stop()
    show(f"{arguments.files} files of {ROWS} rows", "query", table, "tahoe", {})


def make(folder: str, files: int) -> None:
    """A table of so many files, the same with deletion vectors, and the rows as Parquet alone."""
    Path(folder, "parquet").mkdir()
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    parts = [pa.table({"id": range(n * ROWS, (n + 1) * ROWS), "s": [f"text {n}"] * ROWS}, schema) for n in range(files)]
    for number, part in enumerate(parts):
        pq.write_table(part, f"{folder}/parquet/part-{number:05}.parquet")
    for name in ("plain", "vectors"):
        table = Table.create(f"{folder}/{name}", schema, properties={"delta.enableDeletionVectors": "true"})
        table.append(pa.concat_tables(parts), max_rows_per_file=ROWS)
    Table(f"{folder}/vectors").delete(f"id % {ROWS} = 3 AND id < {files * ROWS // 10}")


def cases(mine: SparkSession, theirs: SparkSession | None, folder: str) -> Iterator[tuple[str, dict[str, Callable[[], object]]]]:
    """Query → way → the run."""
    queries = {
        "count(*)": ("plain", "SELECT count(*) FROM {}"),
        "count(*), vectors": ("vectors", "SELECT count(*) FROM {}"),
        "count(*) of a filter": ("plain", "SELECT count(*) FROM {} WHERE id % 7 = 0"),
    }
    for name, (place, query) in queries.items():
        runs: dict[str, Callable[[], object]] = {"tahoe": partial(run, mine, query.format(f"delta.`{folder}/{place}`"))}
        if theirs is not None:
            runs["delta_spark"] = partial(run, theirs, query.format(f"delta.`{folder}/{place}`"))
        runs["parquet"] = partial(run, mine, query.format(f"parquet.`{folder}/parquet`"))
        yield name, runs


def run(spark: SparkSession, query: str) -> object:
    return spark.sql(query).collect()


if __name__ == "__main__":
    main()
