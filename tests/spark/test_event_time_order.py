"""`withEventTimeOrder`: the rows that a table has when a stream begins come by the time of their events, so that a watermark drops none."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table

START = datetime(2024, 3, 1, tzinfo=UTC)
DAY = 86_400
ORDERED: dict[str, Any] = {"withEventTimeOrder": "true", "maxFilesPerTrigger": 1}


def events(*days: float | None) -> pa.Table:
    times = [None if day is None else START + timedelta(days=day) for day in days]
    return pa.table({"t": pa.array(times, pa.timestamp("us", "UTC")), "day": pa.array(days, pa.float64())})


@pytest.fixture
def table(path: str) -> Table:
    """The newest day was written first."""
    made = Table.create(
        path, events().schema, properties={"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    )
    for days in ([8, 9], [0, 1, None], [4, 5], [2, 3], [6, 7, 7.5]):
        made.append(events(*days))
    made.delete("day = 7.5")
    return made


def stream(spark: SparkSession, table: Table, **options: Any) -> DataFrame:
    return spark.readStream.format("delta").options(**options).load(table.url)


def batches(rows: DataFrame, checkpoint: Path, mode: str = "append", **trigger: Any) -> list[list[Any]]:
    """The rows of each batch up to the present, by their first column."""
    actual: list[list[Any]] = []
    writer = rows.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
    writer = writer.foreachBatch(
        lambda batch, _number: actual.append(
            sorted((row[0] for row in batch.collect()), key=lambda value: (value is None, value))
        )
    )
    writer.trigger(**(trigger or {"availableNow": True})).start().awaitTermination()
    return [batch for batch in actual if batch]


def rewind(checkpoint: Path, kept: int, done: int) -> None:
    """The checkpoint as it was when `kept` batches were planned, and `done` of them done."""
    for kind, count in (("offsets", kept), ("commits", done)):
        for file in (checkpoint / kind).iterdir():
            number = file.name.removeprefix(".").removesuffix(".crc")
            if number.isdecimal() and int(number) >= count:
                file.unlink()


def stopped_with(ask: Callable[[], object]) -> str:
    with pytest.raises(StreamingQueryException) as caught:
        ask()
    text = str(caught.value)
    assert "Py4J" not in text and "Traceback" not in text
    return text.partition("terminated with exception: [")[2].partition("]")[0]


def counted(rows: DataFrame) -> DataFrame:
    """The number of events of each day; a day is reported when the watermark has passed it."""
    days = rows.where("t is not null").withWatermark("t", "1 hour").groupBy(sf.window("t", "1 day"))
    return days.count().select(sf.struct(sf.to_date("window.start").cast("string"), "count"))


@pytest.mark.long  # 20 batches
def test_a_watermark_drops_no_row_of_the_snapshot_and_does_without_the_option(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    table.append(events(30))  # passes the watermark over all other days
    table.append(events(60))
    last = {"maxFilesPerTrigger": 1}
    actual = [tuple(row) for batch in batches(counted(stream(spark, table, **ORDERED)), tmp_path / "at") for row in batch]
    days = [(START + timedelta(days=day)).date().isoformat() for day in (*range(10), 30)]
    assert sorted(actual) == [(day, 1) for day in days]
    late = [tuple(row) for batch in batches(counted(stream(spark, table, **last)), tmp_path / "late") for row in batch]
    assert len(late) < len(actual)


def test_every_row_comes_once_wherever_the_query_was_killed(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    at, rows = tmp_path / "at", stream(spark, table, **ORDERED).withWatermark("t", "1 hour").select("day")
    days = [0.0, *map(float, range(1, 10))]
    whole = batches(rows, at)
    assert sorted(day for batch in whole for day in batch if day is not None) == days and whole[0].count(None) == 1
    assert len(whole) >= 5
    stored = [json.loads((at / "offsets" / str(number)).read_text().splitlines()[-1]) for number in range(len(whole))]
    assert {offset["sourceVersion"] for offset in stored[:-1]} == {1000} and stored[-1]["sourceVersion"] == 1
    table.append(events(100))
    table.delete("day = 9")  # is in the snapshot still, whose version does not change
    for remaining, done in ((1, 1), (2, 1), (3, 3), (len(whole), len(whole) - 1)):
        rewind(at, remaining, done)
        again = stream(spark, table, skipChangeCommits="true", **ORDERED).withWatermark("t", "1 hour").select("day")
        rest = batches(again.where("day is not null"), at)
        assert [day for batch in rest for day in batch] == [day for batch in whole[done:] for day in batch if day is not None] + [
            100
        ]


def test_all_at_once_begins_midway_and_takes_the_commits_too(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    at, rows = tmp_path / "at", stream(spark, table, **ORDERED).withWatermark("t", "1 hour").select("day").where("day >= 0")
    whole = batches(rows, at)
    rewind(at, 1, 1)
    table.append(events(0.5, 50))
    rest = sorted([*(day for batch in whole[1:] for day in batch), 0.5, 50])
    assert batches(rows, at, once=True) == [rest]


def test_the_feed_comes_in_that_order_too(spark: SparkSession, path: str, tmp_path: Path) -> None:
    table = Table.create(path, events().schema, properties={"delta.enableChangeDataFeed": "true"})
    for days in ([8, 9], [0, 1], [4, 5]):
        table.append(events(*days))
    rows = stream(spark, table, readChangeFeed="true", **ORDERED).withWatermark("t", "1 hour")
    rows = rows.select(sf.struct("day", "_change_type"))
    come = [[(float(day), "insert") for day in days] for days in ([0, 1], [4, 5], [8, 9])]
    assert [[tuple(row) for row in batch] for batch in batches(rows, tmp_path / "at")] == come
    rewind(tmp_path / "at", 1, 1)
    table.delete("day = 4")
    (rest,) = batches(rows, tmp_path / "at", once=True)
    assert sorted(map(tuple, rest)) == sorted([*come[1], *come[2], (4.0, "delete")])


REFUSED = "TAHOE_OPTION_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("marked", "code"),
    [
        (lambda rows: rows, "DELTA_ILLEGAL_OPTION"),
        (lambda rows: rows.withColumn("u", sf.expr("t + interval 1 day")).withWatermark("u", "1 hour"), REFUSED),
        (lambda rows: rows.selectExpr("current_timestamp() t", "day").withWatermark("t", "1 hour"), REFUSED),
        (lambda rows: rows.unionAll(rows).withWatermark("t", "1 hour"), REFUSED),
        (lambda rows: rows.dropDuplicates(["t"]).withWatermark("t", "1 hour"), REFUSED),
        (lambda rows: rows.withWatermark("t", "1 hour").unionAll(rows), REFUSED),
    ],
    ids=["none", "computed", "another", "union", "state", "one of two"],
)
def test_tables_without_an_event_time_order_are_refused(
    spark: SparkSession, table: Table, tmp_path: Path, marked: Callable[[DataFrame], DataFrame], code: str
) -> None:
    assert stopped_with(lambda: batches(marked(stream(spark, table, **ORDERED)), tmp_path / "at", "append")) == code


def test_renamed_columns_aliases_and_two_uses_with_one_watermark_are_followed(
    spark: SparkSession, table: Table, tmp_path: Path
) -> None:
    table.rename_column("t", "moment")
    rows = stream(spark, table, **ORDERED).selectExpr("day", "moment as m").where("day is not null").alias("x")
    marked = rows.select("day", sf.col("x.m").alias("n")).withWatermark("n", "1 hour")
    assert batches(marked.select("day"), tmp_path / "at") == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    both = marked.select("day").unionAll(marked.select("day"))
    actual = batches(both, tmp_path / "both")
    assert sorted(day for batch in actual for day in batch) == sorted([*map(float, range(10))] * 2) and len(actual) >= 5


def test_the_setting_is_for_all_streams_that_have_a_watermark(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    spark.conf.set("spark.databricks.delta.withEventTimeOrder.enabled", "true")
    try:
        rows = stream(spark, table, maxFilesPerTrigger=1).where("day is not null")
        in_order = batches(rows.withWatermark("t", "1 hour").select("day"), tmp_path / "at")
        as_written = batches(rows.select("day"), tmp_path / "plain")
        off = stream(spark, table, maxFilesPerTrigger=1, withEventTimeOrder="false").where("day is not null")
        also_as_written = batches(off.withWatermark("t", "1 hour").select("day"), tmp_path / "off")
    finally:
        spark.conf.unset("spark.databricks.delta.withEventTimeOrder.enabled")
    assert in_order == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    assert as_written == also_as_written == [[8.0, 9.0], [0.0, 1.0], [4.0, 5.0], [2.0, 3.0], [6.0, 7.0]]


def test_nothing_of_the_order_changes_midway(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    table.add_columns(pa.schema([("u", pa.timestamp("us", "UTC"))]))
    at, ordered = tmp_path / "at", stream(spark, table, **ORDERED)
    plain = stream(spark, table, maxFilesPerTrigger=1)
    whole = batches(ordered.withWatermark("t", "1 hour").select("day").where("day >= 0"), at)
    rewind(at, 2, 2)
    changed = "TAHOE_EVENT_TIME_ORDER_CHANGED"
    assert stopped_with(lambda: batches(plain.withWatermark("t", "1 hour").select("day"), at)) == changed
    assert stopped_with(lambda: batches(ordered.withWatermark("u", "1 hour").select("day"), at)) == changed
    rewind(at, 2, 1)
    assert stopped_with(lambda: batches(plain.select("day"), at)) == changed
    assert batches(ordered.withWatermark("t", "1 hour").select("day").where("day >= 0"), at) == whole[1:]
    batches(plain.select("day"), tmp_path / "plain")
    rewind(tmp_path / "plain", 2, 2)
    assert stopped_with(lambda: batches(ordered.withWatermark("t", "1 hour").select("day"), tmp_path / "plain")) == changed
