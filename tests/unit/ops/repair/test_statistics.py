"""ANALYZE TABLE … COMPUTE DELTA STATISTICS: statistics recomputed from the rows."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.log.files.live_files import add_files
from tahoe.ops.repair.statistics import collected_here, compute_statistics
from tahoe.protocol.features import ENFORCED
from tahoe.txn.transaction import Operation

SCHEMA = pa.schema({"id": pa.int64(), "x": pa.float64(), "p": pa.string()})


def rows(*ids: int) -> pa.Table:
    return pa.table(
        {"id": list(ids), "x": [float("nan") if item == 1 else item / 2 for item in ids], "p": ["a"] * len(ids)}, SCHEMA
    )


def new(properties: dict[str, str] | None = None) -> Table:
    return Table.create(f"memory://{SYSTEM_CLOCK.uuid()}/table", SCHEMA, partition_by=["p"], properties=properties)


def stats(table: Table) -> list[dict]:
    return [json.loads(text) for text in table.files()["stats"].to_pylist()]


def spoil(table: Table, text: str | None) -> None:
    transaction = table.begin()
    transaction.enforces = ENFORCED
    transaction.stage(*(replace(add, stats=text, data_change=False) for add in add_files(table.snapshot().files())))
    table.commit(transaction, Operation("Manual Update"))


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
def test_wrong_statistics_are_replaced_by_those_of_a_writer(mapping: str):
    table = new({"delta.columnMapping.mode": mapping, "delta.enableRowTracking": "true"})
    table.append(rows(1, 2, 3))
    right, with_ids = stats(table), repr(table.to_arrow(row_ids=True).to_pylist())
    assert table.compute_statistics().changed == 0 and table.version() == 1
    spoil(table, '{"numRecords":3,"minValues":{"id":7}}')
    assert "1 need new statistics" in str(table.compute_statistics(dry_run=True)) and table.version() == 2
    done = table.compute_statistics()
    assert (done.version, done.files, done.changed) == (3, 1, 1)
    assert stats(table) == right and repr(table.to_arrow(row_ids=True).to_pylist()) == with_ids and table.check(deep=True) == []
    commit = table.history(1)[0]
    assert (commit["operation"], commit["operationParameters"]) == ("COMPUTE STATS", {"predicate": "[]"})


@pytest.mark.damages_tables
def test_a_file_with_dead_rows_keeps_them_in_its_bounds_and_says_so():
    table = new({"delta.enableDeletionVectors": "true"})
    table.append(rows(1, 2, 3, 4))
    table.delete("id = 4")
    spoil(table, None)
    table.compute_statistics()
    ((actual),) = stats(table)
    assert (actual["numRecords"], actual["maxValues"]["id"], actual["tightBounds"]) == (4, 4, False)
    assert table.check(deep=True) == [] and table.to_arrow().num_rows == 3


def test_converted_files_get_statistics_of_the_columns_that_are_asked_for():
    table = Table(f"memory://{SYSTEM_CLOCK.uuid()}/folder")
    sink = io.BytesIO()
    pq.write_table(rows(1, 2, 3).drop(["p"]), sink)
    table.store.put("p=a/x.parquet", sink.getvalue())
    table.store.put("p=b/x.parquet", sink.getvalue())
    table.convert_to_delta({"p": "string"}, statistics=False)
    table.set_properties({"delta.dataSkippingStatsColumns": "id"})
    assert table.compute_statistics("p = 'a'").changed == 1
    assert table.compute_statistics().changed == 1
    assert [item["maxValues"] for item in stats(table)] == [{"id": 3}, {"id": 3}]
    assert table.files("id > 3").num_rows == 0


def test_who_loses_to_a_writer_of_the_same_files_looks_again():
    table = new()
    table.append(rows(1, 2))
    table.append(rows(3, 4))
    spoil(table, None)
    other, raced = Table(table.url), []

    def commit(transaction, operation):
        if not raced:
            raced.append(other.delete("id = 1"))
        return table.commit(transaction, operation)

    done = compute_statistics(table.begin, commit, collected_here)
    assert done.version == table.version() and sorted(table.to_arrow()["id"].to_pylist()) == [2, 3, 4]
    assert table.check(deep=True) == [] and all(item["numRecords"] in (1, 2) for item in stats(table))
