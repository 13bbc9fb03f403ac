"""Row ids and row commit versions: their assignment, without and with conflicts, and their values for readers."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import (
    ConcurrentAppendException,
    CorruptTable,
    DeltaConcurrentModificationException,
    InvalidRequest,
    Unsupported,
)
from tahoe.log.files.commits import read_commit
from tahoe.log.replay import add_files
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.protocol.actions import AddFile, CommitInfo, DomainMetadata
from tahoe.protocol.row_tracking import DOMAIN, MATERIALIZED_ROW_COMMIT_VERSION, MATERIALIZED_ROW_ID, high_water_mark
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction

ON = {"delta.enableRowTracking": "true"}
SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def table(tmp_path) -> Table:
    return Table.create(tmp_path, SCHEMA, properties=ON)


def tracked(table: Table, **options) -> dict[int, tuple[int, int]]:
    """id → (row id, row commit version), by a reader that starts from storage."""
    actual = Table(table.url).to_arrow(row_ids=True, **options)
    assert actual.column_names == ["id", "_row_id", "_row_commit_version"]
    ids, *values = (column.to_pylist() for column in actual.columns)
    assert len(set(values[0])) == len(ids)
    return dict(zip(ids, zip(*values, strict=True), strict=True))


def mark(table: Table) -> int | None:
    return high_water_mark(Snapshot.at(table.store).state.domains)


def info(table: Table, version: int) -> CommitInfo:
    return next(action for action in read_commit(table.store, version) if isinstance(action, CommitInfo))


def appending(table: Table, *ids: int) -> tuple[Transaction, Operation]:
    transaction = table.begin()
    return transaction, stage_write(transaction, rows(*ids), WriteOptions())


def test_a_table_made_with_row_tracking_has_its_features_and_column_names(table):
    snapshot = table.snapshot()
    assert {"rowTracking", "domainMetadata"} <= snapshot.protocol.writer_features
    names = [snapshot.metadata.configuration[key] for key in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION)]
    assert names[0].startswith("_row-id-col-") and names[1].startswith("_row-commit-version-col-")
    assert mark(table) is None
    assert tracked(table) == {}


def test_each_row_gets_the_next_id_and_the_version_that_inserted_it(table):
    table.append(rows(10, 11, 12))
    table.append(rows(20, 21), max_rows_per_file=1)
    assert tracked(table) == {10: (0, 1), 11: (1, 1), 12: (2, 1), 20: (3, 2), 21: (4, 2)}
    assert mark(table) == 4
    assert tracked(table, filter="id = 21") == {21: (4, 2)}
    assert table.to_arrow(row_ids=True, columns=[], filter="id > 11").column("_row_id").to_pylist() == [2, 3, 4]
    assert table.check() == []


def test_ids_and_the_mark_outlive_checkpoints_and_are_never_given_again(table):
    table.append(rows(1, 2))
    table.checkpoint()
    table.overwrite(rows(3))
    table.checkpoint()
    table.delete()
    table.append(rows(4))
    assert tracked(table) == {4: (3, 4)}
    assert tracked(table, version=1) == {1: (0, 1), 2: (1, 1)}


def test_rows_that_stay_beside_deleted_ones_keep_their_ids_and_no_mark_is_written(tmp_path):
    table = Table.create(tmp_path, SCHEMA, properties={**ON, "delta.enableDeletionVectors": "true"})
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    assert tracked(table) == {1: (0, 1), 3: (2, 1)}
    assert not any(isinstance(action, DomainMetadata) for action in read_commit(table.store, 2))
    assert info(table, 2).values["tags"] == {"delta.rowTracking.preserved": "true"}
    assert table.check() == []


def test_an_append_that_loses_its_race_gets_fresh_ids_and_its_own_version(table):
    racing = [appending(table, 100, 101), appending(table, 200), appending(table, 300, 301)]
    for transaction, operation in racing:
        table.commit(transaction, operation)
    assert tracked(table) == {100: (0, 1), 101: (1, 1), 200: (2, 2), 300: (3, 3), 301: (4, 3)}
    assert mark(table) == 4
    assert table.check() == []


def test_a_delete_that_loses_to_an_append_keeps_the_rows_of_its_file(tmp_path):
    table = Table.create(tmp_path, SCHEMA, properties={**ON, "delta.enableDeletionVectors": "true"})
    table.append(rows(1, 2, 3))
    transaction = table.begin()
    staged = stage_delete(transaction, "id = 2")
    table.append(rows(9))
    table.commit(transaction, staged.operation)
    assert tracked(table) == {1: (0, 1), 3: (2, 1), 9: (3, 2)}


def test_a_table_that_has_rows_gets_ids_for_them_when_row_tracking_is_enabled(tmp_path):
    table = Table.create(tmp_path, SCHEMA)
    table.append(rows(1, 2))
    table.append(rows(3))
    table.set_properties(ON)
    assert tracked(table) == {1: (0, 3), 2: (1, 3), 3: (2, 3)} or tracked(table) == {3: (0, 3), 1: (1, 3), 2: (2, 3)}
    assert [action.data_change for action in read_commit(table.store, 3) if isinstance(action, AddFile)] == [False, False]
    assert table.snapshot().num_files == 2
    table.append(rows(4))
    assert tracked(table)[4] == (3, 4)
    assert table.check() == []


def test_enabling_again_gives_no_new_ids_or_names(table):
    table.append(rows(1))
    table.set_properties({"delta.enableRowTracking": "false"})
    table.append(rows(2))
    before = table.snapshot().metadata.configuration
    table.set_properties(ON)
    assert tracked(table) == {1: (0, 1), 2: (1, 3)}
    assert table.snapshot().metadata.configuration == {**before, **ON}


def test_an_append_begun_before_row_tracking_was_enabled_gets_ids_and_says_that_it_kept_none(tmp_path):
    table = Table.create(tmp_path, SCHEMA)
    table.append(rows(1))
    transaction, operation = appending(table, 2)
    table.set_properties(ON)
    committed = table.commit(transaction, operation)
    assert tracked(table) == {1: (0, 2), 2: (1, 3)}
    assert info(table, committed.version).values["tags"] == {"delta.rowTracking.preserved": "false"}
    assert table.check() == []


def test_a_delete_begun_before_row_tracking_was_enabled_takes_the_ids_that_its_file_got(tmp_path):
    table = Table.create(tmp_path, SCHEMA, properties={"delta.enableDeletionVectors": "true"})
    table.append(rows(1, 2, 3))
    transaction = table.begin()
    staged = stage_delete(transaction, "id = 1")
    table.set_properties(ON)
    committed = table.commit(transaction, staged.operation)
    assert tracked(table) == {2: (1, 2), 3: (2, 2)}
    removed = next(a for a in read_commit(table.store, committed.version) if hasattr(a, "deletion_timestamp"))
    assert (removed.base_row_id, removed.default_row_commit_version) == (0, 2)
    assert table.check() == []


def test_enabling_loses_to_files_that_it_has_not_seen(tmp_path):
    table = Table.create(tmp_path, SCHEMA)
    enabling = table.begin()
    enabling.set_metadata(
        replace(enabling.snapshot.metadata, configuration={**ON, MATERIALIZED_ROW_ID: "a", MATERIALIZED_ROW_COMMIT_VERSION: "b"})
    )
    table.append(rows(1))
    with pytest.raises(ConcurrentAppendException):
        table.commit(enabling, Operation("SET TBLPROPERTIES"))
    assert "rowTracking" not in table.snapshot().config.features


def test_supported_and_not_enabled_gives_ids_that_readers_may_not_ask_for(tmp_path):
    table = Table.create(tmp_path, SCHEMA, properties={"delta.feature.rowTracking": "supported"})
    table.append(rows(1, 2))
    (add,) = add_files(table.snapshot().files())
    assert (add.base_row_id, add.default_row_commit_version) == (0, 1)
    with pytest.raises(InvalidRequest, match="does not track rows"):
        table.to_arrow(row_ids=True)


def test_suspended_row_tracking_gives_no_ids_and_cannot_be_enabled_too(tmp_path):
    suspended = {"delta.feature.rowTracking": "supported", "delta.rowTrackingSuspended": "true"}
    table = Table.create(tmp_path, SCHEMA, properties=suspended)
    table.append(rows(1))
    (add,) = add_files(table.snapshot().files())
    assert (add.base_row_id, add.default_row_commit_version, mark(table)) == (None, None, None)
    with pytest.raises(InvalidRequest, match="cannot both be true"):
        table.set_properties(ON)
    table.set_properties({**ON, "delta.rowTrackingSuspended": "false"})
    assert tracked(table) == {1: (0, 2)}


def test_a_file_without_a_row_count_is_refused_before_anything_is_sent(table):
    transaction = table.begin()
    transaction.stage(AddFile("f.parquet", {}, 1, 1, True))
    with pytest.raises(Unsupported, match="numRecords") as caught:
        table.commit(transaction, Operation("WRITE"))
    assert caught.value.code == "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS"
    assert table.version() == 0


def test_the_domain_may_not_be_staged_by_hand(table):
    transaction = table.begin()
    transaction.stage(DomainMetadata(DOMAIN, '{"rowIdHighWaterMark":5}'))
    with pytest.raises(InvalidRequest, match=DOMAIN):
        table.commit(transaction, Operation("WRITE"))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"rowIdHighWaterMark":null}', '{"rowIdHighWaterMark":"x"}'])
def test_a_damaged_domain_is_named(text):
    with pytest.raises(CorruptTable, match=DOMAIN):
        high_water_mark([DomainMetadata(DOMAIN, text)])


def test_a_column_of_the_name_of_the_ids_is_reported(tmp_path):
    table = Table.create(tmp_path, pa.schema([("_ROW_ID", pa.int64())]), properties=ON)
    with pytest.raises(InvalidRequest, match="_row_id"):
        table.to_arrow(row_ids=True)


def test_an_overwrite_says_that_rows_did_not_keep_ids_and_an_append_that_they_did(table):
    table.append(rows(1))
    table.overwrite(rows(2))
    assert [info(table, v).values["tags"]["delta.rowTracking.preserved"] for v in (1, 2)] == ["true", "false"]


def test_check_finds_ids_given_twice_and_a_mark_that_lags(table):
    table.append(rows(1, 2))
    table.append(rows(3))
    first, second = add_files(table.snapshot().files())
    bad = replace(second, path=second.path, base_row_id=first.base_row_id + 1)
    table.store.put(
        "_delta_log/00000000000000000003.json",
        "".join(
            json.dumps({name: action.to_json_value()}) + "\n"
            for name, action in (("add", bad), ("domainMetadata", DomainMetadata(DOMAIN, '{"rowIdHighWaterMark":0}')))
        ).encode(),
    )
    actual = [violation for violation in table.check() if violation.code == "row-ids"]
    assert "in common" in actual[0].message and "high-water mark says 0" in actual[1].message


def test_two_writers_of_the_same_rows_still_conflict_where_rows_are_tracked(tmp_path):
    table = Table.create(tmp_path, SCHEMA, properties={**ON, "delta.enableDeletionVectors": "true"})
    table.append(rows(1, 2, 3))
    transactions = [table.begin(), table.begin()]
    staged = [stage_delete(transaction, "id = 1") for transaction in transactions]
    table.commit(transactions[0], staged[0].operation)
    with pytest.raises(DeltaConcurrentModificationException):
        table.commit(transactions[1], staged[1].operation)
