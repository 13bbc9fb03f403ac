"""Transactions over several tables: all changes become visible at once or none, and the rows read have not changed."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.several_tables import read_together, transaction
from tahoe.api.table import Table
from tahoe.base.exceptions import (
    ConcurrentAppendException,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    InvalidRequest,
)
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.store.object_store import open_store

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
PROPERTIES = {"delta.feature.catalogManaged": "supported"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "n": ids}, SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow()["id"].to_pylist())


@pytest.fixture
def coordinator(tmp_path: Path) -> SqlCoordinator:
    return SqlCoordinator(f"sqlite:///{tmp_path}/c.db")


def new_table(coordinator: SqlCoordinator) -> Table:
    url = f"memory://{uuid.uuid4()}/t"
    table = Table.create(url, SCHEMA, properties=PROPERTIES, store=open_store(url), coordinator=coordinator)
    table.append(rows(1, 2, 3), max_rows_per_file=1)
    return table


@pytest.fixture
def a(coordinator: SqlCoordinator) -> Table:
    return new_table(coordinator)


@pytest.fixture
def b(coordinator: SqlCoordinator) -> Table:
    return new_table(coordinator)


def test_all_kinds_of_changes_are_visible_at_the_end_and_not_before(a: Table, b: Table, coordinator: SqlCoordinator) -> None:
    c, d, e = (new_table(coordinator) for _ in range(3))
    with transaction(a, b, c, d, e) as t:
        t[a].append(rows(4))
        assert (t[b].delete("id = 1").num_deleted_rows, t[b].delete("id = 99").num_deleted_rows) == (1, 0)
        assert t[c].update({"n": "n + 10"}, "id = 2").num_updated_rows == 1
        t[d].overwrite(rows(9), replace_where="id = 9")
        merge = t[e].merge(rows(3, 4), "target.id = source.id").when_matched_delete().when_not_matched_insert_all()
        assert merge.execute().version is None, "which it gets is not known yet"
        assert [ids(table) for table in (a, b, d, e)] == [[1, 2, 3]] * 4
        with pytest.raises(InvalidRequest, match="not committed"):
            _ = t.versions
    assert [ids(table) for table in (a, b, d, e)] == [[1, 2, 3, 4], [2, 3], [1, 2, 3, 9], [1, 2, 4]]
    assert sorted(c.to_arrow()["n"].to_pylist()) == [1, 3, 12]
    assert set(t.versions.values()) == {2} and t.versions[a.url] == a.version()
    assert len({table.snapshot().state.transaction_id for table in (a, b, c, d, e)}) == 1
    assert [table.history(1)[0]["operation"] for table in (a, b, c)] == ["WRITE", "DELETE", "UPDATE"]
    assert [table.check(strict=True) for table in (a, b, c, d, e)] == [[]] * 5


def test_an_error_in_the_block_leaves_all_as_it_was(a: Table, b: Table) -> None:
    def fail() -> None:
        with transaction(a, b) as t:
            t[a].append(rows(4))
            raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        fail()
    assert a.version() == b.version() == 1


def test_who_does_not_meet_the_winners_is_moved_past_them_in_each_table(a: Table, b: Table) -> None:
    with transaction(a, b) as t:
        t[a].append(rows(4))
        t[b].update({"n": "0"}, "id = 1")
        a.append(rows(5))
        b.update({"n": "7"}, "id = 2")
        b.update({"n": "8"}, "id = 3")
    assert (t.versions[a.url], t.versions[b.url]) == (3, 4)
    assert ids(a) == [1, 2, 3, 4, 5] and sorted(b.to_arrow()["n"].to_pylist()) == [0, 7, 8]
    assert a.check(strict=True) == b.check(strict=True) == []


def test_a_conflict_in_one_table_leaves_all_as_they_are(a: Table, b: Table) -> None:
    def meet() -> None:
        with transaction(a, b) as t:
            t[a].append(rows(4))
            t[b].update({"n": "0"}, "id = 1")
            b.update({"n": "7"}, "id = 1")

    with pytest.raises(DeltaConcurrentModificationException):
        meet()
    assert (a.version(), b.version()) == (1, 2) and ids(a) == [1, 2, 3]
    assert a.append(rows(4)) == 2


def test_tables_read_in_the_block_have_not_changed_at_its_end(a: Table, b: Table) -> None:
    def read_and_write(written: Table) -> None:
        with transaction(a, b) as t:
            total = sum(t[a].to_arrow()["n"].to_pylist())
            t[written].append(pa.table({"id": [total], "n": [total]}, SCHEMA))
            a.append(rows(4))

    with pytest.raises(ConcurrentWriteException, match="was read at version 1"):
        read_and_write(b)
    with pytest.raises(ConcurrentAppendException):
        read_and_write(a)
    assert ids(a) == [1, 2, 3, 4, 4] and ids(b) == [1, 2, 3]


def test_reading_in_the_block_is_of_its_beginning(a: Table, b: Table) -> None:
    with transaction(a, b) as t:
        b.append(rows(4))
        t[a].append(rows(5))
        assert t[a].to_arrow().num_rows == 3
        assert t[b].snapshot(version=0).version == 0
        assert t[a].snapshot().version == 1
        t[b].append(rows(6))
    assert ids(b) == [1, 2, 3, 4, 6]


def test_nothing_changed_is_nothing_committed(a: Table, b: Table) -> None:
    with transaction(a, b) as t:
        t[a].delete("id = 99")
    assert set(t.versions.values()) == {1} and a.version() == b.version() == 1


def test_tables_of_one_moment_are_read(a: Table, b: Table) -> None:
    first, second = read_together(a, b)
    with transaction(a, b) as t:
        t[a].append(rows(4))
        t[b].append(rows(4))
    assert (first.version, second.version) == (1, 1)
    assert [snapshot.version for snapshot in read_together(b, a)] == [2, 2]
    assert [snapshot.scan().to_arrow().num_rows for snapshot in read_together(a, b)] == [4, 4]


def test_impossible_requests_are_refused_by_name(a: Table, b: Table, coordinator: SqlCoordinator, tmp_path: Path) -> None:
    plain = Table(f"memory://{uuid.uuid4()}/p")
    plain.append(rows(1))
    elsewhere = new_table(SqlCoordinator(f"sqlite:///{tmp_path}/other.db"))
    for tables, match in (
        ((a, plain), plain.url),
        ((a, elsewhere), "several coordinators"),
        ((a, a), "each table once"),
        ((), "at least one"),
    ):
        with pytest.raises(InvalidRequest, match=match) as caught:
            read_together(*tables)
        assert caught.value.code == "TAHOE_NOT_ONE_COORDINATOR"
    with transaction(a) as t, pytest.raises(InvalidRequest, match="not in this transaction"):
        t[b].append(rows(1))

    def twice() -> None:
        with transaction(a, b) as t:
            t[a].append(rows(8))
            t[a].append(rows(9))

    with pytest.raises(InvalidRequest, match="one commit to each"):
        twice()
    assert ids(a) == [1, 2, 3]
