"""Transactions over several tables of a Spark session: DataFrames into each, and one moment at which all of it is there."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.table import Table
from tahoe.base.exceptions import ConcurrentAppendException, InvalidRequest
from tahoe.spark.jvm.storage import COORDINATOR
from tahoe.tables import DeltaTable

PROPERTIES = {"delta.feature.catalogManaged": "supported", "delta.enableDeletionVectors": "true"}
SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.int64())])


@pytest.fixture
def coordinator(spark, tmp_path):
    coordinator = tahoe.SqlCoordinator(f"sqlite:///{tmp_path}/c.db")
    tahoe.enable(spark, coordinator=coordinator)
    yield coordinator
    spark.conf.unset(COORDINATOR)


@pytest.fixture
def tables(spark, tmp_path: Path, coordinator) -> list[DeltaTable]:
    """Two tables with rows 0, 1, 2 of an amount of 10."""
    for name in "ab":
        table = Table.create(str(tmp_path / name), SCHEMA, properties=PROPERTIES, coordinator=coordinator)
        table.append(pa.table({"id": [0, 1, 2], "amount": [10] * 3}, SCHEMA))
    return [DeltaTable.forPath(spark, str(tmp_path / name)) for name in "ab"]


def held(table: DeltaTable) -> dict[int, int]:
    return {row.id: row.amount for row in table.toDF().collect()}


def test_all_tables_change_at_the_end_of_the_block(spark, tables) -> None:
    a, b = tables
    with tahoe.transaction(a, b) as t:
        source = spark.createDataFrame([(1, 5), (7, 7)], "id BIGINT, amount BIGINT")
        clauses = t[a].alias("t").merge(source.alias("s"), "t.id = s.id")
        done = clauses.whenMatchedUpdate(set={"amount": "t.amount - s.amount"}).whenNotMatchedInsertAll().execute().first()
        t[b].append(source)
        assert (done.num_updated_rows, done.num_inserted_rows) == (1, 1)
        assert held(a) == held(b) == {0: 10, 1: 10, 2: 10}, "nothing is there before the end"
        assert t[b].toDF().count() == 3
    assert held(a) == {0: 10, 1: 5, 2: 10, 7: 7}
    assert sorted(row.amount for row in b.toDF().collect()) == [5, 7, 10, 10, 10]
    assert list(t.versions.values()) == [2, 2]
    infos = [table.history(1).first() for table in tables]
    assert [info.operation for info in infos] == ["MERGE", "WRITE"] and not infos[1].isBlindAppend
    read = tahoe.read_together(a, b)
    assert [rows.count() for rows in read] == [4, 5]
    b.delete()
    assert [rows.count() for rows in read] == [4, 5], "of one moment, and it stays"
    assert all(table._table.check(strict=True) == [] for table in tables)


def test_rows_are_deleted_updated_and_replaced_beside_a_table_without_spark(spark, tmp_path, tables, coordinator) -> None:
    a, b = tables
    plain = Table.create(str(tmp_path / "plain"), SCHEMA, properties=PROPERTIES, coordinator=coordinator)
    with tahoe.transaction(a, b, plain) as t:
        t[a].delete("id = 0")
        t[b].update("id > 0", {"amount": "amount + id"})
        t[plain].append(pa.table({"id": [5], "amount": [5]}, SCHEMA))
    assert (held(a), held(b), plain.to_arrow().num_rows) == ({1: 10, 2: 10}, {0: 10, 1: 11, 2: 12}, 1)
    with tahoe.transaction(a, b) as t:
        t[a].overwrite(t[b].toDF().where("id = 2"), replaceWhere="id = 2")
        t[b].overwrite(spark.createDataFrame([(9, 9)], "id BIGINT, amount BIGINT"))
    assert (held(a), held(b)) == ({1: 10, 2: 12}, {9: 9})


def test_a_block_that_raises_and_a_conflict_change_nothing(spark, tables) -> None:
    a, b = tables

    def dies() -> None:
        with tahoe.transaction(a, b) as t:
            t[a].delete()
            raise RuntimeError

    def conflicts() -> None:
        with tahoe.transaction(a, b) as t:
            t[b].append(t[a].toDF().selectExpr("id + 10 AS id", "amount"))
            t[a].delete("id = 1")
            spark.createDataFrame([(4, 4)], "id BIGINT, amount BIGINT").write.format("delta").mode("append").save(a._table.url)

    def fails() -> None:
        with tahoe.transaction(a, b) as t:
            t[a].delete()
            t[b].append(spark.range(1).selectExpr("id", "CAST(raise_error('amount is not') AS BIGINT) AS amount"))

    with pytest.raises(RuntimeError):
        dies()
    with pytest.raises(ConcurrentAppendException):
        conflicts()
    with pytest.raises(Exception, match="amount is not"):
        fails()
    assert (held(a), held(b)) == ({0: 10, 1: 10, 2: 10, 4: 4}, {0: 10, 1: 10, 2: 10})


def test_statements_that_a_transaction_cannot_contain_are_refused_by_name(spark, tmp_path, tables) -> None:
    a, b = tables
    rows = spark.createDataFrame([(9, 9)], "id BIGINT, amount BIGINT")

    def twice() -> None:
        with tahoe.transaction(a, b) as t:
            t[a].append(rows)
            t[a].delete()

    def with_one_alone() -> None:
        with tahoe.transaction(a, DeltaTable.forPath(spark, str(tmp_path / "alone"))):
            pass

    with pytest.raises(InvalidRequest) as caught:
        twice()
    assert caught.value.code == "TAHOE_ONE_CHANGE_A_TABLE" and held(a) == held(b)
    with tahoe.transaction(a, b) as t:
        late = t[a].merge(rows.alias("s"), "false").whenNotMatchedInsertAll()
    for use in (late.execute, lambda: t[b].append(rows), lambda: t[b].delete()):
        with pytest.raises(InvalidRequest, match="is over; nothing was changed") as caught:
            use()
        assert caught.value.code == "TAHOE_NOT_IN_TRANSACTION"
    assert held(a) == held(b) == {0: 10, 1: 10, 2: 10}
    rows.write.format("delta").save(str(tmp_path / "alone"))
    with pytest.raises(InvalidRequest) as caught:
        with_one_alone()
    assert caught.value.code == "TAHOE_NOT_ONE_COORDINATOR"
