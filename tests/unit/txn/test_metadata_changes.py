"""Concurrent changes of protocol and metadata, and the commits that can be rebased onto them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import (
    ConcurrentWriteException,
    MetadataChangedException,
    ProtocolChangedException,
    Unsupported,
)
from tahoe.ops.tables.create import with_properties, with_schema
from tahoe.protocol.actions import AddFile, CommitInfo, Protocol
from tahoe.schema.types import PrimitiveType, StructField, StructType
from tahoe.txn.conflict import ConcurrentCommit, rebase
from tahoe.txn.prepare import prepare
from tahoe.txn.transaction import Operation, Transaction

OPERATION = Operation("WRITE")
STATS = '{"numRecords":2}'
NESTED = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.list_(pa.struct([("b", pa.string())])))]))])


@pytest.fixture
def table(tmp_path) -> Table:
    return Table.create(tmp_path, NESTED, clock=SeededClock(), properties={"delta.feature.rowTracking": "supported"})


def after(table: Table, change) -> ConcurrentCommit:
    """Return a concurrent commit with the metadata and protocol of a change of the table."""
    transaction = table.begin()
    change(transaction, table)
    return ConcurrentCommit(1, prepare(transaction, Operation("ALTER")).full_actions())


def properties(**values: str | None):
    """Return a change of properties; double underscores stand for dots."""
    named = {f"delta.{key.replace('__', '.')}": value for key, value in values.items()}
    return lambda transaction, table: transaction.set_metadata(with_properties(transaction.snapshot.config, named, table.clock))


def added_column(transaction: Transaction, table: Table) -> None:
    schema = StructType((*table.schema().fields, StructField("new", PrimitiveType("long"))))
    transaction.set_metadata(with_schema(transaction.snapshot.config, schema, table.clock))


def described(transaction: Transaction, table: Table) -> None:
    transaction.set_metadata(replace(transaction.snapshot.metadata, description="new"))


def renamed_physically(transaction: Transaction, table: Table) -> None:
    properties(columnMapping__mode="name")(transaction, table)
    schema = transaction.metadata.schema_string.replace(
        '"delta.columnMapping.physicalName":"id"', '"delta.columnMapping.physicalName":"x"'
    )
    assert schema != transaction.metadata.schema_string
    transaction.set_metadata(replace(transaction.metadata, schema_string=schema))


def appended(table: Table):
    transaction = table.begin()
    transaction.stage(AddFile("mine", {}, 1, 1, True, STATS))
    return prepare(transaction, OPERATION)


@pytest.mark.parametrize(
    "change",
    [
        properties(enableDeletionVectors="true"),
        properties(checkpointPolicy="v2"),
        properties(enableInCommitTimestamps="true"),
        properties(enableRowTracking="true"),
        properties(columnMapping__mode="name"),
        properties(enableDeletionVectors="true", enableRowTracking="true", columnMapping__mode="name"),
    ],
)
def test_changes_without_effect_on_written_files_do_not_conflict(table, change):
    winner = after(table, change)
    moved = rebase(appended(table), [winner], 0)
    assert not isinstance(moved, Exception), moved
    assert moved.version == 2
    assert moved.config.metadata == winner.metadata
    assert moved.config.protocol == (winner.protocol or table.snapshot().protocol)


@pytest.mark.parametrize(
    "change",
    [
        properties(appendOnly="true"),
        properties(enableChangeDataFeed="true"),
        properties(enableDeletionVectors="false"),
        properties(checkpointPolicy="classic"),
        properties(enableDeletionVectors="true", appendOnly="true"),
        properties(feature__rowTracking=None, logRetentionDuration="interval 60 days"),
        added_column,
        described,
        renamed_physically,
    ],
)
def test_other_changes_conflict(table, change):
    conflict = rebase(appended(table), [after(table, change)], 0)
    assert isinstance(conflict, MetadataChangedException)
    assert "version 1 (ALTER)" in conflict.message


def test_unsetting_a_property_conflicts(table):
    table.set_properties({"delta.enableDeletionVectors": "true"})
    winner = replace(after(table, properties(enableDeletionVectors=None)), version=2)
    assert isinstance(rebase(appended(table), [winner], 0), MetadataChangedException)


def test_a_commit_that_changes_metadata_itself_conflicts_with_every_change(table):
    transaction = table.begin()
    described(transaction, table)
    winner = after(table, properties(enableDeletionVectors="true"))
    winner = replace(winner, actions=tuple(action for action in winner.actions if not isinstance(action, Protocol)))
    assert isinstance(rebase(prepare(transaction, OPERATION), [winner], 0), MetadataChangedException)


def test_in_commit_timestamps_enabled_concurrently_are_written_by_the_commit(table):
    winner = after(table, properties(enableInCommitTimestamps="true"))
    moved = rebase(appended(table), [winner], 0)
    assert moved.full_actions()[0].in_commit_timestamp == max(moved.timestamp, winner.info.in_commit_timestamp + 1)


def test_a_commit_that_enables_in_commit_timestamps_records_its_final_version(table):
    transaction = table.begin()
    properties(enableInCommitTimestamps="true")(transaction, table)
    mine = prepare(transaction, OPERATION)
    assert mine.config.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    later = mine.timestamp + 1000
    moved = rebase(mine, [ConcurrentCommit(1, (CommitInfo({}),)), ConcurrentCommit(2, (CommitInfo({}),))], later)
    stated = next(action for action in moved.full_actions() if action == moved.config.metadata).configuration
    assert stated["delta.inCommitTimestampEnablementVersion"] == "3"
    assert stated["delta.inCommitTimestampEnablementTimestamp"] == str(later) == str(moved.timestamp)


def test_column_mapping_enabled_concurrently_with_an_append_reads_correctly(tmp_path):
    table = Table.create(tmp_path, pa.schema([("id", pa.int64())]))
    from tahoe.ops.rows.insert import WriteOptions, stage_write

    transaction = table.begin()
    operation = stage_write(transaction, pa.table({"id": [1, 2]}), WriteOptions())
    table.set_properties({"delta.columnMapping.mode": "name"})
    table.commit(transaction, operation)
    assert table.to_arrow().column("id").to_pylist() == [1, 2]
    assert table.check() == []


def test_a_protocol_that_drops_a_feature_conflicts_and_an_unsupported_one_is_refused(table):
    fewer = Protocol(1, 7, None, frozenset({"appendOnly", "invariants"}))
    assert isinstance(rebase(appended(table), [ConcurrentCommit(1, (fewer,))], 0), ProtocolChangedException)
    features = table.snapshot().protocol.writer_features
    with pytest.raises(Unsupported, match="timeTurner"):
        rebase(appended(table), [ConcurrentCommit(1, (Protocol(1, 7, None, features | {"timeTurner"}),))], 0)


def test_row_tracking_that_the_winner_began_to_support_gives_ids_to_the_commit_s_files(tmp_path):
    table = Table.create(tmp_path, NESTED, clock=SeededClock())
    mine = appended(table)
    moved = rebase(
        mine,
        [ConcurrentCommit(1, (Protocol(1, 7, None, frozenset({"appendOnly", "invariants", "rowTracking", "domainMetadata"})),))],
        0,
    )
    (add,) = [action for action in moved.full_actions() if isinstance(action, AddFile)]
    assert (add.base_row_id, add.default_row_commit_version) == (0, 2)
    assert next(action for action in mine.full_actions() if isinstance(action, AddFile)).base_row_id is None


def test_a_commit_that_may_not_be_moved_is_refused_when_its_version_is_taken(table):
    transaction = table.begin()
    transaction.may_be_moved = False
    transaction.stage(AddFile("mine", {}, 1, 1, True, STATS))
    table.store.put("mine", b"?")  # a file of long ago is looked for
    table.append(pa.table({"id": [1], "s": [None]}, schema=NESTED))
    with pytest.raises(ConcurrentWriteException, match=r"version 1 \(WRITE\)"):
        table.commit(transaction, Operation("RESTORE"))
    assert table.version() == 1
