"""Races for rows of the same file, on real files: vectors and rows are read from storage after a lost race."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import ConcurrentAppendException, ConcurrentDeleteDeleteException, ConcurrentDeleteReadException
from tahoe.expr.row_condition import row_condition
from tahoe.log.replay import add_files
from tahoe.ops.write.writer import write_arrow
from tahoe.protocol.dv import decode, descriptor_in_file, new_file_name, pack
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn import commit as commit_module
from tahoe.txn.transaction import Operation, ReadSet, Transaction

ROWS = 20_000


@pytest.fixture
def table(tmp_path) -> Table:
    properties = {"delta.enableDeletionVectors": "true"}
    made = Table.create(tmp_path, pa.schema([("id", pa.int64()), ("v", pa.string())]), properties=properties, clock=SeededClock())
    made.append(rows(range(ROWS), "old"))
    return made


def rows(ids, value: str) -> pa.Table:
    ids = list(ids)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([value] * len(ids))})


def change(table: Table, ids: list[int], value: str | None = None, predicate: str | None = None) -> Transaction:
    """Return a transaction that deletes or updates rows as DELETE and UPDATE with vectors stage them."""
    transaction, asked = table.begin(), set(ids)
    matching = row_condition(predicate or f"id in ({', '.join(map(str, ids))})", table.schema()).predicate
    transaction.read(matching)
    for add in add_files(transaction.snapshot.files_matching(matching)):
        rows_read = Table(table.url, clock=table.clock).snapshot().scan(columns=["id"]).read([replace(add, deletion_vector=None)])
        positions = BitMap64(i for i, each in enumerate(rows_read.column("id").to_pylist()) if each in asked)
        deleted = decode(add.deletion_vector, table.store.get, table.url) if add.deletion_vector else BitMap64()
        positions -= deleted
        transaction.read_rows(add.key, positions)
        if positions:
            uuid = table.clock.uuid()
            data, places = pack([deleted | positions])
            table.store.put(new_file_name(uuid), data)
            transaction.stage(add.remove(1), replace(add, deletion_vector=descriptor_in_file(uuid, places[0])))
    if value is not None:
        transaction.stage(*write_arrow(transaction.snapshot.config, table.store, rows(ids, value), table.clock))
    return transaction


def commit(table: Table, transaction: Transaction):
    return table.commit(transaction, Operation("TEST"))


def content(table: Table) -> dict[int, str]:
    rows_read = Snapshot.at(table.store).scan().to_arrow()
    ids = rows_read.column("id").to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, rows_read.column("v").to_pylist(), strict=True))


def test_three_writers_that_change_different_rows_of_one_file_all_succeed(table):
    racing = [change(table, [1, 5], "a"), change(table, [2]), change(table, [3, 7], "c")]
    assert [commit(table, transaction).version for transaction in racing] == [2, 3, 4]
    expected = dict.fromkeys(range(ROWS), "old") | {1: "a", 5: "a", 3: "c", 7: "c"}
    del expected[2]
    assert content(table) == expected
    (old,) = [add for add in add_files(table.snapshot().files()) if add.deletion_vector]
    assert set(decode(old.deletion_vector, table.store.get, table.url)) == {1, 2, 3, 5, 7}
    assert table.check() == []


def test_the_same_row_changed_by_both_conflicts_and_the_message_names_commit_and_file(table):
    first, second = change(table, [1, 2]), change(table, [2, 3])
    commit(table, first)
    with pytest.raises(ConcurrentDeleteReadException, match=r"version 2 \(TEST\) changed 1 of the 2 rows read of file part-0"):
        commit(table, second)
    assert table.snapshot().version == 2
    assert content(table).keys() == set(range(ROWS)) - {1, 2}


def test_writers_that_do_not_record_rows_still_cannot_delete_the_same_row(table):
    first, second, third = change(table, [1, 2]), change(table, [2, 3]), change(table, [4])
    for forgetful in (second, third):
        forgetful.reads = ReadSet(rows={key: BitMap64() for key in forgetful.reads.rows})
    commit(table, first)
    with pytest.raises(ConcurrentDeleteDeleteException):
        commit(table, second)
    commit(table, third)
    assert content(table).keys() == set(range(ROWS)) - {1, 2, 4}


def test_a_new_matching_row_conflicts_without_a_common_file(table):
    deleting = change(table, [30_000])
    assert deleting.staged == []
    deleting.stage(*write_arrow(deleting.snapshot.config, table.store, rows([1], "x"), table.clock))
    table.append(rows([29_999, 30_001], "between"))
    table.append(rows([30_000], "new"))
    with pytest.raises(ConcurrentAppendException, match=r"version 3 \(WRITE\).*the rows with `id` IN .30000."):
        commit(table, deleting)


def test_rows_decide_if_statistics_of_a_new_file_cannot(table):
    deleting = change(table, [5])
    table.append(rows([-1, ROWS], "around"))
    commit(table, deleting)
    assert content(table).keys() == (set(range(ROWS)) | {-1, ROWS}) - {5}


def test_files_too_large_to_read_conflict(table, monkeypatch):
    monkeypatch.setattr(commit_module, "MOST_BYTES_READ", 10)
    deleting = change(table, [5])
    table.append(rows([-1, ROWS], "around"))
    with pytest.raises(ConcurrentAppendException):
        commit(table, deleting)


@pytest.mark.damages_tables
def test_a_missing_vector_leaves_the_conflict_unresolved(table):
    first, second = change(table, [1]), change(table, [2])
    vectors = commit(table, first).snapshot.files().column("deletionVector").to_pylist()
    (name,) = [entry.name for entry in table.store.walk() if entry.name.endswith(".bin") and _is_of(entry.name, vectors)]
    table.store.delete(name)
    with pytest.raises(ConcurrentAppendException):
        commit(table, second)


def _is_of(name: str, vectors: list[dict]) -> bool:
    from tahoe.protocol.actions import DeletionVectorDescriptor
    from tahoe.protocol.dv import file_name

    descriptors = [
        DeletionVectorDescriptor(v["storageType"], v["pathOrInlineDv"], v["sizeInBytes"], v["cardinality"]) for v in vectors
    ]
    return name in [file_name(each, "file:///") for each in descriptors]


def test_a_large_merged_vector_goes_to_a_file_and_a_small_one_stays_in_the_log(table):
    small = change(table, [1]), change(table, [2])
    for transaction in small:
        merged = commit(table, transaction)
    assert [add.deletion_vector.storage_type for add in add_files(merged.snapshot.files())] == ["i"]
    large = [change(table, list(range(first, ROWS, 7)), predicate="id >= 10") for first in (10, 13)]
    for transaction in large:
        merged = commit(table, transaction)
    assert [add.deletion_vector.storage_type for add in add_files(merged.snapshot.files())] == ["u"]
    assert content(table).keys() == {each for each in range(ROWS) if each not in (1, 2) and (each < 10 or each % 7 not in (3, 6))}


def test_when_both_together_delete_all_rows_the_file_is_removed(table):
    halves = [change(table, list(range(first, ROWS, 2)), predicate="id >= 0") for first in (0, 1)]
    for transaction in halves:
        commit(table, transaction)
    assert table.snapshot().num_files == 0
    assert table.check() == []
