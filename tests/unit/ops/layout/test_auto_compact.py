"""A write that leaves many small files is followed by their compaction, which no writer sees the worse for."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import StorageFailure
from tahoe.ops.layout.auto_compact import AutoCompaction, PartitionReservations, compaction_after
from tahoe.ops.layout.optimize_plan import OptimizeRequest
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import WrappedStore
from tahoe.txn.commit import Committed

SCHEMA = pa.schema({"p": pa.string(), "id": pa.int64()})
ON = {"delta.autoOptimize.autoCompact": "true"}


@pytest.fixture
def store() -> LogStore:
    return open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")


def rows(count: int, partition: str | None = "a", first: int = 0) -> pa.Table:
    return pa.table({"p": [partition] * count, "id": range(first, first + count)}, SCHEMA)


def table_of(store: LogStore, properties: dict[str, str] = ON, partitioned: bool = True) -> Table:
    return Table.create(store.url, SCHEMA, partition_by=["p"] if partitioned else [], properties=properties, store=store)


def operations(table: Table) -> list[str]:
    return [commit["operation"] for commit in table.history()][::-1]


@pytest.mark.parametrize("name", ["delta.autoOptimize.autoCompact", "delta.autoOptimize"])
@pytest.mark.parametrize("value", ["true", "TRUE"])
def test_fifty_small_files_of_a_partition_become_one(store: LogStore, name: str, value: str) -> None:
    table = table_of(store, {name: value})
    table.append(rows(49), max_rows_per_file=1)
    assert (operations(table), table.files().num_rows) == (["CREATE TABLE", "WRITE"], 49)
    table.append(rows(3, "b", 100), max_rows_per_file=1)
    assert table.version() == 2
    assert table.append(rows(1, "a", 49)) == 3
    assert operations(table)[3:] == ["WRITE", "OPTIMIZE"]
    assert table.version() == 4
    assert table.files().num_rows == 4
    commit = table.history(1)[0]
    assert commit["operationParameters"] == {
        "predicate": "[\"`p` <=> 'a'\"]",
        "zOrderBy": "[]",
        "clusterBy": "[]",
        "auto": "true",
    }
    assert (commit["operationMetrics"]["numRemovedFiles"], commit["operationMetrics"]["numAddedFiles"]) == ("50", "1")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [*range(50), 100, 101, 102]
    assert table.check(deep=True) == []


@pytest.mark.parametrize("value", ["auto", "legacy"])
def test_values_of_databricks_compact_too(store: LogStore, value: str) -> None:
    table = table_of(store, {"delta.autoOptimize.autoCompact": value}, partitioned=False)
    table.append(rows(50), max_rows_per_file=1)
    assert (table.files().num_rows, table.history(1)[0]["operationParameters"]["predicate"]) == (1, "[]")


@pytest.mark.parametrize("properties", [{}, {"delta.autoOptimize.autoCompact": "false"}])
def test_nothing_is_compacted_where_nobody_asks(store: LogStore, properties: dict[str, str]) -> None:
    table = table_of(store, properties)
    table.append(rows(60), max_rows_per_file=1)
    assert operations(table) == ["CREATE TABLE", "WRITE"]


def test_partitions_of_any_value_are_met(store: LogStore) -> None:
    table = table_of(store)
    for value in (None, "", "it's", "a=b/c", "NULL"):
        table.append(rows(50, value), max_rows_per_file=1)
        assert table.history(1)[0]["operation"] == "OPTIMIZE", value
    assert table.to_arrow().num_rows == 250


def test_rows_that_are_only_deleted_compact_nothing_and_updates_do(store: LogStore) -> None:
    table = table_of(store, {"delta.enableDeletionVectors": "true"})
    table.append(rows(60), max_rows_per_file=1)
    table.append(rows(2, first=60))
    table.set_properties(ON)
    table.delete("id = 60")
    assert table.history(1)[0]["operation"] == "DELETE"
    table.update({"id": "200"}, "id = 5")
    assert operations(table)[-2:] == ["UPDATE", "OPTIMIZE"]


def test_files_that_come_back_stay_as_they_are(store: LogStore) -> None:
    table = table_of(store, {})
    table.append(rows(60), max_rows_per_file=1)
    table.overwrite(rows(1))
    table.set_properties(ON)
    settings = AutoCompaction(True)
    asked: list[OptimizeRequest] = []
    hooked = Table(
        table.url,
        store=store,
        hooks=(lambda committed: compaction_after(committed, settings, PartitionReservations(), asked.append),),
    )
    hooked.restore(1)
    assert (asked, hooked.files().num_rows) == ([], 60)
    hooked.append(rows(1))
    assert len(asked) == 1


def test_errors_of_compaction_fail_no_commit_and_are_reported(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    table_of(store)
    writes = 0

    class Full(WrappedStore):
        def put(self, name: str, data: bytes) -> None:
            nonlocal writes
            if name.endswith(".parquet") and (writes := writes + 1) > 50:
                raise StorageFailure("no space is left")
            super().put(name, data)

    with caplog.at_level(logging.ERROR, "tahoe.txn.hooks"):
        assert Table(store.url, store=Full(store)).append(rows(50), max_rows_per_file=1) == 1
    assert "no space is left" in caplog.text
    table = Table(store.url, store=store)
    assert (table.files().num_rows, table.version()) == (50, 1)
    assert sum(entry.name.endswith(".parquet") for entry in store.walk("p=a")) == 50


def test_eight_writers_neither_wait_nor_fail_for_it(store: LogStore) -> None:
    table_of(store, partitioned=False)

    def write(writer: int) -> None:
        table = Table(store.url, store=store)
        for number in range(3):
            table.append(rows(20, first=1000 * writer + 20 * number), max_rows_per_file=1)

    with ThreadPoolExecutor(8) as pool:
        for writing in [pool.submit(write, writer) for writer in range(8)]:
            writing.result()
    table = Table(store.url, store=store)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(1000 * w + i for w in range(8) for i in range(60))
    assert table.check(deep=True) == []
    compactions = operations(table).count("OPTIMIZE")
    assert compactions >= 1
    assert table.files().num_rows < 480 - 49 * compactions + compactions


# -- which partitions ----------------------------------------------------------------------------------------------------------------


def requests_after(
    table: Table, data: pa.Table, settings: AutoCompaction, reserved: PartitionReservations | None = None
) -> list[OptimizeRequest]:
    """The compaction that would run after an append of files with one row each."""
    asked: list[OptimizeRequest] = []

    def hook(committed: Committed) -> None:
        compaction_after(committed, settings, reserved or PartitionReservations(), asked.append)

    Table(table.url, store=table.store, hooks=(hook,)).append(data, max_rows_per_file=1)
    return asked


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["`p` <=> 'b'"]),
        ({"min_files": 3, "modified_only": False}, [None]),
        ({"min_files": 5}, []),
        ({"min_files": 0}, ["`p` <=> 'b'"]),
        ({"least": 10}, []),
        ({"not_after_appends": True}, []),
        ({"enabled": False}, []),
    ],
)
def test_a_session_says_which(store: LogStore, settings: dict[str, Any], expected: list[str | None]) -> None:
    table = table_of(store, {})
    table.append(rows(4, "a"), max_rows_per_file=1)
    asked = requests_after(table, rows(4, "b"), AutoCompaction(**{"enabled": True, "min_files": 4, **settings}))
    assert [None if item.where is None else str(item.where) for item in asked] == expected


def test_partitions_with_most_files_come_first_and_no_more_than_that(store: LogStore) -> None:
    table = table_of(store, {})
    table.append(rows(2, "a"), max_rows_per_file=1)
    data = pa.concat_tables([rows(2, "a"), rows(3, "b"), rows(2, "c")])
    asked = requests_after(table, data, AutoCompaction(True, min_files=2, most_partitions=2))
    assert [str(item.where) for item in asked] == ["(`p` <=> 'a') OR (`p` <=> 'b')"]


def test_files_that_another_thread_compacts_are_left_to_it(store: LogStore) -> None:
    table, reserved = table_of(store, {}), PartitionReservations()
    settings = AutoCompaction(True, min_files=2)
    with reserved.of(table.url, [(("p", "a"),)]):
        data = pa.concat_tables([rows(2, "a"), rows(2, "b")])
        assert [str(item.where) for item in requests_after(table, data, settings, reserved)] == ["`p` <=> 'b'"]
        assert requests_after(table, rows(2, "a"), settings, reserved) == []
    assert len(requests_after(table, rows(2, "a"), settings, reserved)) == 1
