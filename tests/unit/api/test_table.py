"""`Table` end to end, on local disk and without Spark."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.api.table import another_handle
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, NotFound, SchemaMismatch
from tahoe.ops.rows.insert import WriteOptions
from tahoe.snapshot.snapshot import LostVersions, Snapshot
from tahoe.store.local_store import LocalLogStore
from tahoe.store.object_store import open_store

SCHEMA = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string())])


def rows(*ids: int, month: int | None = 1) -> pa.Table:
    return pa.table({"id": list(ids), "month": [month] * len(ids), "name": [f"n{i}" for i in ids]}, schema=SCHEMA)


def ids(table: Table, **asked) -> list[int]:
    return sorted(table.to_arrow(columns=["id"], **asked)["id"].to_pylist())


@pytest.fixture
def table(tmp_path) -> Table:
    return Table.create(tmp_path / "t", SCHEMA, partition_by=["month"])


def test_a_new_table_is_empty_and_whole(table):
    assert table.version() == 0
    assert table.to_arrow().schema.equals(SCHEMA)
    assert table.to_arrow().num_rows == 0
    assert table.check() == []


def test_creating_a_table_twice_is_refused(table, tmp_path):
    with pytest.raises(InvalidRequest) as caught:
        Table.create(tmp_path / "t", SCHEMA)
    assert caught.value.code == "DELTA_TABLE_ALREADY_EXISTS"


def test_a_table_is_not_created_over_other_files(tmp_path, memory_url):
    for store in (LocalLogStore(tmp_path / "t"), open_store(memory_url)):
        store.put("part-0.parquet", b"mine")
        with pytest.raises(InvalidRequest, match=r"not empty.*convert") as caught:
            Table.create(store.url, SCHEMA, store=store)
        assert caught.value.code == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
        store.put("_delta_log/_staged_commits/1.json", b"{}")  # as a failed creation may leave
        assert Table.create(store.url, SCHEMA, store=store).version() == 0


def test_calls_that_change_nothing_commit_nothing(table):
    table.add_feature("appendOnly")
    version = table.version()
    for call in (
        lambda: table.set_properties({}),
        lambda: table.unset_properties([]),
        lambda: table.add_columns({}),
        lambda: table.change_column("id"),
        lambda: table.replace_columns(SCHEMA),
        lambda: table.add_feature("appendOnly"),
    ):
        assert call() == table.version() == version


def test_appended_rows_are_there_and_old_versions_stay(table):
    assert table.append(rows(1, 2)) == 1
    assert table.append(rows(3, month=2)) == 2
    assert ids(table) == [1, 2, 3]
    assert ids(table, version=1) == [1, 2]
    assert ids(table, version=0) == []
    assert ids(table, filter="month = 2") == [3]
    assert table.files(filter="month = 2").num_rows == 1
    assert table.check() == []


def test_appending_creates_the_table_where_there_is_none(tmp_path):
    table = Table(tmp_path / "new")
    assert not table.exists()
    assert table.append(rows(1)) == 0
    assert ids(Table(tmp_path / "new")) == [1]


def test_a_handle_sees_commits_of_another_handle(table):
    other = Table(table.url)
    for number in range(40):
        other.append(rows(number))
        if number in (0, 1, 7, 39):
            assert table.version() == number + 1
    assert ids(table) == list(range(40))
    assert table.check() == []


def test_a_table_made_again_in_the_same_place_is_noticed(tmp_path):
    import shutil

    table = Table.create(tmp_path / "t", SCHEMA)
    table.append(rows(1))
    shutil.rmtree(tmp_path / "t")
    Table.create(tmp_path / "t", SCHEMA).append(rows(7, 8, 9))
    assert ids(table) == [7, 8, 9]


def test_checkpoints_and_checksums_agree_with_the_log(tmp_path):
    table = Table.create(tmp_path / "t", SCHEMA, partition_by=["month"], properties={"delta.checkpointInterval": "3"})
    for number in range(10):
        table.append(rows(number, month=number % 3))
    table.overwrite(rows(100, month=1), replace_where="month = 1")
    names = os.listdir(tmp_path / "t" / "_delta_log")
    assert {f"{v:020d}.checkpoint.parquet" for v in (3, 6, 9)} <= set(names)
    assert f"{11:020d}.crc" in names
    fresh = Table(tmp_path / "t")
    assert ids(fresh) == [0, 2, 3, 5, 6, 8, 9, 100]
    assert fresh.check() == []


def test_overwrite_replaces_everything_and_the_past_stays(table):
    table.append(rows(1, 2))
    table.overwrite(rows(5))
    assert ids(table) == [5]
    assert ids(table, version=1) == [1, 2]


def test_replace_where_on_partitions_touches_no_other_file(table):
    table.append(rows(1, 2))
    table.append(rows(3, month=2))
    before = set(table.files(filter="month = 1")["path"].to_pylist())
    table.overwrite(rows(30, 31, month=2), replace_where="month = 2")
    assert ids(table) == [1, 2, 30, 31]
    assert before <= set(table.files()["path"].to_pylist())


def test_replace_where_on_data_columns_keeps_the_rows_that_do_not_match(table):
    table.append(rows(1, 2, 3))
    table.append(rows(4))
    untouched = set(table.files(filter="id = 4")["path"].to_pylist())
    table.overwrite(rows(2), replace_where="id = 2 or id = 3")
    assert ids(table) == [1, 2, 4]
    assert untouched <= set(table.files()["path"].to_pylist())


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_replace_where_on_data_columns_appears_in_the_feed(tmp_path, vectors):
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    table = Table.create(tmp_path / "t", SCHEMA, partition_by=["month"], properties=properties)
    table.append(rows(1, 2, 3))
    more = rows(2).append_column("more", pa.array(["x"]))
    options = WriteOptions("overwrite", replace_where="id = 2 or id = 3", merge_schema=True)
    version = table.write(more, options)
    assert ids(table) == [1, 2]
    changes = table.changes(version).select(["id", "more", "_change_type"]).to_pylist()
    assert sorted(tuple(row.values()) for row in changes if row["more"]) == [(2, "x", "insert")]
    assert sorted(row["id"] for row in changes if row["_change_type"] == "delete") == [2, 3]
    assert len(changes) == 3
    (metrics,) = [entry["operationMetrics"] for entry in table.history(1)]
    names = ("numDeletedRows", "numCopiedRows", "numRemovedFiles", "numAddedChangeFiles")
    expected = ["2", "0", "0", "0"] if vectors == "true" else ["2", "1", "1", "1"]
    assert [metrics[name] for name in names] == expected
    assert table.check() == []


def test_replace_where_refuses_a_row_outside_of_it_and_changes_nothing(table):
    table.append(rows(1))
    with pytest.raises(InvalidRequest, match="'month': 1") as caught:
        table.overwrite(rows(9, month=1), replace_where="month = 2")
    assert caught.value.code == "DELTA_REPLACE_WHERE_MISMATCH"
    assert table.version() == 1


@pytest.mark.parametrize("where", ["month = 2", "month = 2 or 1 = 2", "month + 1 = 3"])
def test_replace_where_on_partitions_may_leave_the_data_as_it_was(table, where):
    table.append(rows(1))
    table.append(rows(2, month=2))
    version = table.write(rows(2, month=2), WriteOptions("overwrite", replace_where=where, data_change=False))
    log = Path(table.url.removeprefix("file://"), "_delta_log", f"{version:020d}.json").read_text().splitlines()
    files = [item for line in log for name, item in json.loads(line).items() if name in ("add", "remove")]
    assert [item["dataChange"] for item in files] == [False, False]
    assert ids(table) == [1, 2]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"data_change": False}, "DELTA_REPLACE_WHERE_WITH_FILTER_DATA_CHANGE_UNSET"),
        ({"replaces_data": False}, "DELTA_NON_PARTITION_COLUMN_REFERENCE"),
    ],
    ids=str,
)
def test_replace_where_on_data_is_refused_where_only_partitions_may_be_named(table, options, code):
    table.append(rows(1))
    with pytest.raises(InvalidRequest) as caught:
        table.write(rows(1), WriteOptions("overwrite", replace_where="id = 1", **options))
    assert (caught.value.code, caught.value.facts["column"], table.version()) == (code, "id", 1)


def test_replace_where_without_a_check_takes_any_row(table):
    table.append(rows(1, 2))
    table.write(rows(9), WriteOptions("overwrite", replace_where="id = 1", checks_rows=False))
    assert ids(table) == [2, 9]
    options = WriteOptions("overwrite", replace_where="month = 1", checks_rows=False, replaces_data=False)
    with pytest.raises(InvalidRequest, match="DELTA_REPLACE_WHERE_MISMATCH"):
        table.write(rows(9, month=2), options)


@pytest.mark.parametrize(("where", "after"), [("1 = 2", [1, 2, 9]), ("1 = 1", [9]), ("false", [1, 2, 9])])
def test_replace_where_without_columns_says_nothing_of_the_new_rows(table, where, after):
    table.append(rows(1, 2))
    table.overwrite(rows(9), replace_where=where)
    assert ids(table) == after


def test_dynamic_overwrite_may_keep_the_partitions_of_null(table):
    table.append(rows(1))
    table.append(rows(2, month=None))
    more = pa.concat_tables([rows(10), rows(20, month=None)])
    table.write(more, WriteOptions("overwrite", dynamic_partitions=True, keeps_null_partitions=True))
    assert ids(table) == [2, 10, 20]


def test_only_a_partitioned_table_refuses_a_new_schema_with_dynamic_overwrites(table, tmp_path):
    options = WriteOptions("overwrite", dynamic_partitions=True, overwrite_schema=True)
    with pytest.raises(InvalidRequest, match="DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"):
        table.write(rows(1), WriteOptions("overwrite", ("month",), dynamic_partitions=True, overwrite_schema=True))
    plain = Table.create(tmp_path / "plain", SCHEMA)
    plain.append(rows(1))
    plain.write(rows(2).drop_columns("month"), options)
    assert plain.schema().names == ["id", "name"]


def test_dynamic_overwrite_replaces_the_partitions_that_the_rows_have(table):
    table.append(rows(1))
    table.append(rows(2, month=2))
    table.overwrite(rows(20, month=2), dynamic_partitions=True)
    assert ids(table) == [1, 20]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"replace_where": "month = 1", "dynamic_partitions": True}, "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE"),
        ({"overwrite_schema": True, "dynamic_partitions": True}, "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE"),
    ],
)
def test_options_that_exclude_each_other_are_refused(table, asked, code):
    with pytest.raises(InvalidRequest) as caught:
        table.overwrite(rows(1), **asked)
    assert caught.value.code == code


def test_a_further_column_needs_merge_schema_and_is_null_in_older_rows(table):
    table.append(rows(1))
    wider = rows(2).append_column("price", pa.array([Decimal("1.50")], pa.decimal128(10, 2)))
    with pytest.raises(SchemaMismatch, match=r"price.*mergeSchema"):
        table.append(wider)
    table.append(wider, merge_schema=True)
    actual = {row["id"]: row["price"] for row in table.to_arrow().to_pylist()}
    assert actual == {1: None, 2: Decimal("1.50")}
    assert "price" not in table.to_arrow(version=1).column_names


def test_overwrite_schema_takes_the_data_s_columns_and_partitioning(table):
    table.append(rows(1))
    table.overwrite(pa.table({"k": ["x"], "p": [1]}), overwrite_schema=True, partition_by=["p"])
    assert table.to_arrow().to_pylist() == [{"k": "x", "p": 1}]
    assert table.snapshot().partition_columns == ("p",)
    assert ids(table, version=1) == [1]


def test_an_idempotent_write_is_done_once(table):
    for _ in range(3):
        table.append(rows(1), app=("loader", 7))
    table.append(rows(2), app=("loader", 8))
    table.append(rows(3), app=("loader", 5))
    assert ids(table) == [1, 2]


def test_max_rows_per_file_splits_files(table):
    table.append(rows(*range(10)), max_rows_per_file=4)
    assert [json.loads(stats)["numRecords"] for stats in table.files()["stats"].to_pylist()] == [4, 4, 2]


def test_column_mapping_gives_physical_names_and_any_column_name(tmp_path):
    table = Table.create(
        tmp_path / "m",
        pa.schema([("a b", pa.int64()), ("p=x", pa.string())]),
        partition_by=["p=x"],
        properties={"delta.columnMapping.mode": "name"},
    )
    table.append(pa.table({"a b": [1], "p=x": ["é/%"]}))
    assert table.to_arrow(filter="`a b` = 1").to_pylist() == [{"a b": 1, "p=x": "é/%"}]
    assert "a b" not in table.files()["stats"][0].as_py()
    assert table.check() == []


def test_an_append_only_table_takes_appends_and_refuses_the_rest(table):
    table.set_properties({"delta.appendOnly": "true"})
    table.append(rows(1))
    with pytest.raises(InvalidRequest, match="append-only") as caught:
        table.overwrite(rows(2))
    assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    table.unset_properties(["delta.appendOnly"])
    table.overwrite(rows(2))


def test_a_write_without_rows_is_no_commit_unless_it_says_something_of_the_table(table):
    before = table.version()
    assert table.append(rows()) == table.version() == before
    assert table.append(rows(), app=("loader", 1)) == before + 1
    assert table.append(rows().append_column("new", pa.array([], pa.int64())), merge_schema=True) == before + 2
    table.append(rows(1).append_column("new", pa.array([1], pa.int64())))
    assert [table.overwrite(table.to_arrow().slice(0, 0)) for _ in range(2)] == [before + 4, before + 4]


def test_a_protocol_of_named_features_takes_those_that_version_numbers_stand_for(tmp_path):
    table = Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.enableChangeDataFeed": "true"})
    assert table.snapshot().protocol.writer_features == {"appendOnly", "invariants", "changeDataFeed"}
    table.set_properties({"delta.minWriterVersion": "2"})
    assert table.snapshot().protocol.min_writer_version == 7
    table.set_properties({"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"})
    protocol = table.snapshot().protocol
    assert (protocol.min_reader_version, protocol.min_writer_version, protocol.writer_features) == (2, 5, None)
    table.set_properties({"delta.feature.deletionVectors": "supported"})
    table.set_properties({"delta.minReaderVersion": "2", "delta.minWriterVersion": "6"})
    assert {"identityColumns", "columnMapping", "deletionVectors"} <= table.snapshot().config.features
    assert table.snapshot().protocol.min_reader_version == 3
    assert table.check() == []


def test_history_shows_users_and_operations_newest_first(table):
    table.append(rows(1), user_metadata="first load")
    table.overwrite(rows(2), replace_where="month = 1")
    newest, middle, oldest = table.history()
    assert [entry["version"] for entry in (newest, middle, oldest)] == [2, 1, 0]
    assert [entry["operation"] for entry in (newest, middle, oldest)] == ["WRITE", "WRITE", "CREATE TABLE"]
    assert newest["operationParameters"] == {"mode": "Overwrite", "partitionBy": "[]", "predicate": "month = 1"}
    assert middle["userMetadata"] == "first load"
    assert middle["operationMetrics"]["numOutputRows"] == "1"
    assert middle["isBlindAppend"] is True
    assert len(table.history(limit=1)) == 1


def test_time_travel_by_timestamp_takes_the_newest_version_not_later(table, tmp_path):
    for number in range(3):
        table.append(rows(number))
    for version in range(4):
        name = tmp_path / "t" / "_delta_log" / f"{version:020d}.json"
        os.utime(name, (1_000_000 + 100 * version,) * 2)
    fresh = Table(table.url)
    at = datetime.fromtimestamp(1_000_250, UTC)
    assert ids(fresh, timestamp=at) == [0, 1]
    assert ids(fresh, timestamp=at.isoformat()) == [0, 1]
    with pytest.raises(NotFound) as caught:
        fresh.to_arrow(timestamp="1970-01-01")
    assert caught.value.code == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    with pytest.raises(NotFound) as caught:
        fresh.to_arrow(timestamp="2100-01-01")
    assert caught.value.code == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    with pytest.raises(InvalidRequest) as invalid:
        fresh.to_arrow(timestamp="05/04/1999")
    assert invalid.value.code == "DELTA_TIMESTAMP_INVALID"


def test_in_commit_timestamps_increase_and_decide_time_travel(tmp_path):
    clock = SeededClock()
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.enableInCommitTimestamps": "true"}, clock=clock)
    table.append(rows(1))
    table.append(rows(2))
    times = [entry["timestamp"] for entry in table.history()]
    assert times == sorted(times, reverse=True) and len(set(times)) == 3
    assert times[0].year == 2023
    assert ids(Table(table.url), timestamp=times[1]) == [1]


def test_a_version_that_is_not_there_is_named_with_those_that_are(table):
    table.append(rows(1))
    with pytest.raises(NotFound, match="99") as caught:
        table.to_arrow(version=99)
    assert caught.value.code == "DELTA_VERSION_NOT_FOUND"


def test_a_place_without_a_table_is_distinguished(tmp_path):
    with pytest.raises(NotFound) as caught:
        Table(tmp_path / "nothing").version()
    assert caught.value.code == "DELTA_TABLE_NOT_FOUND"


def test_a_repr_shows_version_and_shape_and_never_fails(table, tmp_path):
    assert "version 0, 3 columns, partitioned by month" in repr(table)
    assert "NotFound" in repr(Table(tmp_path / "nothing"))


@pytest.mark.damages_tables
def test_check_reports_damage(table, tmp_path):
    table.append(rows(1))
    table.append(rows(2))
    first, second = (tmp_path / "t" / path for path in table.files()["path"].to_pylist())
    first.unlink()
    second.write_bytes(second.read_bytes() + b"x")
    actual = sorted(violation.code for violation in table.check())
    assert actual == ["file", "file"]
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").unlink()
    assert any(violation.code in ("log-gap", "snapshot") for violation in Table(table.url).check())


@pytest.mark.damages_tables
def test_check_finds_a_wrong_checksum(table, tmp_path):
    table.append(rows(1))
    name = tmp_path / "t" / "_delta_log" / f"{1:020d}.crc"
    name.write_text(name.read_text().replace('"numFiles":1', '"numFiles":2'))
    assert "checksum" in {violation.code for violation in Table(table.url).check()}


def test_detail_describes_the_table(table):
    table.append(rows(1, 2))
    actual = table.detail()
    assert actual["numFiles"] == 1 and actual["partitionColumns"] == ["month"]
    assert (actual["minReaderVersion"], actual["minWriterVersion"]) == (1, 2)
    assert actual["sizeInBytes"] == table.files()["size"][0].as_py()


def test_the_log_is_cleaned_behind_the_newest_expired_checkpoint(tmp_path):
    clock = SeededClock(start_ms=2_000_000_000_000)
    table = Table.create(
        tmp_path / "t",
        SCHEMA,
        properties={
            "delta.checkpointInterval": "5",
            "delta.logRetentionDuration": "interval 7 days",
            "delta.deletedFileRetentionDuration": "interval 1 day",
        },
        clock=clock,
    )
    for number in range(9):
        table.append(rows(number))
    table.append(rows(9))
    names = sorted(os.listdir(tmp_path / "t" / "_delta_log"))
    assert f"{4:020d}.json" not in names and f"{10:020d}.json" in names
    fresh = Table(table.url)
    assert ids(fresh) == list(range(10))
    assert fresh.check() == []
    with pytest.raises(NotFound):
        fresh.to_arrow(version=2)


def test_files_of_a_table_ready_for_iceberg_say_so(tmp_path):
    table = Table.create(tmp_path / "t", SCHEMA, properties={"delta.enableIcebergCompatV2": "true"})
    table.append(rows(1))
    assert table.snapshot().scan().add_files()[0].tags == {"ICEBERG_COMPAT_VERSION": "2"}
    assert table.snapshot().config.column_mapping_mode == "name"


def test_parquet_s_own_bounds_are_left_out_where_they_would_hide_nan(tmp_path):
    import pyarrow.parquet as pq

    nan = float("nan")
    data = pa.table(
        {
            "plain": [1.0, 2.0],
            "holed": [1.0, nan],
            "nested": [{"x": nan, "y": 1}, {"x": 2.0, "y": 2}],
            "many": [[1.0], [nan]],
            "pairs": pa.array([[("a", nan)], [("b", 1.0)]], pa.map_(pa.string(), pa.float64())),
        }
    )
    table = Table(tmp_path / "t")
    table.append(data)
    footer = pq.ParquetFile(tmp_path / "t" / table.files()["path"][0].as_py()).metadata.row_group(0)
    columns = {footer.column(i).path_in_schema: footer.column(i).is_stats_set for i in range(footer.num_columns)}
    assert {path for path, has in columns.items() if has} == {"plain", "nested.y", "pairs.key_value.key"}
    assert table.to_arrow(filter="holed > 5").num_rows == 1


def restored_from_a_copy(root, version):
    """The folder as it was when the version was the newest, a moment later."""
    for entry in (root / "_delta_log").iterdir():
        if entry.name[:20].isdigit() and int(entry.name[:20]) > version:
            entry.unlink()


@pytest.mark.damages_tables
class TestATableRestoredFromACopy:
    def test_a_new_handle_continues_with_the_present_table_and_warns_once(self, table, tmp_path, caplog):
        remaining = another_handle(table)
        for number in range(3):
            table.append(rows(number))
        old = another_handle(remaining)
        assert old.version() == 3
        restored_from_a_copy(tmp_path / "t", 1)
        with caplog.at_level(logging.WARNING):
            new, another = another_handle(remaining), another_handle(remaining)
            assert new.version() == 1
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert "the log has lost versions" in caplog.text and "goes on with version 1" in caplog.text
        caplog.clear()
        new.append(rows(7))
        assert new.to_arrow()["id"].to_pylist() == [0, 7]
        assert another_handle(remaining).version() == another_handle(new).version() == 2
        assert not caplog.records
        assert another.version() == 2
        for handle in (old, table):
            for _ in range(2):
                with pytest.raises(LostVersions, match="the log has lost versions"):
                    handle.to_arrow()
                with pytest.raises(LostVersions):
                    handle.append(rows(8))
        assert another_handle(remaining).version() == 2

    def test_old_handles_do_not_go_on_once_the_log_is_longer_than_it_was(self, table, tmp_path):
        remaining = another_handle(table)
        table.append(rows(0))
        old = another_handle(remaining)
        assert old.version() == 1
        restored_from_a_copy(tmp_path / "t", 0)
        new = another_handle(remaining)
        for number in range(100, 103):  # not of the first commit's size: both may be written in the same millisecond
            new.append(rows(number))
        with pytest.raises(LostVersions, match="another transaction"):
            old.version()
        assert another_handle(remaining).version() == 3

    def test_a_handle_that_made_a_commit_has_read_the_table(self, table, tmp_path):
        remaining = another_handle(table)
        old = another_handle(remaining)
        old.append(rows(0))
        restored_from_a_copy(tmp_path / "t", 0)
        with pytest.raises(LostVersions):
            old.version()

    def test_handles_share_read_state(self, table, monkeypatch):
        remaining = another_handle(table)
        another_handle(remaining).append(rows(0))
        monkeypatch.setattr(Snapshot, "at", lambda *_: pytest.fail("the log was read from the start"))
        assert another_handle(remaining).version() == 1
