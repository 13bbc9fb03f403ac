"""Ranges of the change data feed between times: delta-spark and Tahoe return the same rows, or both raise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import TahoeError
from tahoe.snapshot.changes import Bounds, feed

pytestmark = pytest.mark.jvm

FIRST = 1_700_000_000
"""The time of version 0, in seconds; each version is 100 seconds after the one before it."""
TIMES = (-50, 0, 50, 60, 100, 150, 300, 350, 400)
FEED = {"delta.enableChangeDataFeed": "true"}
LATE_RANGES = "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled"


def made(path: Path, properties: Mapping[str, str]) -> Table:
    clock = SeededClock(start_ms=FIRST * 1000)
    table = Table.create(path, {"id": "long"}, properties=properties, clock=clock)
    for number in range(3):
        clock.sleep(100)
        table.append(pa.table({"id": [number]}))
    for file in (path / "_delta_log").glob("*.json"):
        at = FIRST + 100 * int(file.stem)
        os.utime(file, (at, at))
    return Table(path)


def by_delta_spark(jvm: SparkSession, table: Table, start: int, end: int | None) -> list[int] | str:
    ends = {"startingTimestamp": start, "endingTimestamp": end}
    texts = {name: str(datetime.fromtimestamp(FIRST + at, UTC)) for name, at in ends.items() if at is not None}
    try:
        rows = jvm.read.format("delta").options(readChangeFeed="true", **texts).load(table.url).collect()
    except PySparkException as error:
        # A time before the first commit has no error class there.
        return "TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION" if "is before the earliest version" in str(error) else str(error)
    return sorted(row.id for row in rows)


def by_tahoe(table: Table, start: int, end: int | None, may_be_late: bool) -> list[int] | str:
    end_ms = None if end is None else (FIRST + end) * 1000
    bounds = Bounds(start_timestamp_ms=(FIRST + start) * 1000, end_timestamp_ms=end_ms, may_be_late=may_be_late)
    try:
        return sorted(feed(table.store, table.snapshot(), bounds).to_arrow()["id"].to_pylist())
    except TahoeError as error:
        return error.code


@pytest.mark.parametrize("may_be_late", [False, True])
@pytest.mark.parametrize("properties", [FEED, FEED | {"delta.enableInCommitTimestamps": "true"}], ids=["files", "in-commit"])
def test_both_read_the_same_changes(jvm: SparkSession, tmp_path: Path, properties: Mapping[str, str], may_be_late: bool) -> None:
    table = made(tmp_path / "t", properties)
    jvm.conf.set("spark.sql.session.timeZone", "UTC")
    jvm.conf.set(LATE_RANGES, str(may_be_late).lower())
    differences, rows = [], 0
    for start in TIMES:
        for end in (None, *TIMES):
            theirs, ours = by_delta_spark(jvm, table, start, end), by_tahoe(table, start, end, may_be_late)
            rows += isinstance(ours, list)
            both_raise = isinstance(ours, str) and isinstance(theirs, str) and ours.removeprefix("DELTA_") in theirs
            if theirs != ours and not both_raise:
                differences.append((start, end, theirs, ours))
    assert differences == []
    assert rows > 20
