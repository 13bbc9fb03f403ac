"""RESTORE without Spark: the newest version becomes as an older one was."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import ConcurrentWriteException, InvalidRequest, NotFound, TahoeError
from tahoe.base.progress import Reported
from tahoe.log.replay import add_files
from tahoe.ops.upkeep.restore import RestoreRequest, restore
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.uniform.external.metadata_listing import list_metadata

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
VECTORS = {"delta.enableDeletionVectors": "true"}
UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
}


def rows(first: int, count: int = 10) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"p": ["ab"[i % 2] for i in ids], "id": ids}, SCHEMA)


@pytest.fixture
def store() -> LogStore:
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


def table_of(store: LogStore, properties: dict[str, str] | None = None) -> Table:
    table = Table.create(store.url, SCHEMA, partition_by=["p"], properties=properties, store=store)
    table.append(rows(0))
    table.append(rows(10))
    return table


def contents(table: Table, version: int | None = None, row_ids: bool = False) -> pa.Table:
    return table.to_arrow(version=version, row_ids=row_ids).sort_by("id")


@pytest.mark.parametrize(
    "properties", [{}, VECTORS, {**VECTORS, "delta.enableRowTracking": "true"}, {**VECTORS, "delta.columnMapping.mode": "name"}]
)
def test_rows_come_back_with_their_ids(store: LogStore, properties: dict[str, str]) -> None:
    table, has_ids = table_of(store, properties), "delta.enableRowTracking" in properties
    table.delete("id in (3, 14)")
    table.update({"id": "id + 100"}, "p = 'a'")
    table.overwrite(rows(50))
    newest = table.version()
    for target in (4, 2, 3, newest):
        expected = contents(table, target, has_ids)
        done = table.restore(target)
        assert contents(table, row_ids=has_ids) == expected
        assert done.version == table.version() and done.target == target
        assert done.metrics["num_of_files_after_restore"] == len(table.files())
        assert done.metrics["table_size_after_restore"] == sum(table.files()["size"].to_pylist())
    assert table.check(deep=True) == []
    table.append(rows(200))
    if has_ids:
        ids = table.to_arrow(row_ids=True)["_row_id"].to_pylist()
        assert len(set(ids)) == len(ids) == 20
    assert table.check() == []


def test_the_history_records_it_in_the_references_words(store: LogStore) -> None:
    table = table_of(store)
    table.overwrite(rows(50))
    metrics = table.restore(1).metrics
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationParameters"]) == ("RESTORE", {"version": "1", "timestamp": None})
    assert commit["operationMetrics"] == {
        "tableSizeAfterRestore": str(metrics["table_size_after_restore"]),
        "numOfFilesAfterRestore": "2",
        "numRemovedFiles": "2",
        "numRestoredFiles": "2",
        "removedFilesSize": str(metrics["removed_files_size"]),
        "restoredFilesSize": str(metrics["restored_files_size"]),
    }
    moment = table.history()[-2]["timestamp"]
    table.append(rows(70))
    assert table.restore(timestamp=moment).target == 1
    shown = table.history(1)[0]["operationParameters"]
    assert shown["version"] is None and shown["timestamp"].startswith(f"{moment:%Y-%m-%d %H:%M:%S}.")


def test_the_schema_and_the_properties_come_back_and_the_protocol_stays(store: LogStore) -> None:
    table = table_of(store)
    old = table.snapshot()
    table.set_properties({**VECTORS, "delta.appendOnly": "false", "mine": "1", "delta.columnMapping.mode": "name"})
    table.append(pa.table({"p": ["c"], "id": [1], "more": ["x"]}), merge_schema=True)
    strong = table.snapshot().protocol
    table.restore(old.version)
    now = table.snapshot()
    assert (now.schema, now.metadata.configuration, now.metadata.id) == (old.schema, old.metadata.configuration, old.metadata.id)
    assert now.protocol == strong != old.protocol
    assert contents(table) == contents(table, old.version)
    assert table.check(deep=True) == []


def test_ids_of_columns_are_given_once(store: LogStore) -> None:
    table = table_of(store, {"delta.columnMapping.mode": "name"})
    table.append(pa.table({"p": ["c"], "id": [1], "more": ["x"]}), merge_schema=True)
    most = table.snapshot().metadata.configuration["delta.columnMapping.maxColumnId"]
    table.restore(2)
    assert table.snapshot().metadata.configuration["delta.columnMapping.maxColumnId"] == most


def test_times_of_versions_stay_as_they_are(store: LogStore) -> None:
    table = table_of(store)
    table.set_properties({"delta.enableInCommitTimestamps": "true"})
    table.append(rows(30))
    before = [commit["timestamp"] for commit in table.history()]
    table.restore(1)
    assert [commit["timestamp"] for commit in table.history()][1:] == before
    assert table.snapshot().config.in_commit_timestamps


def test_a_feed_shows_it_without_files_of_its_own(store: LogStore) -> None:
    table = table_of(store, {**VECTORS, "delta.enableChangeDataFeed": "true"})
    table.delete("id < 5")
    version = table.restore(1).version
    changes = table.changes(version).to_pylist()
    kinds = {kind: sorted(row["id"] for row in changes if row["_change_type"] == kind) for kind in ("insert", "delete")}
    assert set(kinds["insert"]) - set(kinds["delete"]) == {0, 1, 2, 3, 4}
    assert set(kinds["delete"]) - set(kinds["insert"]) == set(range(10, 20))


@pytest.mark.damages_tables
def test_files_that_are_gone_are_reported(store: LogStore) -> None:
    table = table_of(store, VECTORS)
    gone = table.files()["path"].to_pylist()
    table.overwrite(rows(50))
    for name in gone:
        store.delete(name)
    planned = table.restore(2, dry_run=True)
    assert sorted(planned.missing) == sorted(gone) and planned.version is None
    assert "It would fail: 4 files are missing" in str(planned)
    with pytest.raises(NotFound, match="4 files of that version are missing") as caught:
        table.restore(2)
    assert gone[0] in caught.value.message
    assert table.version() == 3
    table.restore(2, ignore_missing_files=True)
    assert table.version() == 4 and len(table.files()) == 4


def test_vectors_that_are_gone_are_reported(store: LogStore) -> None:
    table = table_of(store, VECTORS)
    table.overwrite(rows(0, 40_000))
    table.delete("id % 3 = 0 or id % 7 = 1")
    vectors = [entry.name for entry in store.walk() if entry.name.endswith(".bin")]
    table.overwrite(rows(50))
    assert vectors
    for name in vectors:
        store.delete(name)
    with pytest.raises(NotFound, match="deletion_vector_"):
        table.restore(4)


def test_a_dry_run_changes_nothing(store: LogStore) -> None:
    table, progress = table_of(store), Reported()
    table.overwrite(rows(50))
    planned = restore(table.begin(), table.commit, RestoreRequest(1, dry_run=True), progress)
    assert table.version() == 3 and planned.metrics["num_restored_files"] == 2 and planned.missing == ()
    assert "would restore 2 files" in str(planned)
    assert ("files checked", 2, 2) in progress.reports
    assert "is equal to version 1: 2 files" in str(table.restore(1))


@pytest.mark.parametrize(
    ("version", "timestamp", "code"),
    [
        (2, None, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (3, None, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (-1, None, "DELTA_CANNOT_RESTORE_TABLE_VERSION"),
        (None, "1999-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER"),
        (None, "2999-01-01", "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER"),
        (None, "yesterday", "DELTA_TIMESTAMP_INVALID"),
        (None, None, "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
        (1, "2999-01-01", "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS"),
    ],
)
def test_versions_that_cannot_be_restored_are_refused(
    store: LogStore, version: int | None, timestamp: str | None, code: str
) -> None:
    table = table_of(store)
    with pytest.raises(TahoeError) as caught:
        table.restore(version, timestamp)
    assert caught.value.code == code


def test_a_table_for_appends_is_not_restored(store: LogStore) -> None:
    table = table_of(store, {"delta.appendOnly": "true"})
    with pytest.raises(InvalidRequest) as caught:
        table.restore(1)
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_whoever_commits_meanwhile_makes_it_fail(store: LogStore) -> None:
    table = table_of(store)
    transaction = table.begin()
    Table(store.url, store=store).append(rows(30))
    with pytest.raises(ConcurrentWriteException):
        restore(transaction, table.commit, RestoreRequest(1))
    assert contents(table).num_rows == 30


def test_iceberg_shows_the_rows_that_were(store: LogStore) -> None:
    table = table_of(store, UNIFORM)
    table.overwrite(rows(50))
    done = table.restore(2)
    table.uniform.wait(done.version)
    current = list_metadata(store).current()
    assert current is not None and current.version == done.version
    newest = current.document["snapshots"][-1]["summary"]
    assert newest["total-records"] == "20" and newest["total-data-files"] == "4"


@pytest.mark.parametrize("version", [1, 2])
def test_rows_restored_from_before_row_tracking_was_dropped_keep_ids_that_no_new_row_gets(tmp_path: Path, version: int) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.enableRowTracking": "true"})
    table.append(pa.table({"id": [1, 2]}))
    table.delete("id = 1")
    table.drop_feature("rowTracking")
    table.append(pa.table({"id": [3]}))
    table.restore(version=version)
    table.append(pa.table({"id": [4]}))
    ids = [add.base_row_id for add in add_files(table.snapshot().files())]
    assert None not in ids and len(set(ids)) == len(ids)
    assert table.check(strict=True) == []


def test_rows_restored_from_before_row_tracking_was_enabled_keep_the_ids_that_they_got(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1, 2]}))
    table.set_properties({"delta.enableRowTracking": "true"})
    (given,) = add_files(table.snapshot().files())
    table.overwrite(pa.table({"id": [3]}))
    table.restore(version=1)
    (restored,) = add_files(table.snapshot().files())
    assert (restored.base_row_id, restored.default_row_commit_version) == (given.base_row_id, given.default_row_commit_version)
    assert given.base_row_id is not None and table.check(strict=True) == []
