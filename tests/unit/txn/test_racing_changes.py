"""Concurrent DELETE and UPDATE of one table by two writers, through `Table` alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import ConcurrentAppendException, ConcurrentDeleteReadException, DeltaConcurrentModificationException
from tahoe.ops.merge.merge import stage_merge
from tahoe.ops.rows.delete import stage_delete
from tahoe.ops.rows.update import stage_update


@pytest.fixture
def table(tmp_path) -> Table:
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    made = Table.create(tmp_path, schema, properties={"delta.enableDeletionVectors": "true"})
    made.append(pa.table({"id": range(100), "v": [0] * 100}))
    return made


def raced(table: Table, *stages) -> list[str]:
    """Start all on the same version, commit them in order, and return the names of the conflicts, '' for none."""
    started_commit = [table.begin() for _ in stages]
    staged = [stage(transaction) for stage, transaction in zip(stages, started_commit, strict=True)]
    conflicts = []
    for transaction, each in zip(started_commit, staged, strict=True):
        try:
            table.commit(transaction, each.operation)
            conflicts.append("")
        except DeltaConcurrentModificationException as conflict:
            conflicts.append(type(conflict).__name__)
    return conflicts


def delete(where):
    return lambda transaction: stage_delete(transaction, where)


def update(where, value):
    return lambda transaction: stage_update(transaction, {"v": str(value)}, where)


def test_deletes_and_updates_of_different_rows_of_one_file_all_succeed(table):
    assert raced(table, update("id < 10", 1), delete("id % 2 = 1 and id > 50"), update("id = 20 or id = 22", 3)) == ["", "", ""]
    rows = table.to_arrow().sort_by("id")
    expected = {i: 1 if i < 10 else 3 if i in (20, 22) else 0 for i in range(100) if not (i % 2 == 1 and i > 50)}
    assert dict(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True)) == expected
    assert table.check() == []


def test_changes_of_the_same_row_conflict(table):
    assert raced(table, delete("id = 5"), delete("id < 6")) == ["", ConcurrentDeleteReadException.__name__]
    assert raced(table, update("id = 50", 1), update("v = 0 and id >= 50", 2)) == ["", ConcurrentDeleteReadException.__name__]


def test_a_row_that_a_concurrent_update_made_match_conflicts(table):
    assert raced(table, update("id = 5", 7), delete("v = 7 or id = 6")) == ["", ConcurrentAppendException.__name__]


def merge(table: Table, ids: list[int], value: int) -> None:
    source = pa.table({"id": ids, "v": [value] * len(ids)})
    table.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()


class Interrupted(Table):
    """Runs another writer between this one's read and its commit."""

    def commit(self, transaction, operation, **options):
        other, self.other = self.other, None
        if other is not None:
            merge(Table(self.url), *other)
        return super().commit(transaction, operation, **options)


def test_merges_of_different_rows_of_one_file_both_succeed(table):
    late = Interrupted(table.url)
    late.other = ([3, 4, 300], 6)
    merge(late, [1, 2, 200], 5)
    rows = table.to_arrow()
    values = dict(zip(rows.column("id").to_pylist(), rows.column("v").to_pylist(), strict=True))
    assert values == dict.fromkeys(range(100), 0) | {1: 5, 2: 5, 200: 5, 3: 6, 4: 6, 300: 6}
    assert table.version() == 3
    assert table.check() == []


def test_merges_that_update_or_insert_the_same_row_conflict(table):
    late = Interrupted(table.url)
    for ids, conflict in (([3, 200], ConcurrentAppendException), ([1, 7], DeltaConcurrentModificationException)):
        late.other = (ids, 6)
        with pytest.raises(conflict):
            merge(late, [1, 200], 5)
    assert table.to_arrow(filter="id = 200").column("v").to_pylist() == [6]
    assert table.to_arrow(filter="v = 5").num_rows == 0


def test_concurrent_increments_are_not_lost(table):
    """Each of 40 steps adds one to a row; steps begin in racing pairs, and are repeated until both succeed."""
    for step in range(20):
        waiting = [step % 7, (step * 3) % 7]
        while waiting:
            conflicts = raced(table, *(_raise_by_one(number) for number in waiting))
            waiting = [number for number, conflict in zip(waiting, conflicts, strict=True) if conflict]
    assert sum(table.to_arrow().column("v").to_pylist()) == 40


def _raise_by_one(number: int):
    return lambda transaction: stage_update(transaction, {"v": "v + 1"}, f"id = {number}")


def merging(table, keys, add_clauses):
    """Return a MERGE of rows with these keys and the value 9."""
    rows = pa.table({"id": keys, "v": [9] * len(keys)})
    statement = add_clauses(table.merge(rows, "target.id = source.id")).statement
    return lambda transaction: stage_merge(transaction, statement)


def test_a_matched_row_must_not_be_deleted_concurrently(table):
    new = merging(table, [5, 200], lambda builder: builder.when_not_matched_insert_all())
    assert raced(table, delete("id = 5"), new) == ["", ConcurrentDeleteReadException.__name__]
    again = merging(table, [6, 300], lambda builder: builder.when_not_matched_insert_all())
    assert raced(table, delete("id = 7"), again) == ["", ""]
    assert {200, 300} & set(table.to_arrow().column("id").to_pylist()) == {300}


def test_clauses_for_rows_that_no_source_row_matches_read_every_row(table):
    unmatched = merging(table, [5], lambda builder: builder.when_not_matched_by_source_delete("target.id > 90"))
    assert raced(table, merging(table, [500], lambda builder: builder.when_not_matched_insert_all()), unmatched) == [
        "",
        ConcurrentAppendException.__name__,
    ]
    assert 500 in table.to_arrow().column("id").to_pylist()
