"""Tahoe reads tables of deltalake with equal rows, and a table that both write stays right."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import tahoe
from tests.interop.engines import canonical, read_deltalake, read_duckdb, read_polars
from tests.interop.test_readers_of_others import ALL_TYPES


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


def rows_of(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "month": pa.array([number % 3 for number in numbers], pa.int32()),
            "name": pa.array([f"row {number}" for number in numbers], pa.string()),
        }
    )


def test_every_type_that_deltalake_writes_is_read_equal(path: str) -> None:
    deltalake.write_deltalake(path, ALL_TYPES)
    assert canonical(tahoe.Table(path).to_arrow()) == canonical(ALL_TYPES)
    assert tahoe.Table(path).check() == []


@pytest.mark.parametrize("column", ["i32", "day", "yes", "price", "at"])
def test_partitions_that_deltalake_writes_are_read_equal(path: str, column: str) -> None:
    rows = ALL_TYPES.select(["id", column])
    if column == "price":
        # deltalake 1.6.6 writes a negative decimal into the log as '-99999999.-99' and cannot read it back itself.
        rows = rows.filter(pa.compute.greater_equal(rows["price"], 0).fill_null(True))
    deltalake.write_deltalake(path, rows, partition_by=[column])
    assert canonical(tahoe.Table(path).to_arrow()) == canonical(rows)


@pytest.mark.parametrize("value", ["a/b", "a b", "ü", "50%", "a=b", "a:b", "#?&", ".."])
def test_partition_values_that_deltalake_escapes_are_read_equal(path: str, value: str) -> None:
    rows = pa.table({"id": [1, 2], "p": [value, "plain"]})
    deltalake.write_deltalake(path, rows, partition_by=["p"])
    assert canonical(tahoe.Table(path).to_arrow()) == canonical(rows)
    assert canonical(tahoe.Table(path).to_arrow(filter="p = 'plain'")) == canonical(rows.slice(1))


def test_deletes_updates_merges_and_compaction_of_deltalake_are_read_equal(path: str) -> None:
    for number in range(0, 40, 4):
        deltalake.write_deltalake(path, rows_of(*range(number, number + 4)), mode="append", partition_by=["month"])
    theirs = deltalake.DeltaTable(path)
    theirs.delete("id % 7 = 0")
    theirs.update(updates={"name": "'changed'"}, predicate="id > 20")
    theirs.optimize.compact()
    theirs.create_checkpoint()
    assert canonical(tahoe.Table(path).to_arrow()) == canonical(read_deltalake(path))
    assert tahoe.Table(path).check() == []


def test_every_version_of_a_table_of_deltalake_is_read_equal(path: str) -> None:
    for number in range(14):
        deltalake.write_deltalake(path, rows_of(number), mode="overwrite" if number == 7 else "append")
        if number == 9:
            deltalake.DeltaTable(path).create_checkpoint()
    for version in range(14):
        assert canonical(tahoe.Table(path).to_arrow(version=version)) == canonical(read_deltalake(path, version)), version


def test_a_table_written_by_turns_stays_right(path: str) -> None:
    ours = tahoe.Table.create(path, rows_of().schema, partition_by=["month"])
    expected = []
    for number in range(0, 60, 2):
        rows = rows_of(number, number + 1)
        if number % 4 == 0:
            ours.append(rows)
        else:
            deltalake.write_deltalake(path, rows, mode="append")
        expected.append(rows)
    expected_rows = canonical(pa.concat_tables(expected))
    for read in (read_deltalake, read_duckdb, read_polars):
        assert canonical(read(path)) == expected_rows
    assert canonical(ours.to_arrow()) == expected_rows
    assert ours.version() == 30
    assert ours.check() == []


def test_by_turns_with_deletes_checkpoints_and_overwrites(path: str) -> None:
    ours = tahoe.Table.create(path, rows_of().schema, partition_by=["month"])
    ours.append(rows_of(*range(30)))
    deltalake.DeltaTable(path).delete("id < 10")
    ours.overwrite(rows_of(1, 4, 7), replace_where="month = 1")
    ours.checkpoint()
    deltalake.DeltaTable(path).update(updates={"name": "'theirs'"}, predicate="month = 2")
    deltalake.DeltaTable(path).create_checkpoint()
    ours.append(rows_of(100))
    remaining = [number for number in range(10, 30) if number % 3 != 1]
    ids = sorted([*remaining, 1, 4, 7, 100])
    for read in (read_deltalake, read_duckdb, read_polars):
        actual = read(path)
        assert sorted(actual["id"].to_pylist()) == ids
        assert canonical(actual) == canonical(ours.to_arrow())
    assert ours.check() == []


def test_deltalake_finds_our_history_and_application_transactions(path: str) -> None:
    ours = tahoe.Table.create(path, rows_of().schema)
    ours.append(rows_of(1), app=("loader", 7), user_metadata="first")
    theirs = deltalake.DeltaTable(path)
    assert theirs.transaction_version("loader") == 7
    newest = theirs.history(1)[0]
    assert newest["operation"] == "WRITE"
    assert newest["userMetadata"] == "first"


def test_a_handle_sees_commits_of_another_engine(path: str) -> None:
    ours = tahoe.Table.create(path, rows_of().schema)
    ours.append(rows_of(1))
    deltalake.write_deltalake(path, rows_of(2), mode="append")
    assert ours.version() == 2
    deltalake.write_deltalake(path, rows_of(3), mode="overwrite")
    assert canonical(ours.to_arrow()) == canonical(rows_of(3))
