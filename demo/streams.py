"""The second part: a month arrives in parts, some of it late, and three streams move it from bronze through silver to gold.

landing ─► bronze (each file once) ─► silver (MERGE: late rows join, corrected ones change) ─change feed─► gold (MERGE, UniForm on)

Each round starts the three queries, which process the available data and stop; the next round continues from their checkpoints.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

import tahoe
from demo import CATALOG, STREAMED
from demo.landing import CORRECTED_MONTH
from demo.pipeline import Paths, typed
from tahoe.tables import DeltaTable

__all__ = ["Round", "expected_rows", "run_streams"]

KEY = ("day", "carrier", "flight", "origin", "sched_dep_time")
_CSV_KEY = ("month", *KEY)
_EVERY = 10
"""One flight in so many is reported late."""


@dataclass(frozen=True)
class Round:
    """One start of the three queries: the rows that each table has then, and the seconds that it took."""

    title: str
    bronze: int
    silver: int
    gold: int
    gold_version: int
    seconds: float


def run_streams(spark: SparkSession, deliveries: dict[str, Path], folder: Path) -> Iterator[Round]:
    """Deliver March but for its late flights, then these and the corrected ones; after each the queries run."""
    landing, paths = folder / "landing", Paths.below(folder)
    landing.mkdir(parents=True)
    header, on_time, late = _parts(deliveries)
    _make_tables(spark, typed(spark.createDataFrame([on_time[0]], header), with_speed=True), paths)
    for title, rows in {"in time": on_time, "late, and corrected": late}.items():
        _write_csv(landing / f"{title.partition(',')[0].replace(' ', '-')}.csv", header, rows)
        started = perf_counter()
        _to_bronze(spark, landing, header, paths, folder)
        _to_silver(spark, paths, folder)
        _to_gold(spark, paths, folder)
        table = tahoe.Table(paths.gold)
        table.uniform.wait(table.version(), timeout=60)
        counts = [spark.read.format("delta").load(path).count() for path in (paths.bronze, paths.silver, paths.gold)]
        yield Round(title, *counts, gold_version=table.version(), seconds=perf_counter() - started)


def expected_rows(spark: SparkSession, deliveries: dict[str, Path]) -> DataFrame:
    """The expected rows of gold: the corrected month, computed by a batch."""
    header, on_time, late = _parts(deliveries)
    newest = {tuple(row[header.index(name)] for name in _CSV_KEY): row for row in [*on_time, *late]}
    return typed(spark.createDataFrame(list(newest.values()), header), with_speed=True)


# -- the queries -------------------------------------------------------------------------------------------------------------


def _to_bronze(spark: SparkSession, landing: Path, header: list[str], paths: Paths, folder: Path) -> None:
    schema = ", ".join(f"{name} STRING" for name in header)
    files = spark.readStream.schema(schema).option("header", "true").csv(str(landing))
    query = files.writeStream.format("delta").option("checkpointLocation", str(folder / "checkpoints" / "bronze"))
    query.trigger(availableNow=True).start(paths.bronze).awaitTermination()


def _to_silver(spark: SparkSession, paths: Paths, folder: Path) -> None:
    bronze = spark.readStream.format("delta").option("maxFilesPerTrigger", 10).load(paths.bronze)
    _merge_batches(typed(bronze, with_speed=True), "silver", paths.silver, folder)


def _to_gold(spark: SparkSession, paths: Paths, folder: Path) -> None:
    feed = spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 1).load(paths.silver)
    news = feed.where("_change_type IN ('insert', 'update_postimage')")
    _merge_batches(news.drop("_change_type", "_commit_version", "_commit_timestamp"), "gold", paths.gold, folder)


def _merge_batches(rows: DataFrame, name: str, path: str, folder: Path) -> None:
    query = rows.writeStream.foreachBatch(_upsert(name, path))
    query = query.option("checkpointLocation", str(folder / "checkpoints" / name))
    query.trigger(availableNow=True).start().awaitTermination()


def _upsert(name: str, path: str) -> Callable[[DataFrame, int], None]:
    def upsert(batch: DataFrame, number: int) -> None:
        # A batch that comes a second time, after a crash, is known by its number and not merged again.
        batch.sparkSession.conf.set("spark.databricks.delta.write.txnAppId", name)
        batch.sparkSession.conf.set("spark.databricks.delta.write.txnVersion", number)
        on = " AND ".join(f"held.{column} = news.{column}" for column in KEY)
        merge = DeltaTable.forPath(batch.sparkSession, path).alias("held").merge(batch.alias("news"), on)
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    return upsert


# -- initial tables ---------------------------------------------------------------------------------------------------------


def _make_tables(spark: SparkSession, shape: DataFrame, paths: Paths) -> None:
    vectors = {"delta.enableDeletionVectors": "true"}
    iceberg = {
        "delta.universalFormat.enabledFormats": "iceberg",
        "delta.columnMapping.mode": "name",
        "delta.universalFormat.config.iceberg.catalogs": f"{CATALOG}:{STREAMED}",
        "delta.enableIcebergCompatV2": "true",
    }
    for path, properties in ((paths.silver, {**vectors, "delta.enableChangeDataFeed": "true"}), (paths.gold, iceberg)):
        builder = DeltaTable.create(spark).location(path).addColumns(shape.schema)
        for name, value in properties.items():
            builder = builder.property(name, value)
        builder.execute()


def _parts(deliveries: dict[str, Path]) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """The header; March's flights that come in time; the late ones, and those in time that were corrected afterwards."""
    march = f"2013-{CORRECTED_MONTH:02}"
    header, first = _read_csv(deliveries[march])
    _, corrected = _read_csv(deliveries[f"{march}-corrected"])
    pairs = list({_key_of(header, row): (row, news) for row, news in zip(first, corrected, strict=True)}.values())
    late = {number for number in range(len(pairs)) if number % _EVERY == 0}
    on_time = [row for number, (row, _) in enumerate(pairs) if number not in late]
    return header, on_time, [news for number, (row, news) in enumerate(pairs) if number in late or row != news]


def _key_of(header: list[str], row: list[str]) -> tuple[str, ...]:
    return tuple(row[header.index(name)] for name in _CSV_KEY)


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def _write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
