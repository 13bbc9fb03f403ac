"""A table as a stream: batch boundaries, the files between positions, the start of a stream, and the commits that stop it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.log.files.paths import commit_name
from tahoe.ops.rows.insert import WriteOptions
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.admission import UNLIMITED, Limits
from tahoe.stream.position import BASE_INDEX, METADATA_CHANGE_INDEX, Position
from tahoe.stream.schema_changes import ReadSchema
from tahoe.stream.source import Backlog, Source
from tahoe.stream.source_options import SourceOptions

Make = Callable[..., Table]


def source(table: Table, **options: Any) -> Source:
    return Source(table.snapshot(), table.snapshot, SourceOptions(**options))


def at(table: Table, version: int, index: int = BASE_INDEX, initial: bool = False) -> Position:
    return Position(table.snapshot().metadata.id, version, index, initial)


def ends(stream: Source, start: Position | None, limits: Limits, up_to: Position | None = None) -> list[tuple[int, int, bool]]:
    """Return the end of each batch, until one does not advance."""
    positions = []
    while (end := stream.plan(start, limits, up_to)) != start:
        positions.append((end.version, end.index, end.is_initial_snapshot))
        start = end
    return positions


def places(stream: Source, start: Position | None, end: Position) -> list[tuple[int, int]]:
    return [(file.version, file.index) for file in stream.files(start, end)]


def test_the_initial_snapshot_is_split_and_commits_follow(make: Make) -> None:
    table = make([1, 2], [3])
    stream = source(table)
    table.append(pa.table({"id": [4, 5, 6]}), max_rows_per_file=1)
    assert ends(stream, None, Limits(2)) == [(2, 1, True), (3, 0, False), (4, BASE_INDEX, False)]
    assert places(stream, None, at(table, 2, 1, True)) == [(2, 0), (2, 1)]
    assert places(stream, at(table, 2, 1, True), at(table, 3, 0)) == [(2, 2), (3, 0)]
    assert places(stream, at(table, 3, 0), at(table, 4)) == [(3, 1), (3, 2)]


def test_a_huge_commit_is_split(make: Make) -> None:
    table = make([*range(7)])
    assert ends(source(table, starting_version=1), None, Limits(3)) == [(1, 2, False), (1, 5, False), (2, BASE_INDEX, False)]


def test_commits_without_files_end_with_the_batch_before_them(make: Make) -> None:
    table = make([1])
    table.set_properties({"delta.appendOnly": "false"})
    table.append(pa.table({"id": [2]}))
    stream = source(table, starting_version=0)
    assert ends(stream, None, Limits(1)) == [(3, BASE_INDEX, False), (4, BASE_INDEX, False)]


def test_a_stream_stays_at_its_end_until_there_are_new_commits(make: Make) -> None:
    table = make([1])
    stream = source(table)
    end = stream.plan(None)
    assert end == at(table, 2) == stream.plan(end) and stream.files(end, end) == []
    table.append(pa.table({"id": [2]}))
    assert stream.plan(end) == at(table, 3)


def test_no_batch_exceeds_a_fixed_end(make: Make) -> None:
    table = make([1, 2, 3])
    stream = source(table)
    end = stream.end_now()
    table.append(pa.table({"id": [4]}))
    assert ends(stream, None, UNLIMITED, end) == [(2, BASE_INDEX, False)]
    assert ends(stream, None, UNLIMITED, at(table, 1, 1, True)) == [(1, 1, True)]
    assert ends(source(table, starting_version=1), None, UNLIMITED, at(table, 1, 1)) == [(1, 1, False)]


def test_an_empty_table_is_a_stream_too(make: Make) -> None:
    table = make()
    assert ends(source(table), None, Limits(1)) == [(1, BASE_INDEX, False)]


def test_reading_a_batch_again_returns_the_same_files(make: Make) -> None:
    table = make([1, 2], [3])
    before = source(table)
    end = before.plan(None, Limits(2))
    files_before = before.files(None, end)
    table.append(pa.table({"id": [4]}))
    assert source(table).files(None, end) == files_before
    later = at(table, 4)
    assert places(source(table), None, later) == [(3, 0), (3, 1), (3, 2), (3, 3)], "the snapshot before the end"


def test_a_position_of_delta_sparks_schema_tracking_is_before_the_files_of_its_version(make: Make) -> None:
    table = make([1], [2])
    assert places(source(table), at(table, 2, METADATA_CHANGE_INDEX), at(table, 3)) == [(2, 0)]


def test_a_stream_begins_at_a_version(make: Make) -> None:
    table = make([1], [2], [3])
    stream = source(table, starting_version=2)
    assert places(stream, None, stream.plan(None)) == [(2, 0), (3, 0)]
    for version in (4, 9):
        with pytest.raises(NotFound) as caught:
            source(table, starting_version=version).plan(None)
        assert caught.value.code == "DELTA_VERSION_NOT_FOUND"


def test_a_stream_may_begin_with_future_commits(make: Make) -> None:
    table = make([1])
    stream = source(table, starting_version="latest")
    start = stream.plan(None)
    assert start == at(table, 2)
    table.append(pa.table({"id": [2]}))
    assert places(stream, start, stream.plan(start)) == [(2, 0)]
    assert source(table, starting_version="latest").files(None, start) == [], "as it was at its beginning"


def test_a_stream_begins_at_a_time(make: Make) -> None:
    table = make([1], [2], properties={"delta.enableInCommitTimestamps": "true"}, clock=SeededClock(1))
    times = table.snapshot().times.between(0, table.version())
    for asked, version in ((times[0] - 1, 0), (times[1], 1), (times[1] + 1, 2), (times[2], 2)):
        assert source(table, starting_timestamp_ms=asked).begin == at(table, version)
    with pytest.raises(NotFound) as caught:
        source(table, starting_timestamp_ms=times[2] + 1).plan(None)
    assert caught.value.code == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"


@pytest.mark.parametrize("start", [{"starting_timestamp_ms": 7_000_000_000_000}, {"starting_version": 2}])
def test_a_late_start_means_future_commits_if_it_may_be_late(make: Make, start: dict[str, Any]) -> None:
    table = make([1])
    with pytest.raises(NotFound):
        source(table, **start).plan(None)
    stream = source(table, may_start_late=True, **start)
    begin = stream.plan(None)
    assert begin == at(table, 2)
    table.append(pa.table({"id": [2]}))
    assert places(stream, begin, stream.plan(begin)) == [(2, 0)]


def test_files_are_excluded_by_path_without_changing_indexes(make: Make) -> None:
    table = make([1, 2, 3])
    path = source(table, starting_version=1).files(None, at(table, 2))[1].action.path
    stream = source(table, starting_version=1, exclude_regex=path[:20])
    assert places(stream, None, at(table, 2)) == [(1, 0), (1, 2)]


def test_a_commit_that_deletes_stops_the_stream_exactly_before_it(make: Make) -> None:
    table = make([1], [2])
    table.delete()
    table.append(pa.table({"id": [3]}))
    stream = source(table, starting_version=1)
    first = stream.plan(None)
    assert first == at(table, 3)
    with pytest.raises(InvalidRequest) as caught:
        stream.plan(first)
    assert caught.value.code == "DELTA_SOURCE_IGNORE_DELETE"
    tolerant = source(table, starting_version=1, ignore_deletes=True)
    assert places(tolerant, None, tolerant.plan(None)) == [(1, 0), (2, 0), (4, 0)]


def test_a_batch_that_ends_before_a_commit_does_not_read_it(make: Make) -> None:
    table = make([1])
    table.delete()
    assert places(source(table, starting_version=1), None, at(table, 2)) == [(1, 0)]


def test_a_new_column_stops_the_stream_and_a_new_stream_continues(make: Make) -> None:
    table = make([1])
    stream = source(table)
    end = stream.plan(None)
    table.append(pa.table({"id": [2], "more": ["x"]}), merge_schema=True)
    with pytest.raises(InvalidRequest, match="from its last position") as caught:
        stream.plan(end)
    assert caught.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"
    again = source(table)
    assert places(again, end, again.plan(end)) == [(2, 0)]


def test_the_metadata_at_the_start_of_a_stream_is_checked(make: Make) -> None:
    table = make([1])
    start = source(table).plan(None)
    table.append(pa.table({"id": [2]}))
    table.overwrite(pa.table({"other": ["x"]}), overwrite_schema=True)
    with pytest.raises(InvalidRequest) as caught:
        source(table, skip_change_commits=True).plan(start)
    assert caught.value.code == "DELTA_SCHEMA_CHANGED_WITH_VERSION"


def test_a_recreated_table_is_detected(make: Make) -> None:
    table = make([1], [2])
    stream, start = source(table), at(table, 1)
    for entry in list(table.store.walk()):
        table.store.delete(entry.name)
    table = make([1], [2])
    for stale in (
        stream.end_now,
        lambda: stream.plan(start),
        lambda: source(table).plan(start),
        lambda: source(table).files(start, start),
    ):
        with pytest.raises(InvalidRequest) as caught:
            stale()
        assert caught.value.code == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_position_beyond_the_log_is_an_error(make: Make) -> None:
    table = make([1])
    with pytest.raises(NotFound) as caught:
        source(table).plan(at(table, 3))
    assert caught.value.code == "DELTA_STREAMING_TRAILING_COMMIT_MISSING"


def test_a_batch_does_not_go_back(make: Make) -> None:
    table = make([1], [2])
    with pytest.raises(InvalidRequest, match="rows would come twice"):
        source(table).files(at(table, 2), at(table, 1))


def test_a_stream_s_initial_snapshot_may_be_lost(make: Make) -> None:
    table = make([1, 2], [3])
    start = source(table).plan(None, Limits(1))
    table.append(pa.table({"id": [4]}))
    table.checkpoint()
    for version in range(3):
        table.store.delete(commit_name(version))
    with pytest.raises(NotFound, match="Start a new stream") as caught:
        source(Table(table.url, store=table.store)).plan(start)
    assert caught.value.code == "DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE"


def test_the_start_of_a_table_with_column_mapping_must_be_known(make: Make) -> None:
    table = make([1], [2], properties={"delta.columnMapping.mode": "name"})
    table.append(pa.table({"id": [4]}))
    table.checkpoint()
    for version in range(2):
        table.store.delete(commit_name(version))
    fresh = Table(table.url, store=table.store)
    with pytest.raises(NotFound) as caught:
        source(fresh).plan(at(table, 2))
    assert caught.value.code == "DELTA_STREAMING_CHECK_COLUMN_MAPPING_NO_SNAPSHOT"


def test_a_feed_does_not_split_commits_whose_files_belong_together(make: Make) -> None:
    table = make([1, 2], [3])
    table.delete("id > 0")
    assert table.snapshot().num_files == 0
    table.append(pa.table({"id": [4, 5]}), max_rows_per_file=2)
    table.delete("id = 4")
    stream = source(table, read_change_feed=True, starting_version=1)
    stops = ends(stream, None, Limits(1))
    assert (4, BASE_INDEX, False) in stops and stops[-1] == (6, BASE_INDEX, False)
    assert [version for version, index, _ in stops if version == 5 and index >= 0] == []
    assert places(stream, at(table, 5), at(table, 6)) == [(5, 0), (5, 1)]


@pytest.mark.parametrize("switched_off_at", [0, 2])
def test_a_disabled_feed_stops_the_stream(make: Make, switched_off_at: int) -> None:
    table = make([1], properties={"delta.enableChangeDataFeed": str(switched_off_at > 0).lower()})
    table.set_properties({"delta.enableChangeDataFeed": str(switched_off_at == 0).lower()})
    stream = source(table, read_change_feed=True, starting_version=switched_off_at and 1)
    with pytest.raises(InvalidRequest) as caught:
        stream.plan(stream.plan(None))
    assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"


@pytest.mark.parametrize("timed", [True, False])
def test_the_times_of_commits(make: Make, timed: bool) -> None:
    table = make([1], [2], properties={"delta.enableInCommitTimestamps": str(timed).lower()})
    stream = source(table, starting_version=1)
    expected = table.snapshot().times.between(0, table.version())
    times = stream.times(stream.files(None, at(table, 3)))
    assert {version: times[version] for version in (1, 2)} == {version: expected[version] for version in (1, 2)}


def test_the_commit_of_the_initial_snapshot_is_not_part_of_the_stream(make: Make) -> None:
    table = make([1, 2, 3])
    table.overwrite(pa.table({"id": [4, 5, 6]}), max_rows_per_file=1)
    stream = source(table)
    assert ends(stream, None, Limits(2)) == [(2, 1, True), (3, BASE_INDEX, False)]
    assert places(stream, None, at(table, 2, 1, True)) == [(2, 0), (2, 1)]
    assert places(stream, at(table, 2, 1, True), at(table, 3)) == [(2, 2)]


def test_a_commit_during_the_start_of_a_stream_is_harmless(make: Make) -> None:
    table = make([1])

    def newest() -> Snapshot:
        table.append(pa.table({"id": [2]}))
        return table.snapshot()

    stream = Source(table.snapshot(), newest, SourceOptions(starting_version="latest"))
    start = stream.plan(None)
    assert places(stream, start, stream.plan(start))[0] == (start.version, 0)


def test_the_backlog_is_counted_as_far_as_the_stream_will_read(make: Make) -> None:
    table = make([1, 2], [3])
    stream = source(table)
    table.append(pa.table({"id": [4, 5]}), max_rows_per_file=1)
    sizes = dict(enumerate(table.snapshot().files()["size"].to_pylist()))
    newest = table.version()
    assert stream.waiting(at(table, 2, 0, True), newest, 9) == Backlog(4, sum(sizes.values()) // len(sizes) * 4)
    assert stream.waiting(at(table, newest, 0), newest, 9) == Backlog(1, sizes[0])
    assert stream.waiting(at(table, newest + 1), newest, 9) == Backlog(0, 0)
    assert stream.waiting(at(table, 1), newest, 1) is None
    table.append(pa.table({"id": [6]}))
    table.delete("id in (4, 6)")
    table.append(pa.table({"id": [7]}))
    assert stream.waiting(at(table, newest), table.version(), 9) == Backlog(3, sizes[0] * 3)


def test_a_resumed_stream_checks_column_names_at_its_last_version(make: Make) -> None:
    table = make([1], properties={"delta.columnMapping.mode": "name"})
    before = at(table, 2)
    source(table).resume(before)
    table.rename_column("id", "number")
    for position in (before, at(table, 1, 0), at(table, 1, 0, True)):
        with pytest.raises(InvalidRequest) as caught:
            source(table).resume(position)
        assert caught.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
    source(table).resume(at(table, 3))
    with pytest.raises(InvalidRequest) as caught:
        source(table).resume(Position("another", 2))
    assert caught.value.code == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"


def test_a_rename_within_the_last_batch_does_not_stop_the_stream(make: Make) -> None:
    """The reference checks the schema at the start of that batch, of which nothing is read any more, and would stop this stream
    permanently."""
    table = make([1])
    table.write(pa.table({"more": [7], "id": [2]}), WriteOptions("overwrite", overwrite_schema=True))
    table.write(pa.table({"id": [3]}), WriteOptions("overwrite", overwrite_schema=True))
    table.append(pa.table({"id": [4]}))
    now, began = table.snapshot(), Snapshot.at(table.store, 2)
    with pytest.raises(InvalidRequest):
        ReadSchema(now.config, now.version).check(began.config, began.version)
    stream = source(table, skip_change_commits=True)
    stream.resume(at(table, 4))
    assert places(stream, at(table, 4), stream.plan(at(table, 4))) == [(4, 0)]
    # A planned batch that is not done is read again from its beginning.
    with pytest.raises(InvalidRequest):
        source(table, skip_change_commits=True).files(at(table, 2), at(table, 5))


@pytest.mark.parametrize("names", [("number", "id"), ("number", "other")], ids=["and back", "twice"])
def test_a_column_that_is_renamed_after_the_last_batch_stops_the_stream_whatever_the_batch_s_start(
    make: Make, names: tuple[str, str]
) -> None:
    table = make([1], [2], properties={"delta.columnMapping.mode": "name"})
    done = at(table, 3)
    for old, new in zip(("id", *names), names, strict=False):
        table.rename_column(old, new)
    stream = source(table)
    # If the names were restored, only the commits in between show the change.
    if names[-1] == "id":
        stream.resume(done)
    with pytest.raises(InvalidRequest) as caught:
        stream.plan(done) if names[-1] == "id" else stream.resume(done)
    assert caught.value.code == "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"
