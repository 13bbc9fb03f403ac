"""An initial snapshot in event time order: bucket boundaries, each row in exactly one bucket, and changes that are refused midway."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot.scan import Scan
from tahoe.stream.admission import UNLIMITED, Limits
from tahoe.stream.event_time_order import EventTimeOrder
from tahoe.stream.position import BASE_INDEX, EventTime, Position
from tahoe.stream.source import Backlog, Source
from tahoe.stream.source_options import SourceOptions

START = datetime(2024, 3, 1, tzinfo=UTC)
NULLS = -1
"""Represents a row without a time."""


def events(*seconds: float, zone: str | None = "UTC") -> pa.Table:
    """Return rows with times this many seconds after `START`."""
    times = [None if second == NULLS else START + timedelta(seconds=second) for second in seconds]
    plain = [time if time is None or zone else time.replace(tzinfo=None) for time in times]
    return pa.table({"t": pa.array(plain, pa.timestamp("us", zone)), "second": pa.array(seconds, pa.float64())})


def table_of(url: str, *files: list[float], zone: str | None = "UTC", **options: Any) -> Table:
    table = Table.create(url, events(zone=zone).schema, **options)
    for seconds in files:
        table.append(events(*seconds, zone=zone))
    return table


def ordered(table: Table, column: str = "t", **options: Any) -> Source:
    return Source(table.snapshot(), table.snapshot, SourceOptions(**options), event_time=column)


def batches(source: Source, limits: Limits, start: Position | None = None) -> list[list[float]]:
    """Return the seconds of the rows of each batch, as a reader gets them. Each position is parsed from its text again."""
    read_batches = []
    while (end := source.plan(start, limits)) != start:
        assert Position.parse(str(end)) == end
        read_batches.append(_read(source, start, end))
        start = Position.parse(str(end))
    return read_batches


def _read(source: Source, start: Position | None, end: Position) -> list[float]:
    bucket = source.bucket(start, end)
    rows: list[float] = []
    for file in source.files(start, end):
        of_snapshot = bucket is not None and file.version == bucket.version
        scan = Scan(source.read, bucket.predicate if of_snapshot and bucket else None)
        rows += [second for batch in scan.batches_of([file.action]) for second in batch["second"].to_pylist()]
    return sorted(rows)


def test_files_with_disjoint_times_come_in_event_time_order(memory_url: str) -> None:
    table = table_of(memory_url, [20, 29], [0, 9], [30, 39], [10, 19])
    assert batches(ordered(table), Limits(1)) == [[0, 9], [10, 19], [20, 29], [30, 39]]
    assert batches(ordered(table), Limits(2)) == [[0, 9, 10, 19], [20, 29, 30, 39]]
    assert batches(ordered(table), UNLIMITED) == [[0, 9, 10, 19, 20, 29, 30, 39]]
    first = ordered(table).plan(None, Limits(1))
    assert [len(ordered(table).files(*places)) for places in ((None, first), (first, ordered(table).end_now()))] == [1, 3]


@pytest.mark.parametrize("limits", [Limits(1), Limits(2), Limits(None, 1), Limits(3, 1500)])
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_every_row_comes_once_and_batches_are_in_event_time_order(
    memory_url: str, limits: Limits, zone: str | None, mode: str
) -> None:
    files = [[NULLS, 3, 97, 50], [0, 100], [20.000999, 20.001], [20.001, 20.0005, 40], [NULLS], [NULLS, NULLS, 99.9999]]
    table = table_of(memory_url, *files, zone=zone, properties={"delta.columnMapping.mode": mode})
    read_batches = batches(ordered(table), limits)
    assert sorted(row for batch in read_batches for row in batch) == sorted(row for file in files for row in file)
    assert (
        len(read_batches) > 2
        and [row for batch in read_batches[1:] for row in batch]
        and NULLS not in [row for batch in read_batches[1:] for row in batch]
    )
    ends = [max(batch) for batch in read_batches if batch]
    begins = [min(batch) for batch in read_batches[1:] if batch]
    assert all(end < begin for end, begin in zip(ends[:-1], begins, strict=True)), read_batches


def test_later_commits_follow_in_the_last_batch(memory_url: str) -> None:
    table = table_of(memory_url, [20, 29], [0, 9])
    source = ordered(table)
    table.append(events(5, 100))
    table.append(events(1))
    assert batches(source, Limits(3)) == [[0, 5, 9, 20, 29, 100], [1]]
    first = source.plan(None, Limits(1))
    assert batches(source, UNLIMITED, first) == [[1, 5, 20, 29, 100]]
    assert (first.version, first.index, first.is_initial_snapshot) == (2, BASE_INDEX, True)


def test_files_without_statistics_are_read_for_each_bucket(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29])
    table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    table.append(events(5, 25, NULLS))
    source = ordered(table)
    read_batches = batches(source, Limits(1))
    assert sorted(row for batch in read_batches for row in batch) == [NULLS, 0, 5, 9, 20, 25, 29] and len(read_batches) > 2
    table.set_properties({"delta.appendOnly": "true"})


def test_without_any_statistics_the_snapshot_is_one_batch_with_a_warning(
    memory_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(memory_url, [9], [0], properties={"delta.dataSkippingNumIndexedCols": "0"})
    assert batches(ordered(table), Limits(1)) == [[0, 9]]
    assert "ANALYZE TABLE" in caplog.text and memory_url in caplog.text


def test_an_empty_table_has_no_buckets(memory_url: str, caplog: pytest.LogCaptureFixture) -> None:
    table = table_of(memory_url)
    source = ordered(table)
    assert source.plan(None, Limits(1)) == Position(table.snapshot().metadata.id, 1)
    assert not caplog.text


def test_times_of_partitions_are_exact(memory_url: str) -> None:
    table = Table.create(memory_url, events().schema, partition_by=["t"])
    table.append(events(2, 0, NULLS, 1))
    assert batches(ordered(table), Limits(1)) == [[NULLS, 0], [1], [2]]


def test_deleted_rows_are_omitted_and_later_commits_do_not_change_the_snapshot(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9, 25], [20, 29], properties={"delta.enableDeletionVectors": "true"})
    table.delete("second = 25")
    source = ordered(table, skip_change_commits=True)
    end = source.plan(None, Limits(1))
    table.delete("second > 20")  # rows that the stream has not read yet, and that are in its snapshot
    again = ordered(table, skip_change_commits=True)
    assert [file.action.path for file in source.files(None, end)] == [file.action.path for file in again.files(None, end)]
    assert _read(again, None, end) == [0, 9, 20] and _read(again, end, again.end_now()) == [29]


def test_the_backlog_counts_files_that_may_have_later_rows(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29], [10, 25])
    source = ordered(table)
    sizes = {row["path"]: row["size"] for row in table.snapshot().files().to_pylist()}
    end = Position(table.snapshot().metadata.id, 3, BASE_INDEX, True, EventTime("t", _micros(15)))
    assert source.waiting(end, 3, 10) == Backlog(2, sum(file.size for file in source.files(end, source.end_now())))
    assert len(sizes) == 3


def _micros(second: float) -> int:
    return int((START + timedelta(seconds=second)).timestamp() * 1_000_000)


def test_the_order_cannot_be_changed_midway(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29])
    table.add_columns(pa.schema([("u", pa.timestamp("us", "UTC"))]))
    midway = ordered(table).plan(None, Limits(1))
    by_files = Source(table.snapshot(), table.snapshot, SourceOptions()).plan(None, Limits(1))
    assert midway.event_time is not None and by_files.index == 0
    plain = Source(table.snapshot(), table.snapshot, SourceOptions())
    for source, start in [(plain, midway), (ordered(table, "u"), midway), (ordered(table), by_files)]:
        for ask in (source.plan, partial(source.files, end=source.end_now()), partial(source.files, None)):
            with pytest.raises(InvalidRequest) as caught:
                ask(start)
            assert caught.value.code == "TAHOE_EVENT_TIME_ORDER_CHANGED"
    with pytest.raises(InvalidRequest):
        next(table.tail(position=midway))
    behind = plain.end_now()
    assert ordered(table).plan(behind) == plain.plan(behind) == behind


@pytest.mark.parametrize("column", ["second", "missing"])
def test_only_a_timestamp_column_can_order_the_snapshot(memory_url: str, column: str) -> None:
    with pytest.raises(Unsupported, match=f"'{column}'"):
        EventTimeOrder(table_of(memory_url).snapshot().config, column)


@pytest.mark.parametrize("years", [(1, 9999), (1, 1), (9999, 9999)])
def test_the_ends_of_time_are_in_the_first_and_the_last_bucket(memory_url: str, years: tuple[int, int]) -> None:
    table = Table.create(memory_url, events().schema)
    far = [datetime(years[0], 1, 1, tzinfo=UTC), datetime(years[1], 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    for number, time in enumerate(far):
        table.append(pa.table({"t": pa.array([time], pa.timestamp("us", "UTC")), "second": [float(number)]}))
    assert [row for batch in batches(ordered(table), Limits(1)) for row in batch] == [0, 1]


def test_many_rows_with_one_timestamp_are_one_bucket(memory_url: str) -> None:
    table = table_of(memory_url, *([[7.0]] * 5), [8.0])
    assert batches(ordered(table), Limits(2)) == [[7.0] * 5, [8.0]]


def test_an_overwritten_table_s_snapshot_is_still_read(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29])
    source = ordered(table, skip_change_commits=True)
    end = source.plan(None, Limits(1))
    table.overwrite(events(50))
    assert batches(ordered(table, skip_change_commits=True), Limits(1), end) == [[20, 29]]


def test_positions_in_time_are_in_order(memory_url: str) -> None:
    earlier, later = (Position("id", 3, BASE_INDEX, True, EventTime("t", micros)) for micros in (-5, 5))
    begin, behind = Position("id", 3, BASE_INDEX, True), Position("id", 4)
    assert begin < earlier < later < behind and not later < earlier and earlier <= earlier
