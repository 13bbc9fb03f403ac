"""An initial snapshot by the time of its events: where buckets end, that each row lies in one, and what a stream may not change midway."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.snapshot.scan import Scan
from tahoe.stream.admission import UNLIMITED, Limits
from tahoe.stream.event_time_order import EventTimeOrder
from tahoe.stream.position import BASE_INDEX, EventTime, Position
from tahoe.stream.source import Source, Waiting
from tahoe.stream.source_options import SourceOptions
from tahoe.table import Table

START = datetime(2024, 3, 1, tzinfo=UTC)
NULLS = -1
"""In place of seconds: a row without a time."""


def events(*seconds: float, zone: str | None = "UTC") -> pa.Table:
    """Rows with times so many seconds after `START`."""
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
    """The seconds of the rows of each batch, as a reader of batches gets them. Each position is read back from its text."""
    found = []
    while (end := source.plan(start, limits)) != start:
        assert Position.parse(str(end)) == end
        found.append(_read(source, start, end))
        start = Position.parse(str(end))
    return found


def _read(source: Source, start: Position | None, end: Position) -> list[float]:
    bucket = source.bucket(start, end)
    rows: list[float] = []
    for file in source.files(start, end):
        of_snapshot = bucket is not None and file.version == bucket.version
        scan = Scan(source.read, bucket.predicate if of_snapshot and bucket else None)
        rows += [second for batch in scan.batches_of([file.action]) for second in batch["second"].to_pylist()]
    return sorted(rows)


def test_files_apart_from_each_other_come_one_a_batch_by_their_times_and_not_by_when_they_were_written(memory_url: str) -> None:
    table = table_of(memory_url, [20, 29], [0, 9], [30, 39], [10, 19])
    assert batches(ordered(table), Limits(1)) == [[0, 9], [10, 19], [20, 29], [30, 39]]
    assert batches(ordered(table), Limits(2)) == [[0, 9, 10, 19], [20, 29, 30, 39]]
    assert batches(ordered(table), UNLIMITED) == [[0, 9, 10, 19, 20, 29, 30, 39]]
    first = ordered(table).plan(None, Limits(1))
    assert [len(ordered(table).files(*places)) for places in ((None, first), (first, ordered(table).end_now()))] == [1, 3]


@pytest.mark.parametrize("limits", [Limits(1), Limits(2), Limits(None, 1), Limits(3, 1500)])
@pytest.mark.parametrize("zone", ["UTC", None])
@pytest.mark.parametrize("mode", ["none", "name", "id"])
def test_every_row_comes_once_and_none_later_than_one_of_a_later_batch(
    memory_url: str, limits: Limits, zone: str | None, mode: str
) -> None:
    files = [[NULLS, 3, 97, 50], [0, 100], [20.000999, 20.001], [20.001, 20.0005, 40], [NULLS], [NULLS, NULLS, 99.9999]]
    table = table_of(memory_url, *files, zone=zone, properties={"delta.columnMapping.mode": mode})
    found = batches(ordered(table), limits)
    assert sorted(row for batch in found for row in batch) == sorted(row for file in files for row in file)
    assert (
        len(found) > 2
        and [row for batch in found[1:] for row in batch]
        and NULLS not in [row for batch in found[1:] for row in batch]
    )
    ends = [max(batch) for batch in found if batch]
    begins = [min(batch) for batch in found[1:] if batch]
    assert all(end < begin for end, begin in zip(ends[:-1], begins, strict=True)), found


def test_the_commits_after_it_come_as_ever_and_share_the_last_batch(memory_url: str) -> None:
    table = table_of(memory_url, [20, 29], [0, 9])
    source = ordered(table)
    table.append(events(5, 100))
    table.append(events(1))
    assert batches(source, Limits(3)) == [[0, 5, 9, 20, 29, 100], [1]]
    first = source.plan(None, Limits(1))
    assert batches(source, UNLIMITED, first) == [[1, 5, 20, 29, 100]]
    assert (first.version, first.index, first.is_initial_snapshot) == (2, BASE_INDEX, True)


def test_files_without_statistics_are_looked_into_for_each_bucket(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29])
    table.set_properties({"delta.dataSkippingNumIndexedCols": "0"})
    table.append(events(5, 25, NULLS))
    source = ordered(table)
    found = batches(source, Limits(1))
    assert sorted(row for batch in found for row in batch) == [NULLS, 0, 5, 9, 20, 25, 29] and len(found) > 2
    table.set_properties({"delta.appendOnly": "true"})


def test_without_any_statistics_the_snapshot_is_one_batch_and_that_is_told(
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


def test_times_that_partition_a_table_are_known_exactly(memory_url: str) -> None:
    table = Table.create(memory_url, events().schema, partition_by=["t"])
    table.append(events(2, 0, NULLS, 1))
    assert batches(ordered(table), Limits(1)) == [[NULLS, 0], [1], [2]]


def test_rows_of_deletion_vectors_stay_away_and_later_commits_change_nothing_of_the_snapshot(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9, 25], [20, 29], properties={"delta.enableDeletionVectors": "true"})
    table.delete("second = 25")
    source = ordered(table, skip_change_commits=True)
    end = source.plan(None, Limits(1))
    table.delete("second > 20")  # of what the stream has yet to read, and is in its snapshot
    again = ordered(table, skip_change_commits=True)
    assert [file.action.path for file in source.files(None, end)] == [file.action.path for file in again.files(None, end)]
    assert _read(again, None, end) == [0, 9, 20] and _read(again, end, again.end_now()) == [29]


def test_what_waits_is_what_may_hold_later_rows(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29], [10, 25])
    source = ordered(table)
    sizes = {row["path"]: row["size"] for row in table.snapshot().files().to_pylist()}
    end = Position(table.snapshot().metadata.id, 3, BASE_INDEX, True, EventTime("t", _micros(15)))
    assert source.waiting(end, 3, 10) == Waiting(2, sum(file.size for file in source.files(end, source.end_now())))
    assert len(sizes) == 3


def _micros(second: float) -> int:
    return int((START + timedelta(seconds=second)).timestamp() * 1_000_000)


def test_nothing_of_the_order_can_be_changed_midway(memory_url: str) -> None:
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
def test_only_a_timestamp_of_the_table_orders_it(memory_url: str, column: str) -> None:
    with pytest.raises(Unsupported, match=f"'{column}'"):
        EventTimeOrder(table_of(memory_url).snapshot().config, column)


@pytest.mark.parametrize("years", [(1, 9999), (1, 1), (9999, 9999)])
def test_the_ends_of_time_are_in_the_first_and_the_last_bucket(memory_url: str, years: tuple[int, int]) -> None:
    table = Table.create(memory_url, events().schema)
    far = [datetime(years[0], 1, 1, tzinfo=UTC), datetime(years[1], 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    for number, time in enumerate(far):
        table.append(pa.table({"t": pa.array([time], pa.timestamp("us", "UTC")), "second": [float(number)]}))
    assert [row for batch in batches(ordered(table), Limits(1)) for row in batch] == [0, 1]


def test_many_rows_of_one_moment_are_one_bucket(memory_url: str) -> None:
    table = table_of(memory_url, *([[7.0]] * 5), [8.0])
    assert batches(ordered(table), Limits(2)) == [[7.0] * 5, [8.0]]


def test_a_table_that_was_overwritten_is_still_read_as_it_was(memory_url: str) -> None:
    table = table_of(memory_url, [0, 9], [20, 29])
    source = ordered(table, skip_change_commits=True)
    end = source.plan(None, Limits(1))
    table.overwrite(events(50))
    assert batches(ordered(table, skip_change_commits=True), Limits(1), end) == [[20, 29]]


def test_positions_in_time_are_in_order(memory_url: str) -> None:
    one, other = (Position("id", 3, BASE_INDEX, True, EventTime("t", micros)) for micros in (-5, 5))
    begin, behind = Position("id", 3, BASE_INDEX, True), Position("id", 4)
    assert begin < one < other < behind and not other < one and one <= one
