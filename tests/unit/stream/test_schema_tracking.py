"""A stream that tracks its table's schema: where it stops, the content of its log, and how it continues; without Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.protocol.actions import Protocol
from tahoe.stream.admission import Limits
from tahoe.stream.position import BASE_INDEX, METADATA_CHANGE_INDEX, POST_METADATA_CHANGE_INDEX, Position
from tahoe.stream.schema_log import SchemaLog
from tahoe.stream.schema_tracking import SchemaTracking, check_log, combine_upcoming_changes, read_with
from tahoe.stream.source import Source
from tahoe.stream.source_options import SourceOptions
from tahoe.stream.tracked_changes import AllowedChanges

Make = Callable[..., Table]
EVOLVED = "DELTA_STREAMING_METADATA_EVOLUTION"
PLACE = "file:/at/sources/0"
MAPPED = {"delta.columnMapping.mode": "name"}


class Stream:
    """One start of a query: its source, with a log stored beside the table."""

    def __init__(self, table: Table, **options: Any) -> None:
        self.log = SchemaLog(Table(f"{table.url}_log").store, table.url)
        self.source = Source(table.snapshot(), table.snapshot, SourceOptions(**options), SchemaTracking(self.log, PLACE))

    def evolves(self, act: Callable[[], object]) -> int:
        """Return the version of the log's newest file, after the stream has stopped."""
        with pytest.raises(InvalidRequest, match="Start the stream again") as caught:
            act()
        assert caught.value.code == EVOLVED and self.log.current is not None
        return self.log.current.version


def place(position: Position) -> tuple[int, int]:
    return position.version, position.index


def rename(table: Table, old: str, new: str) -> None:
    table.rename_column(old, new)


def test_a_batch_ends_before_a_change_and_the_next_after_it(make: Make) -> None:
    table = make([1], properties=MAPPED)
    stream = Stream(table)
    first = stream.source.plan(None)
    assert place(first) == (2, BASE_INDEX) and stream.log.current is not None and stream.log.current.version == 1
    table.append(pa.table({"id": [2]}))
    rename(table, "id", "number")
    table.append(pa.table({"number": [3]}))
    before = stream.source.plan(first)
    assert place(before) == (3, METADATA_CHANGE_INDEX)
    assert [file.version for file in stream.source.files(first, before)] == [2]
    stream.source.done(first)
    after = stream.source.plan(before)
    assert place(after) == (3, POST_METADATA_CHANGE_INDEX) and stream.source.files(before, after) == []
    assert stream.evolves(lambda: stream.source.done(before)) == 3
    again = Stream(table)
    assert again.source.read.schema.names == ["number"]
    again.source.resume(before)
    again.source.done(after)
    end = again.source.plan(after)
    assert place(end) == (5, BASE_INDEX) and [file.version for file in again.source.files(after, end)] == [4]


def test_a_query_killed_between_its_checkpoint_and_its_log_stops_on_restart(make: Make) -> None:
    """Spark has stored the position after the change as done, but the source was not notified."""
    table = make([1])
    begun = Stream(table)
    begun.source.plan(None)
    table.set_properties({"delta.appendOnly": "true"})
    after = Position(table.snapshot().metadata.id, 2, POST_METADATA_CHANGE_INDEX)
    again = Stream(table)
    assert again.evolves(lambda: again.source.plan(after)) == 2
    assert place(Stream(table).source.plan(after)) == (3, BASE_INDEX)


def test_a_change_ends_a_batch_whatever_its_limits(make: Make) -> None:
    table = make([1])
    stream = Stream(table, starting_version=1)
    table.set_properties({"delta.appendOnly": "true"})
    assert place(stream.source.plan(None, Limits(1))) == (2, METADATA_CHANGE_INDEX)


def test_a_log_started_at_an_older_schema_stops_the_stream_once(make: Make) -> None:
    table = make([1], properties=MAPPED)
    rename(table, "id", "number")
    stream = Stream(table, starting_version=1)
    assert stream.evolves(lambda: stream.source.plan(None)) == 1
    again = Stream(table, starting_version=1)
    assert again.source.read.schema.names == ["id"]
    assert place(again.source.plan(None)) == (2, METADATA_CHANGE_INDEX)


@pytest.mark.parametrize("latest", [False, True])
def test_a_log_starts_at_an_older_stream_s_position(make: Make, latest: bool) -> None:
    """The option is set on a stream that a renamed column has stopped."""
    table = make([1], properties=MAPPED)
    rename(table, "id", "number")
    options = {"starting_version": "latest"} if latest else {}
    stream = Stream(table, **options)
    done = Position(table.snapshot().metadata.id, 2)
    assert stream.evolves(lambda: stream.source.resume(done)) == 1
    again = Stream(table, **options)
    again.source.resume(done)
    assert place(again.source.plan(done)) == (2, METADATA_CHANGE_INDEX)


def test_a_batch_planned_before_the_log_existed_needs_a_single_schema(make: Make) -> None:
    table = make([1], [2], properties=MAPPED)
    table_id = table.snapshot().metadata.id
    stream = Stream(table)
    assert len(stream.source.files(Position(table_id, 1), Position(table_id, 3))) == 2
    assert stream.log.current is not None and stream.log.current.version == 2
    rename(table, "id", "number")
    table.append(pa.table({"number": [3]}))
    other = Source(
        table.snapshot(), table.snapshot, SourceOptions(), SchemaTracking(SchemaLog(Table(f"{table.url}_2").store, "t"), PLACE)
    )
    with pytest.raises(InvalidRequest) as caught:
        other.files(Position(table_id, 1), Position(table_id, 5))
    assert caught.value.code == "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA"


def test_the_log_is_replaced_if_nothing_of_an_older_snapshot_was_read(make: Make) -> None:
    table = make([1], properties=MAPPED)
    Stream(table).source.plan(None)  # killed before Spark stored the end of the first batch
    rename(table, "id", "number")
    again = Stream(table)
    assert again.evolves(lambda: again.source.plan(None)) == 2
    assert again.log.previous is None  # so no change needs to be allowed
    final = Stream(table)
    assert final.source.read.schema.names == ["number"] and place(final.source.plan(None)) == (3, BASE_INDEX)


def test_consecutive_changes_are_combined(make: Make) -> None:
    table = make([1], properties=MAPPED)
    stream = Stream(table)
    done = stream.source.plan(None)
    for old, new in (("id", "b"), ("b", "c"), ("c", "id")):
        rename(table, old, new)
    assert place(stream.source.plan(done)) == (2, METADATA_CHANGE_INDEX)
    after = Position(done.table_id, 2, POST_METADATA_CHANGE_INDEX)
    stream.evolves(lambda: stream.source.plan(after))
    log = Stream(table).log
    assert log.current is not None and log.current.version == 2
    with pytest.raises(InvalidRequest, match="'id' was renamed to 'b'"):
        check_log(log, table.snapshot().config, PLACE, AllowedChanges())
    merged = combine_upcoming_changes(table.store, log.current)
    assert merged is not None and merged.version == 4
    log.add(merged, replaces=True)
    check_log(log, table.snapshot().config, PLACE, AllowedChanges())  # in total, nothing was renamed
    assert place(Stream(table).source.plan(after)) == (5, BASE_INDEX)
    assert combine_upcoming_changes(table.store, merged) is None
    table.append(pa.table({"id": [2]}))
    assert combine_upcoming_changes(table.store, merged) is None


def test_a_log_of_another_table_or_another_source_is_refused(make: Make) -> None:
    table = make([1])
    stream = Stream(table)
    stream.source.plan(None)
    config = table.snapshot().config
    with pytest.raises(InvalidRequest) as caught:
        check_log(stream.log, config, "file:/at/sources/1", AllowedChanges())
    assert caught.value.code == "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"
    check_log(stream.log, config, "file:/at/sources/1", AllowedChanges(), checks_path=False)
    second_table = Table.create(f"{table.url}_other", pa.schema([("id", pa.int64())]))
    with pytest.raises(InvalidRequest) as caught:
        check_log(stream.log, second_table.snapshot().config, PLACE, AllowedChanges())
    assert caught.value.code == "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID"


def test_a_disabled_feed_ends_the_stream_as_without_tracking(make: Make) -> None:
    table = make([1])
    stream = Stream(table, read_change_feed=True, starting_version=1)
    first = stream.source.plan(None)
    table.set_properties({"delta.enableChangeDataFeed": "false"})
    with pytest.raises(InvalidRequest) as caught:
        stream.source.plan(first)
    assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"


def test_rows_are_read_with_the_log_s_schema_and_the_version_s_files(make: Make) -> None:
    table = make([1], properties=MAPPED)
    stream = Stream(table)
    stream.source.plan(None)
    rename(table, "id", "number")
    newest = table.snapshot()
    read = read_with(newest, stream.log.current)
    assert (read.schema.names, newest.schema.names, read.version) == (["id"], ["number"], 2)
    assert read.files().equals(newest.files()) and read_with(newest, None) is newest
    assert stream.log.current is not None
    unknown = Protocol(3, 7, frozenset({"columnMapping", "timestampNanos"}), frozenset({"columnMapping", "timestampNanos"}))
    with pytest.raises(Unsupported, match="timestampNanos"):
        read_with(newest, replace(stream.log.current, protocol=unknown))
