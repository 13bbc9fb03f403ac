"""The concurrent commits onto which a commit can be rebased, and the errors for the others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from tahoe.expr.row_condition import row_condition
from tahoe.protocol.actions import AddFile, CommitInfo, DomainMetadata, Protocol, SetTransaction
from tahoe.txn.conflict import ConcurrentCommit, rebase
from tahoe.txn.prepare import prepare
from tahoe.txn.transaction import Operation, Transaction

OPERATION = Operation("WRITE")


@pytest.fixture
def table(tmp_path) -> Table:
    made = Table.create(
        tmp_path, pa.schema([("id", pa.int64()), ("day", pa.string())]), partition_by=["day"], clock=SeededClock()
    )
    made.append(pa.table({"id": [1, 2], "day": ["mon", "tue"]}))
    return made


def add(path: str, day: str = "mon", low: int = 0, high: int = 9) -> AddFile:
    stats = f'{{"numRecords":2,"minValues":{{"id":{low}}},"maxValues":{{"id":{high}}},"nullCount":{{"id":0}}}}'
    return AddFile(path, {"day": day}, 100, 1, True, stats)


def winner(*actions, operation: str = "WRITE") -> ConcurrentCommit:
    return ConcurrentCommit(2, (CommitInfo({"operation": operation, "txnId": "w"}), *actions))


def outcome(transaction: Transaction, *actions):
    return rebase(prepare(transaction, OPERATION), [winner(*actions)], now_ms=0)


def test_two_appends_never_conflict(table):
    mine = table.begin()
    mine.stage(add("mine"))
    moved = outcome(mine, add("theirs"))
    assert moved.version == 3
    assert moved.actions == prepare(mine, OPERATION).actions


def test_an_append_is_rebased_onto_several_commits_at_once(table):
    mine = table.begin()
    mine.stage(add("mine"))
    winners = [replace(winner(add(f"w{v}")), version=v) for v in (2, 3, 4)]
    assert rebase(prepare(mine, OPERATION), winners, 0).version == 5


def test_an_append_that_read_the_table_conflicts_with_an_append(table):
    mine = table.begin()
    mine.read_whole_table()
    mine.stage(add("mine"))
    conflict = outcome(mine, add("theirs"))
    assert isinstance(conflict, ConcurrentAppendException)
    assert "theirs" in conflict.message and "version 2 (WRITE)" in conflict.message
    assert conflict.facts["file"] == "theirs"


def test_a_commit_that_may_depend_on_any_row_moves_past_rearrangements_of_other_files_only(table):
    live = table.snapshot().scan().add_files()
    mine = table.begin()
    mine.read_all_rows()
    mine.stage(live[0].remove(1), add("mine"))
    moved = replace(add("theirs"), data_change=False)
    assert not isinstance(outcome(mine, live[1].remove(1, data_change=False), moved), DeltaConcurrentModificationException)
    assert isinstance(outcome(mine, live[0].remove(1, data_change=False), moved), ConcurrentDeleteDeleteException)
    assert isinstance(outcome(mine, live[1].remove(1)), ConcurrentDeleteReadException)
    assert isinstance(outcome(mine, add("theirs")), ConcurrentAppendException)


@pytest.mark.parametrize(
    ("read", "meets"),
    [("day = 'mon'", True), ("day = 'tue'", False), ("id > 5", True), ("id > 9", False), ("day = 'mon' and id = 20", False)],
)
def test_an_added_file_conflicts_by_partition_and_by_statistics(table, read, meets):
    mine = table.begin()
    mine.read(row_condition(read, table.schema()).predicate)
    mine.stage(add("mine"))
    assert isinstance(outcome(mine, add("theirs")), ConcurrentAppendException) is meets


def test_removing_a_read_file_conflicts(table):
    live = table.snapshot().scan().add_files()
    mine = table.begin()
    mine.read_files([live[0].key])
    mine.stage(add("mine"))
    assert isinstance(outcome(mine, live[0].remove(1)), ConcurrentDeleteReadException)
    assert not isinstance(outcome(mine, live[1].remove(1)), DeltaConcurrentModificationException)


def test_a_file_removed_by_both_conflicts(table):
    live = table.snapshot().scan().add_files()
    mine = table.begin()
    mine.stage(live[0].remove(1))
    assert isinstance(outcome(mine, live[0].remove(1)), ConcurrentDeleteDeleteException)


def test_metadata_changed_by_the_winner_conflicts_even_with_an_append(table):
    mine = table.begin()
    mine.stage(add("mine"))
    changed = replace(table.snapshot().metadata, description="new")
    assert isinstance(outcome(mine, changed), MetadataChangedException)


def test_a_concurrent_protocol_upgrade_does_not_conflict_with_appends(table):
    mine = table.begin()
    mine.stage(add("mine"))
    assert not isinstance(outcome(mine, Protocol(1, 4)), DeltaConcurrentModificationException)


def test_a_protocol_changed_by_both_conflicts(table):
    mine = table.begin()
    mine.set_protocol(Protocol(1, 3))
    mine.stage(add("mine"))
    assert isinstance(outcome(mine, Protocol(1, 4)), ProtocolChangedException)


def test_the_same_application_conflicts_only_if_it_was_read(table):
    mine = table.begin()
    mine.stage(add("mine"))
    assert not isinstance(outcome(mine, SetTransaction("app", 1)), DeltaConcurrentModificationException)
    mine.read_app("app")
    assert isinstance(outcome(mine, SetTransaction("app", 1)), ConcurrentTransactionException)
    assert not isinstance(outcome(mine, SetTransaction("other", 1)), DeltaConcurrentModificationException)


def test_the_same_domain_conflicts(table):
    mine = table.begin()
    mine.stage(DomainMetadata("d", "{}"))
    assert isinstance(outcome(mine, DomainMetadata("d", "1")), ConcurrentTransactionException)
    assert not isinstance(outcome(mine, DomainMetadata("e", "1")), DeltaConcurrentModificationException)


def test_creating_a_table_that_another_has_created_conflicts(tmp_path, table):
    mine = Transaction(table.store, None, table.clock)
    mine.set_metadata(table.snapshot().metadata)
    assert isinstance(rebase(prepare(mine, OPERATION), [replace(winner(), version=0)], 0), ProtocolChangedException)


def test_a_commit_that_only_rearranges_does_not_conflict_with_appends(table):
    live = table.snapshot().scan().add_files()
    mine = table.begin()
    mine.read(row_condition("day = 'mon'", table.schema()).predicate)
    mine.stage(live[0].remove(1, data_change=False), replace(live[0], path="compacted", data_change=False))
    assert not isinstance(outcome(mine, add("theirs")), DeltaConcurrentModificationException)


def test_the_in_commit_timestamp_is_later_than_the_concurrent_commit_s(tmp_path):
    table = Table.create(
        tmp_path / "ict",
        pa.schema([("id", pa.int64())]),
        properties={"delta.enableInCommitTimestamps": "true"},
        clock=SeededClock(),
    )
    mine = table.begin()
    mine.stage(AddFile("mine", {}, 1, 1, True))
    later = prepare(mine, OPERATION).timestamp + 1_000_000
    won = ConcurrentCommit(1, (CommitInfo({"inCommitTimestamp": later}),))
    moved = rebase(prepare(mine, OPERATION), [won], now_ms=0)
    assert moved.timestamp == later + 1
    assert moved.full_actions()[0].in_commit_timestamp == later + 1
