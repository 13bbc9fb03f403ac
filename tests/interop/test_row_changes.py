"""Rows that change: the same history by Tahoe and by deltalake gives the same rows, and readers that are not ours agree on vectors."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tahoe import Table
from tests.interop.engines import canonical, read_deltalake, read_duckdb

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("value", pa.float64())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
READERS = [pytest.param(read_deltalake, id="deltalake"), pytest.param(read_duckdb, id="duckdb")]
Reader = Callable[..., pa.Table]

Step = tuple[str, Any]

# Of the clauses of one MERGE.
ADDED = {"value": "target.value + source.value"}
NEW = {"id": "source.id", "part": "'b'", "value": "source.value * 2"}
AGED = {"value": "target.value + 1", "part": "'a'"}


def rows(ids: list[int], seed: float = 0.0) -> pa.Table:
    return pa.table({"id": ids, "part": ["abc"[i % 3] for i in ids], "value": [i + seed for i in ids]}, schema=SCHEMA)


def steps(seed: int, count: int) -> list[Step]:
    """A history of appends, deletes, updates and upserts."""
    chance = random.Random(seed)
    actual: list[Step] = []
    for number in range(count):
        low = chance.randrange(60)
        where = chance.choice(
            [
                f"id = {low}",
                f"id between {low} and {low + 9}",
                f"part = '{chance.choice('abc')}' and id < {low}",
                f"value > {low} and value < {low + 5}",
                f"part = '{chance.choice('abc')}'",
                f"id % 7 = {low % 7}",
            ]
        )
        kind = chance.choice(["append", "append", "delete", "update", "merge", "merge", "merge by clauses"])
        if kind == "delete":
            actual.append((kind, where))
        elif kind == "update":
            actual.append((kind, (chance.choice([{"value": "value * 2"}, {"part": "'b'"}, {"value": "null"}]), where)))
        else:
            actual.append((kind, rows(chance.sample(range(80), 12), number / 100)))
    return actual


def by_tahoe(path: str, step: Step) -> None:
    table = Table(path)
    match step:
        case "append", data:
            table.append(data)
        case "delete", where:
            table.delete(where)
        case "update", (values, where):
            table.update(values, where)
        case "merge", data:
            merge = table.merge(data, "target.id = source.id")
            merge.when_matched_delete("source.id % 5 = 0").when_matched_update_all().when_not_matched_insert_all().execute()
        case "merge by clauses", data:
            merge = table.merge(data, "target.id = source.id and target.part = source.part")
            merge = merge.when_matched_update(ADDED, "source.id % 2 = 0").when_matched_delete("target.value > 50")
            merge = merge.when_not_matched_insert(NEW, "source.id < 60").when_not_matched_insert_all("source.id > 70")
            merge = merge.when_not_matched_by_source_update(AGED, "target.part = 'c'")
            merge.when_not_matched_by_source_delete("target.id < 5").execute()


def by_deltalake(path: str, step: Step) -> None:
    table = deltalake.DeltaTable(path)
    match step:
        case "append", data:
            deltalake.write_deltalake(path, data, mode="append")
        case "delete", where:
            table.delete(where)
        case "update", (values, where):
            table.update(updates=values, predicate=where)
        case "merge", data:
            merge = table.merge(data, "target.id = source.id", source_alias="source", target_alias="target")
            merge.when_matched_delete("source.id % 5 = 0").when_matched_update_all().when_not_matched_insert_all().execute()
        case "merge by clauses", data:
            both = "target.id = source.id and target.part = source.part"
            merge = table.merge(data, both, source_alias="source", target_alias="target")
            merge = merge.when_matched_update(ADDED, "source.id % 2 = 0").when_matched_delete("target.value > 50")
            merge = merge.when_not_matched_insert(NEW, "source.id < 60").when_not_matched_insert_all("source.id > 70")
            merge = merge.when_not_matched_by_source_update(AGED, "target.part = 'c'")
            merge.when_not_matched_by_source_delete("target.id < 5").execute()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("properties", [{}, FEED], ids=["plain", "feed"])
def test_a_history_gives_the_same_rows_by_either_writer(tmp_path: Path, seed: int, properties: dict[str, str]) -> None:
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    Table.create(ours, SCHEMA, partition_by=["part"], properties=properties).append(rows(list(range(40))))
    shutil.copytree(ours, theirs)
    for step in steps(seed, 10):
        by_tahoe(ours, step)
        by_deltalake(theirs, step)
        assert canonical(Table(ours).to_arrow()) == canonical(Table(theirs).to_arrow()), step
    assert canonical(read_deltalake(ours)) == canonical(read_deltalake(theirs))
    assert Table(ours).check() == []
    assert Table(theirs).check() == []


@pytest.mark.parametrize("seed", range(2))
def test_writers_in_turns_leave_the_table_of_a_single_writer(tmp_path: Path, seed: int) -> None:
    both, alone = str(tmp_path / "both"), str(tmp_path / "alone")
    Table.create(both, SCHEMA, partition_by=["part"]).append(rows(list(range(40))))
    shutil.copytree(both, alone)
    for number, step in enumerate(steps(100 + seed, 10)):
        (by_deltalake if number % 2 else by_tahoe)(both, step)
        by_tahoe(alone, step)
    assert canonical(Table(both).to_arrow()) == canonical(Table(alone).to_arrow())
    assert Table(both).check() == []


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("properties", [VECTORS, {**VECTORS, **FEED}], ids=["vectors", "vectors-feed"])
def test_a_table_with_vectors_is_read_equal_at_every_version(tmp_path: Path, read: Reader, properties: dict[str, str]) -> None:
    path = str(tmp_path / "t")
    table = Table.create(path, SCHEMA, partition_by=["part"], properties=properties)
    table.append(rows(list(range(60))))
    for step in steps(7, 10):
        by_tahoe(path, step)
    assert any(vector is not None for vector in table.files()["deletionVector"].to_pylist()), "no vector is left to be read"
    for version in range(table.version() + 1):
        assert canonical(read(path, version)) == canonical(table.to_arrow(version=version)), version
    assert table.check() == []


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("mode", ["name", "id"])
def test_vectors_and_column_mapping_are_read_equal_together(tmp_path: Path, read: Reader, mode: str) -> None:
    path = str(tmp_path / "t")
    # Not partitioned: DuckDB reads the text partition columns of mapped tables as null, with vectors or without.
    table = Table.create(path, SCHEMA, properties={**VECTORS, "delta.columnMapping.mode": mode})
    table.append(rows(list(range(30))))
    table.delete("id % 4 = 1")
    table.update({"value": "0"}, "id % 4 = 2")
    assert canonical(read(path)) == canonical(table.to_arrow())


def test_our_feed_is_read_equal_by_deltalake(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    table = Table.create(path, SCHEMA, partition_by=["part"], properties=FEED)
    table.append(rows(list(range(30))))
    for step in steps(3, 8):
        by_tahoe(path, step)
    theirs = pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=0).read_all())
    ours = table.changes(0)
    names = [*SCHEMA.names, "_change_type", "_commit_version"]
    assert canonical(theirs.select(names)) == canonical(ours.select(names))


def test_the_feed_of_deltalake_is_read_equal_by_us(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    Table.create(path, SCHEMA, partition_by=["part"], properties=FEED).append(rows(list(range(30))))
    for step in steps(5, 8):
        by_deltalake(path, step)
    theirs = pa.table(deltalake.DeltaTable(path).load_cdf(starting_version=0).read_all())
    names = [*SCHEMA.names, "_change_type", "_commit_version"]
    assert canonical(Table(path).changes(0).select(names)) == canonical(theirs.select(names))
