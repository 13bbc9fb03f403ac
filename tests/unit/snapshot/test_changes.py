"""The change data feed: from change data files, from added and removed files, and from pairs of deletion vectors."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.log.replay import add_files
from tahoe.ops.rows.insert import WriteOptions
from tahoe.snapshot.changes import Bounds, feed
from tahoe.txn.transaction import Operation

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def numbers(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def make(path: Path, properties: dict[str, str] = FEED, **options: Any) -> Table:
    return Table.create(path / "t", numbers().schema, properties=properties, **options)


def reported(changes: pa.Table) -> list[tuple[int, str, int]]:
    return sorted((row["_commit_version"], row["_change_type"], row["id"]) for row in changes.to_pylist())


def test_appends_overwrites_and_deletes_are_reported_commit_by_commit(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1, 2))
    table.overwrite(numbers(2, 3))
    table.delete("id = 2")
    assert reported(table.changes(0)) == [
        (1, "insert", 1),
        (1, "insert", 2),
        (2, "delete", 1),
        (2, "delete", 2),
        (2, "insert", 2),
        (2, "insert", 3),
        (3, "delete", 2),
    ]
    assert reported(table.changes(2, 2)) == [row for row in reported(table.changes(0)) if row[0] == 2]


def test_the_columns_are_those_of_the_table_and_three_more(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    assert table.changes(0).schema == pa.schema(
        [
            ("id", pa.int64()),
            ("_change_type", pa.string()),
            ("_commit_version", pa.int64()),
            ("_commit_timestamp", pa.timestamp("us", "UTC")),
        ]
    )
    assert table.changes(0)["_commit_timestamp"].to_pylist() == [table.history(1)[0]["timestamp"]]


def test_a_vector_that_shrinks_brings_rows_back(tmp_path: Path) -> None:
    table = make(tmp_path, {**FEED, **VECTORS})
    table.append(numbers(1, 2, 3))
    before = add_files(table.files())
    table.delete("id > 1")
    transaction = table.begin()
    transaction.stage(*(add.remove(1) for add in add_files(table.files())), *before)
    table.commit(transaction, Operation("RESTORE"))
    assert reported(table.changes(3)) == [(3, "insert", 2), (3, "insert", 3)]


def test_a_file_that_comes_or_goes_with_a_vector_shows_its_living_rows(tmp_path: Path) -> None:
    table = make(tmp_path, {**FEED, **VECTORS})
    table.append(numbers(1, 2, 3))
    table.delete("id = 2")
    marked = add_files(table.files())
    table.overwrite(numbers(9))
    assert reported(table.changes(3)) == [(3, "delete", 1), (3, "delete", 3), (3, "insert", 9)]
    transaction = table.begin()
    transaction.stage(*(add.remove(1) for add in add_files(table.files())), *marked)
    table.commit(transaction, Operation("RESTORE"))
    assert reported(table.changes(4)) == [(4, "delete", 9), (4, "insert", 1), (4, "insert", 3)]


def test_files_that_are_only_laid_out_again_are_no_change(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1, 2))
    table.write(numbers(1, 2), WriteOptions("overwrite", data_change=False))
    assert reported(table.changes(2)) == []


def test_partition_values_come_back_with_their_types(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "day": [datetime(2024, 2, 29).date(), None]})
    table = Table.create(tmp_path / "t", rows.schema, partition_by=["day"], properties=FEED)
    table.append(rows)
    table.delete("id = 2")
    assert sorted(map(str, table.changes(0).select(["id", "day", "_change_type"]).to_pylist())) == [
        "{'id': 1, 'day': datetime.date(2024, 2, 29), '_change_type': 'insert'}",
        "{'id': 2, 'day': None, '_change_type': 'delete'}",
        "{'id': 2, 'day': None, '_change_type': 'insert'}",
    ]


def test_columns_added_later_are_null_in_earlier_changes(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    table.append(pa.table({"id": pa.array([2], pa.int64()), "name": ["b"]}), merge_schema=True)
    assert table.changes(1).select(["id", "name"]).to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": "b"}]
    assert "name" not in table.changes(1, 1).column_names


def test_a_column_that_was_dropped_on_the_way_is_reported(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    table.overwrite(pa.table({"other": ["x"]}), overwrite_schema=True)
    with pytest.raises(Unsupported) as caught:
        table.changes(1)
    # Only where the range begins, not where the schema changes: changes there already have the end's schema.
    assert caught.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"
    assert reported(table.changes(1, 1)) == [(1, "insert", 1)]
    table.overwrite(numbers(1), overwrite_schema=True)
    with pytest.raises(Unsupported) as caught:
        table.changes(1)
    assert caught.value.code == "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"


def test_versions_without_the_feed_are_refused(tmp_path: Path) -> None:
    table = make(tmp_path, {})
    table.append(numbers(1))
    table.set_properties(FEED)
    table.append(numbers(2))
    table.set_properties({"delta.enableChangeDataFeed": "false"})
    for start, end in ((0, 3), (1, 1), (1, 3), (2, 4), (4, 4)):
        with pytest.raises(InvalidRequest) as caught:
            table.changes(start, end)
        assert caught.value.code == "DELTA_MISSING_CHANGE_DATA"
    assert reported(table.changes(2, 3)) == [(3, "insert", 2)]


@pytest.mark.parametrize(
    ("bounds", "code"),
    [
        ({}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"end_version": 1}, "DELTA_NO_START_FOR_CDC_READ"),
        ({"start_version": 1, "start_timestamp": "2024-01-01"}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"start_version": 1, "end_version": 1, "end_timestamp": "2024-01-01"}, "DELTA_MULTIPLE_CDC_BOUNDARY"),
        ({"start_version": 2}, "DELTA_CDC_START_VERSION_AFTER_LATEST"),
        ({"start_version": 1, "end_version": 0}, "DELTA_INVALID_CDC_RANGE"),
        ({"start_timestamp": "2200-01-01"}, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"),
        ({"start_version": 0, "end_timestamp": "2000-01-01"}, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"),
        ({"start_version": -1}, "DELTA_LOG_FILE_NOT_FOUND"),
    ],
)
def test_bounds_that_make_no_range_are_named(tmp_path: Path, bounds: dict[str, Any], code: str) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    with pytest.raises((InvalidRequest, NotFound)) as caught:
        table.changes(**bounds)
    assert caught.value.code == code


def test_an_end_beyond_the_newest_version_is_the_newest(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    assert reported(table.changes(1, 99)) == [(1, "insert", 1)]


def test_timestamps_are_inclusive_at_both_ends(tmp_path: Path) -> None:
    clock = SeededClock(start_ms=1_700_000_000_000)
    table = make(tmp_path, {**FEED, "delta.enableInCommitTimestamps": "true"}, clock=clock)
    for i in range(1, 4):
        clock.sleep(60)
        table.append(numbers(i))
    times = {entry["version"]: entry["timestamp"] for entry in table.history()}
    assert reported(table.changes(start_timestamp=times[2], end_timestamp=times[3])) == [(2, "insert", 2), (3, "insert", 3)]
    between = datetime.fromtimestamp(times[1].timestamp() + 1, UTC)
    assert [row[0] for row in reported(table.changes(start_timestamp=between))] == [2, 3]
    assert reported(table.changes(start_version=0, end_timestamp=between)) == [(1, "insert", 1)]
    assert len(reported(table.changes(start_timestamp="2000-01-01"))) == 3


def test_two_times_between_the_same_commits_have_no_changes(tmp_path: Path) -> None:
    clock = SeededClock(start_ms=1_700_000_000_000)
    table = make(tmp_path, {**FEED, "delta.enableInCommitTimestamps": "true"}, clock=clock)
    clock.sleep(60)
    table.append(numbers(1))
    first, second = (datetime.fromtimestamp(1_700_000_000 + seconds, UTC) for seconds in (10, 20))
    changes = table.changes(start_timestamp=first, end_timestamp=second)
    assert changes.num_rows == 0 and changes.column_names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    with pytest.raises(InvalidRequest, match="DELTA_INVALID_CDC_RANGE"):
        table.changes(start_timestamp=second, end_timestamp=first)


def test_a_late_range_ends_with_the_newest_commit(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    latest, late_ms = table.snapshot(), 7_000_000_000_000

    def versions(**bounds: int) -> list[int]:
        return [file.version for file in feed(table.store, latest, Bounds(**bounds, may_be_late=True)).files()]

    assert versions(start_version=0, end_timestamp_ms=late_ms) == [1]
    assert versions(start_version=2) == versions(start_timestamp_ms=late_ms) == []
    # As in delta-spark, although the end is before the start.
    assert versions(start_timestamp_ms=late_ms, end_timestamp_ms=latest.timestamp_ms) == []


def test_a_removed_file_that_was_vacuumed_is_named(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(1))
    (add,) = add_files(table.files())
    table.delete()
    (tmp_path / "t" / add.path).unlink()
    with pytest.raises(NotFound) as caught:
        table.changes(2)
    assert caught.value.facts["file"] == add.path


def test_a_removal_that_lacks_its_partition_is_named(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64()), "part": ["a"]})
    table = Table.create(tmp_path / "t", rows.schema, partition_by=["part"], properties=FEED)
    table.append(rows)
    transaction = table.begin()
    old = {"partition_values": None, "extended_file_metadata": None}
    transaction.stage(*(replace(add.remove(1), **old) for add in add_files(table.files())))
    table.commit(transaction, Operation("DELETE"))
    with pytest.raises(Unsupported, match="without its partition values"):
        table.changes(2)


def test_change_data_files_alone_count_where_a_commit_has_them(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.append(numbers(*range(5)))
    table.delete("id in (1, 3)")
    commit = [json.loads(line) for line in (tmp_path / "t/_delta_log/00000000000000000002.json").read_text().splitlines()]
    assert Counter(name for line in commit for name in line) == {"commitInfo": 1, "remove": 1, "add": 1, "cdc": 1}
    assert reported(table.changes(2)) == [(2, "delete", 1), (2, "delete", 3)]


@pytest.mark.parametrize("name", ["_change_type", "_Commit_Version", "_commit_timestamp"])
def test_the_names_of_the_feeds_columns_are_taken_where_it_is_on(tmp_path: Path, name: str) -> None:
    schema = pa.schema([("id", pa.int64()), (name, pa.string())])
    with pytest.raises(InvalidRequest) as caught:
        Table.create(tmp_path / "t", schema, properties=FEED)
    assert caught.value.code == "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
    table = Table.create(tmp_path / "t", schema)
    with pytest.raises(InvalidRequest, match=name):
        table.set_properties(FEED)
    with_feed = make(tmp_path / "other")
    with pytest.raises(InvalidRequest, match=name):
        with_feed.append(pa.table({"id": pa.array([1], pa.int64()), name: ["x"]}), merge_schema=True)


def test_rows_with_a_column_of_the_feed_are_not_written_where_it_is_on(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidRequest, match="_change_type") as caught:
        table.append(pa.table({"id": pa.array([1], pa.int64()), "_change_type": ["insert"]}), merge_schema=True)
    assert caught.value.code == "RESERVED_CDC_COLUMNS_ON_WRITE"
    assert table.version() == 0
