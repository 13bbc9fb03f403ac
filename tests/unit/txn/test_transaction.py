"""A transaction records its reads and changes, and checks nothing."""

from __future__ import annotations

import pytest
from pyroaring import BitMap64

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.expr.tree.predicate import Column, IsNull
from tahoe.protocol.actions import SetTransaction
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.object_store import open_store
from tahoe.testing.log_builder import METADATA, PROTOCOL, add, memory_log, remove
from tahoe.txn.transaction import Transaction


@pytest.fixture
def transaction() -> Transaction:
    log = memory_log()
    log.begin(add("one"), SetTransaction("job", 7))
    return Transaction(log.store, Snapshot.at(log.store), SeededClock())


def test_reads_are_recorded_and_accumulate(transaction: Transaction) -> None:
    assert not transaction.reads.has_read_data
    predicate = IsNull(Column(("id",)))
    transaction.read(predicate)
    transaction.read_files([("a", None)])
    transaction.read_files([("b", "v")])
    transaction.read_rows(("c", None), BitMap64([1]))
    transaction.read_rows(("c", None), BitMap64([2]))
    assert transaction.reads.predicates == (predicate,) and transaction.reads.file_keys == {("a", None), ("b", "v")}
    assert transaction.reads.rows == {("c", None): BitMap64([1, 2])} and transaction.reads.has_read_data
    transaction.read_whole_table()
    assert transaction.reads.whole_table


def test_recorded_positions_are_copied(transaction: Transaction) -> None:
    positions = BitMap64([1])
    transaction.read_rows(("c", None), positions)
    positions.add(9)
    assert transaction.reads.rows[("c", None)] == BitMap64([1])


def test_reading_an_application_s_version_is_not_reading_data(transaction: Transaction) -> None:
    assert transaction.read_app("job") == 7 and transaction.read_app("other") is None
    assert transaction.reads.app_ids == {"job", "other"} and not transaction.reads.has_read_data


def test_files_are_staged_and_metadata_is_set(transaction: Transaction) -> None:
    added = add("one")
    transaction.stage(remove(added), add("two"))
    transaction.stage_app("job", 8)
    assert [action.path for action in transaction.adds] == ["two"] and [action.path for action in transaction.removes] == ["one"]
    for action in (PROTOCOL, METADATA):
        with pytest.raises(InvalidRequest) as caught:
            transaction.stage(action)
        assert caught.value.code == "TAHOE_NOT_STAGED_SO"


def test_a_change_needs_a_table_to_start_from(memory_url: str) -> None:
    with pytest.raises(NotFound) as caught:
        Transaction(open_store(memory_url), None, SeededClock()).existing()
    assert caught.value.code == "DELTA_TABLE_NOT_FOUND"


def test_a_config_is_checked_once_and_again_for_fewer_enforced_features(
    transaction: Transaction, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[frozenset[str]] = []
    monkeypatch.setattr(TableConfig, "ensure_writable", lambda self, enforced: asked.append(enforced))
    config = transaction.existing().config
    for enforced in ({"a"}, {"a", "b"}, {"a"}, set()):
        transaction.ensure_writable(config, frozenset(enforced))
    assert asked == [{"a"}, set()]
