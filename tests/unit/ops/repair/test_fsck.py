"""FSCK: files that are gone from storage leave the log."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.repair.fsck import fsck
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "p": ["a b"] * len(ids)}, SCHEMA)


@pytest.fixture
def table() -> Table:
    """Three files of two rows, one of them with a deletion vector in a file of its own."""
    url = f"memory://{SYSTEM_CLOCK.uuid()}/table"
    made = Table.create(url, SCHEMA, partition_by=["p"], properties={"delta.enableDeletionVectors": "true"})
    for first in (0, 10, 20):
        made.append(rows(first, first + 1))
    made.delete("id = 20")
    return made


def name_of(table: Table, number: int) -> str:
    return str(table.files(f"id = {number}")["path"][0]).replace("%20", " ")


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


def test_nothing_is_done_where_nothing_is_missing(table):
    done = table.fsck()
    assert done.version is None and done.lost == () and "are there" in str(done) and table.version() == 4


def test_a_file_that_is_gone_leaves_the_log(table):
    table.store.delete(name_of(table, 0))
    planned = table.fsck(dry_run=True)
    assert [item.is_missing for item in planned.lost] == [True] and "would remove 1 file with 2 rows" in str(planned)
    assert table.version() == 4
    done = table.fsck()
    assert done.version == 5 and ids(table) == [10, 11, 21] and table.check() == []
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationParameters"]) == ("FSCK", {"dryRun": "false"})
    assert commit["operationMetrics"]["numRemovedFiles"] == "1"
    assert table.fsck().version is None


def test_a_file_whose_vector_is_gone_leaves_too(table):
    (vector,) = [entry.name for entry in table.store.walk() if entry.name.endswith(".bin")]
    table.store.delete(vector)
    (lost,) = table.fsck(dry_run=True).lost
    assert (lost.is_missing, lost.vector, lost.vector_is_missing) == (False, vector, True)
    table.fsck()
    assert ids(table) == [0, 1, 10, 11]


@pytest.mark.damages_tables
def test_files_of_another_table_are_looked_for_there(table):
    table.clone(f"{table.url}-clone", shallow=True)
    clone = Table(f"{table.url}-clone")
    assert clone.fsck().lost == ()
    table.store.delete(name_of(table, 10))
    assert clone.fsck().version == 1 and ids(clone) == [0, 1, 21]


def test_others_may_write_meanwhile(table):
    table.store.delete(name_of(table, 0))
    other, lost_races = Table(table.url), []

    def commit(transaction, operation):
        if not lost_races:
            lost_races.append(other.append(rows(30)))
        return table.commit(transaction, operation)

    assert fsck(table.begin, commit).version == 6 and ids(table) == [10, 11, 21, 30]


def test_who_loses_to_one_that_removes_the_file_looks_again(table):
    table.store.delete(name_of(table, 0))
    other, raced = Table(table.url), []

    def commit(transaction, operation):
        if not raced:
            raced.append(other.fsck().version)
        return table.commit(transaction, operation)

    done = fsck(table.begin, commit)
    assert raced == [5] and done.version is None and done.lost == ()


@pytest.mark.damages_tables
def test_who_dies_leaves_the_table_as_it_was_or_repaired(table):
    table.store.delete(name_of(table, 0))
    content = {entry.name: table.store.get(entry.name) for entry in table.store.walk()}
    trace = TracingStore(_copy(content))
    Table(trace.url, store=trace).fsck()
    for at in range(len(trace.calls)):
        store = _copy(content)
        with pytest.raises(SimulatedCrash):
            Table(store.url, store=CrashingStore(store, at, after=True)).fsck()
        Table(store.url, store=store).fsck()
        assert ids(Table(store.url, store=store)) == [10, 11, 21]


def _copy(content):
    store = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")
    for name, data in content.items():
        store.put(name, data)
    return store


@pytest.mark.damages_tables
def test_rows_of_an_append_only_table_go_only_where_that_is_allowed(table):
    table.set_properties({"delta.appendOnly": "true"})
    table.store.delete(name_of(table, 0))
    with pytest.raises(InvalidRequest, match="append"):
        table.fsck()
