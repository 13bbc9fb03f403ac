"""Bronze, silver, gold, and an audit that changes rows in place: the Spark side of the demonstration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as PySpark's own documentation names it

import tahoe
from demo import CATALOG, IDENTIFIER
from demo.landing import CORRECTED_MONTH, MONTHS, reference_file
from tahoe.tables import DeltaTable

__all__ = ["SPEED_SINCE", "Audit", "Paths", "Step", "audit", "run_pipeline", "start_spark", "typed"]

# From this month on the silver and gold tables have a column `speed`; earlier rows read as null.
SPEED_SINCE = 7

GOLD_PROPERTIES = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
    "delta.universalFormat.config.iceberg.catalogs": f"{CATALOG}:{IDENTIFIER}",
}
# Rows that a MERGE changes are marked dead in deletion vectors, which readers of Iceberg v2 see as position deletes.
AUDIT_PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.universalFormat.config.iceberg.deletes": "position"}
FLIGHT = ("month", "day", "carrier", "flight", "origin", "sched_dep_time")
WHOLE_NUMBERS = (
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
    "flight",
    "sched_dep_time",
    "dep_time",
    "arr_time",
    "sched_arr_time",
)


@dataclass(frozen=True)
class Paths:
    bronze: str
    silver: str
    gold: str

    @classmethod
    def below(cls, folder: Path) -> Paths:
        return cls(*(str(folder / name) for name in ("bronze", "silver", "gold")))


@dataclass(frozen=True)
class Step:
    """The result for one delivery: rows, and the seconds for each table and for the Iceberg conversion."""

    title: str
    rows: int
    bronze: float
    silver: float
    gold: float
    iceberg: float
    gold_version: int


@dataclass(frozen=True)
class Audit:
    """The changes of the audit, its seconds, and the seconds until Iceberg showed them.

    Args:
        vectors: files that keep their bytes, with a deletion vector beside them.
    """

    updated: int
    deleted: int
    inserted: int
    vectors: int
    seconds: float
    iceberg: float
    gold_version: int


def start_spark(warehouse: Path) -> SparkSession:
    """A local session with Delta switched on."""
    session = (
        SparkSession.builder.master("local[*]")
        .appName("Tahoe: a year of flights")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return tahoe.enable(session)


def run_pipeline(spark: SparkSession, deliveries: dict[str, Path], paths: Paths) -> Iterator[Step]:
    """Twelve monthly appends, a column added on the way, then March once more with corrected rows; one `Step` a delivery."""
    for number, month in enumerate(MONTHS):
        yield _deliver(spark, f"2013-{month:02}", month, number, deliveries, paths)
    yield _deliver(spark, f"2013-{CORRECTED_MONTH:02}-corrected", CORRECTED_MONTH, len(MONTHS), deliveries, paths)


def audit(spark: SparkSession, paths: Paths) -> Audit:
    """One flight in a hundred was reported wrong: a MERGE corrects its delay, takes it out, or adds one that was forgotten."""
    table = tahoe.Table(paths.gold)
    table.set_properties(AUDIT_PROPERTIES)
    gold = spark.read.format("delta").load(paths.gold)
    number = F.abs(F.xxhash64(*FLIGHT)) % 1000
    reported = (
        gold.dropDuplicates(FLIGHT)
        .withColumn("number", number)
        .where("number < 10")
        .withColumn(
            "verdict", F.when(F.col("number") < 5, "late").when(F.col("number") < 8, "never flown").otherwise("forgotten")
        )
        .withColumn("flight", F.when(F.col("verdict") == "forgotten", F.col("flight") + 9000).otherwise(F.col("flight")))
        .withColumn("arr_delay", F.col("arr_delay") + 5)
    )
    started = perf_counter()
    on = " and ".join(f"gold.{name} = reported.{name}" for name in FLIGHT)
    merge = DeltaTable.forPath(spark, paths.gold).alias("gold").merge(reported.alias("reported"), on)
    merge = merge.whenMatchedDelete("reported.verdict = 'never flown'")
    merge = merge.whenMatchedUpdate("reported.verdict = 'late'", {"arr_delay": "reported.arr_delay"})
    merge = merge.whenNotMatchedInsert("reported.verdict = 'forgotten'", {name: f"reported.{name}" for name in gold.columns})
    done = merge.execute().first()
    seconds = perf_counter() - started
    version = table.version()
    table.uniform.wait(version, timeout=60)
    return Audit(
        updated=done.num_updated_rows,
        deleted=done.num_deleted_rows,
        inserted=done.num_inserted_rows,
        vectors=table.files()["deletionVector"].is_valid().to_pylist().count(True),
        seconds=seconds,
        iceberg=perf_counter() - started - seconds,
        gold_version=version,
    )


def _deliver(spark: SparkSession, name: str, month: int, number: int, deliveries: dict[str, Path], paths: Paths) -> Step:
    corrected = number >= len(MONTHS)
    with_speed = corrected or month >= SPEED_SINCE

    started = perf_counter()
    arrived = spark.read.csv(str(deliveries[name]), header=True).withColumn("delivery", F.lit(name))
    # Idempotent: a delivery that is sent again is known by its number and skipped.
    arrived.write.format("delta").mode("append").option("txnAppId", "landing").option("txnVersion", number).save(paths.bronze)

    bronze_done = perf_counter()
    bronze = spark.read.format("delta").load(paths.bronze).where(F.col("delivery") == name)
    _write(typed(bronze, with_speed), paths.silver, month, corrected, with_speed)

    silver_done = perf_counter()
    silver = spark.read.format("delta").load(paths.silver).where(F.col("month") == month)
    _write(_gold(spark, silver), paths.gold, month, corrected, with_speed, GOLD_PROPERTIES if number == 0 else {})

    gold_done = perf_counter()
    table = tahoe.Table(paths.gold)
    table.uniform.wait(table.version(), timeout=60)
    iceberg_done = perf_counter()

    return Step(
        title=f"{name}{' adds column speed' if month == SPEED_SINCE else ''}",
        rows=silver.count(),
        bronze=bronze_done - started,
        silver=silver_done - bronze_done,
        gold=gold_done - silver_done,
        iceberg=iceberg_done - gold_done,
        gold_version=table.version(),
    )


def _write(
    rows: DataFrame, path: str, month: int, corrected: bool, with_speed: bool, properties: dict[str, str] | None = None
) -> None:
    """Append a month, or replace the month with corrected data."""
    writer = rows.coalesce(1).write.format("delta").partitionBy("month").options(**(properties or {}))
    if corrected:
        writer.mode("overwrite").option("replaceWhere", f"month = {month}").save(path)
    else:
        writer.mode("append").option("mergeSchema", with_speed).save(path)


def typed(bronze: DataFrame, with_speed: bool) -> DataFrame:
    """Typed and named rows: NA is null, a flight's scheduled hour a timestamp, its day a date."""
    numbers = [_known(name).cast("int").alias(name) for name in WHOLE_NUMBERS]
    rows = bronze.select(
        F.col("month").cast("int").alias("month"),
        F.make_date(F.col("year").cast("int"), F.col("month").cast("int"), F.col("day").cast("int")).alias("day"),
        F.col("time_hour").cast("timestamp").alias("hour"),
        F.col("carrier"),
        _known("tailnum").alias("tailnum"),
        F.col("origin"),
        F.col("dest"),
        *numbers,
    )
    return rows.withColumn("speed", F.col("distance") / (F.col("air_time") / F.lit(60.0))) if with_speed else rows


def _gold(spark: SparkSession, silver: DataFrame) -> DataFrame:
    """One row a flight, with its airline, its destination and the weather when it was to leave."""
    airlines = _reference(spark, "airlines").select("carrier", F.col("name").alias("airline"))
    airports = _reference(spark, "airports").select(
        F.col("faa").alias("dest"), F.col("name").alias("destination"), F.col("lat").cast("double"), F.col("lon").cast("double")
    )
    weather = (
        _reference(spark, "weather")
        .select(
            "origin",
            F.col("time_hour").cast("timestamp").alias("hour"),
            F.struct(*(_known(name).cast("double").alias(name) for name in ("temp", "wind_speed", "visib"))).alias("weather"),
        )
        .dropDuplicates(["origin", "hour"])
    )
    gold = (
        silver.withColumn("cancelled", F.col("dep_time").isNull())
        .withColumn("kilometres", (F.col("distance") * F.lit(1.609344)).cast("decimal(8,2)"))
        .join(F.broadcast(airlines), "carrier", "left")
        .join(F.broadcast(airports), "dest", "left")
        .join(F.broadcast(weather), ["origin", "hour"], "left")
    )
    # DuckDB's delta extension (1.5.5) reads partition columns of a table with column mapping as null unless they come first.
    return gold.select("month", *(name for name in gold.columns if name != "month"))


def _reference(spark: SparkSession, name: str) -> DataFrame:
    return spark.read.csv(reference_file(name), header=True)


def _known(name: str) -> Column:
    return F.nullif(F.col(name), F.lit("NA"))
