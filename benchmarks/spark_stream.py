"""A table as a stream: rows per second compared with Spark's own stream of Parquet files, the time from a commit until its row is delivered,
the start of a stream of a table of many files up to its first batch, and the cost of a trigger without new data.

With ``--delta-spark`` delta-spark 4.0.1 reads the same tables, in a session beside Tahoe's in one JVM; that needs PySpark 4.0 and Maven
Central (`make interop`'s environment).

Goals: a start in at most a third of delta-spark's time; an empty trigger in at most 20 ms.

    python benchmarks/spark_stream.py [--rows 4000000] [--files 100000] [--rounds 3] [--delta-spark]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import tahoe.cache
from benchmarks._spark import beside_delta_spark, by_turns, rows, session, show
from tahoe import Table

SPLITS = 16
LOOKS = 200
FIRST = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delta-spark", action="store_true")
    arguments = parser.parse_args()
    mine, theirs = beside_delta_spark() if arguments.delta_spark else (session(), None)
    sessions = {"tahoe": mine} | ({} if theirs is None else {"delta_spark": theirs})
    with tempfile.TemporaryDirectory() as folder:
        rows(mine, arguments.rows, SPLITS).write.format("delta").save(f"{folder}/rows")
        rows(mine, arguments.rows, SPLITS).write.parquet(f"{folder}/parquet")
        many_files(f"{folder}/many", arguments.files)
        table = {
            f"{arguments.rows} rows": by_turns(whole(sessions, mine, folder), arguments.rounds),
            f"start, {arguments.files} files": by_turns(
                {name: partial(start, item, f"{folder}/many") for name, item in sessions.items()}, arguments.rounds
            ),
            "commit to row": visible(sessions, folder, arguments.rounds),
        }
        empty = empty_trigger(mine, f"{folder}/rows")
    for name, seconds in table.items():
        show(name, "case", {name: seconds}, list(seconds)[-1], {})
    print(f"An empty trigger: {empty * 1000:.1f} ms")
    mine.stop()


def many_files(path: str, files: int) -> None:
    """A table of so many files; those that a first batch reads are there, the others only in the log."""
    table = Table(path)
    for number in range(FIRST):
        table.append(pa.table({"id": [number]}))
    version, stats = table.version() + 1, json.dumps({"numRecords": 1, "minValues": {"id": 0}, "maxValues": {"id": 9}})
    later = time.time_ns() // 1_000_000 + 1_000_000
    lines = (
        json.dumps(
            {
                "add": {
                    "path": f"part-{number:06}.parquet",
                    "partitionValues": {},
                    "size": 500,
                    "modificationTime": later + number,
                    "dataChange": True,
                    "stats": stats,
                }
            }
        )
        for number in range(files)
    )
    Path(path, "_delta_log", f"{version:020}.json").write_text("\n".join(lines) + "\n")
    Table(path).checkpoint()


def whole(sessions: dict[str, SparkSession], mine: SparkSession, folder: str) -> dict[str, Callable[[], object]]:
    """Way → a query over all rows."""
    schema = mine.read.parquet(f"{folder}/parquet").schema
    runs: dict[str, Callable[[], object]] = {
        name: partial(run, lambda session=session: session.readStream.format("delta").load(f"{folder}/rows"))
        for name, session in sessions.items()
    }
    return runs | {"parquet": partial(run, lambda: mine.readStream.schema(schema).parquet(f"{folder}/parquet"))}


def run(read: Callable[[], DataFrame]) -> None:
    with tempfile.TemporaryDirectory() as at:
        writer = read().writeStream.format("noop").option("checkpointLocation", at)
        writer.trigger(availableNow=True).start().awaitTermination()


def start(spark: SparkSession, path: str) -> None:
    """From `load` to the rows of the first batch, with nothing known of the table."""
    tahoe.cache.clear()
    if "DeltaCatalog" in str(spark.conf.get("spark.sql.catalog.spark_catalog", "")):
        spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    arrived = Event()

    def take(batch: DataFrame, _number: int) -> None:
        batch.collect()
        arrived.set()

    with tempfile.TemporaryDirectory() as at:
        stream = spark.readStream.format("delta").option("maxFilesPerTrigger", FIRST).load(path)
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", at).trigger(processingTime="1 hour").start()
        if not arrived.wait(600):
            raise RuntimeError(f"no batch of {path}: {query.exception()}")
        query.stop()


def visible(sessions: dict[str, SparkSession], folder: str, rounds: int) -> dict[str, list[float]]:
    """Way → seconds from a commit until a query that waits has given its row."""
    measured: dict[str, list[float]] = {}
    for name, spark in sessions.items():
        table, arrived, at = Table(f"{folder}/visible_{name}"), Event(), f"{folder}/at_{name}"
        table.append(pa.table({"id": [0]}))

        def take(batch: DataFrame, _number: int, arrived: Event = arrived) -> None:
            if batch.collect():
                arrived.set()

        stream = spark.readStream.format("delta").load(table.url)
        query = stream.writeStream.foreachBatch(take).option("checkpointLocation", at).trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        seconds = []
        for _ in range(4 * rounds):
            arrived.clear()
            table.append(pa.table({"id": [1]}))
            started = time.perf_counter()
            if not arrived.wait(60):
                raise RuntimeError(f"{name} gave no row: {query.exception()}")
            seconds.append(time.perf_counter() - started)
        query.stop()
        measured[name] = seconds[rounds:]
    return measured


def empty_trigger(spark: SparkSession, path: str) -> float:
    """Seconds of all that Spark asks of a source in a trigger that finds nothing, with the way to the JVM and back: the median."""
    source = spark.readStream.format("delta").load(path)._jdf.queryExecution().analyzed().dataSource().createSource(path)
    limit, optional = source.getDefaultReadLimit(), spark._jvm.java.util.Optional  # type: ignore[union-attr]
    done = source.latestOffset(None, limit)
    seconds = []
    for _ in range(LOOKS):
        started = time.perf_counter()
        if source.latestOffset(done, limit).json() != done.json():
            raise RuntimeError("the table has moved")
        source.reportLatestOffset()
        source.metrics(optional.of(done))
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
