"""DELETE on its three paths: the actions in the log and the rows of readers."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe import Table
from tahoe.base.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException, InvalidRequest, NotFound
from tahoe.log.files.commits import read_commit
from tahoe.ops.rows import row_changes
from tahoe.ops.rows.delete import stage_delete
from tahoe.protocol.actions import AddCDCFile, AddFile, RemoveFile

SCHEMA = pa.schema([("id", pa.int64()), ("month", pa.int32()), ("name", pa.string())])
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


def rows(*ids: int, month: int = 1) -> pa.Table:
    return pa.table({"id": list(ids), "month": [month] * len(ids), "name": [f"n{i}" for i in ids]}, schema=SCHEMA)


def ids(table: Table, **asked: Any) -> list[int]:
    return sorted(table.to_arrow(columns=["id"], **asked)["id"].to_pylist())


def last(table: Table, kind: type) -> list[Any]:
    return [action for action in read_commit(table.store, table.version()) if isinstance(action, kind)]


def make(path: Path, properties: dict[str, str] | None = None) -> Table:
    table = Table.create(path / "t", SCHEMA, partition_by=["month"], properties=properties)
    table.append(rows(*range(10)))
    table.append(rows(*range(10, 20), month=2))
    return table


@pytest.fixture(params=[{}, VECTORS, FEED, {**VECTORS, **FEED}], ids=["rewrite", "vectors", "rewrite-feed", "vectors-feed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return make(tmp_path, request.param)


def test_rows_for_which_the_condition_is_true_go_and_old_versions_keep_them(table: Table) -> None:
    outcome = table.delete("id in (0, 3, 12) or name = 'n5'")
    assert (outcome.version, outcome.num_affected_rows, outcome.num_deleted_rows) == (3, 4, 4)
    assert ids(table) == [i for i in range(20) if i not in (0, 3, 12, 5)]
    assert ids(table, version=2) == list(range(20))
    assert table.check() == []


def test_rows_for_which_the_condition_is_null_stay(table: Table) -> None:
    table.append(pa.table({"id": [None, 100], "month": [1, 1], "name": ["x", "y"]}, schema=SCHEMA))
    table.delete("id >= 0")
    assert table.to_arrow(columns=["name"])["name"].to_pylist() == ["x"]


def test_a_condition_may_name_a_whole_struct(tmp_path: Path) -> None:
    kind = pa.struct([("x", pa.int64())])
    table = Table.create(tmp_path / "structs", pa.schema([("k", pa.int64()), ("s", kind)]))
    table.append(pa.table({"k": [1, 2, 3], "s": pa.array([{"x": 1}, None, {"x": None}], kind)}))
    assert table.delete("s is null").num_deleted_rows == 1
    assert table.to_arrow()["k"].to_pylist() == [1, 3]


def test_no_matching_row_makes_no_commit(table: Table) -> None:
    outcome = table.delete("id = 1000")
    assert (outcome.version, outcome.num_affected_rows, dict(outcome.metrics)) == (None, 0, {})
    assert table.version() == 2
    assert table.delete("month = 7").version is None


def test_repeated_deletes_keep_rows_that_no_condition_matched(table: Table) -> None:
    for i in range(0, 20, 3):
        assert table.delete(f"id = {i}").num_deleted_rows == 1
    assert ids(table) == [i for i in range(20) if i % 3]
    assert table.check() == []


@pytest.mark.parametrize("where", [None, "true"])
def test_deleting_everything_reads_no_data_file(table: Table, where: str | None) -> None:
    for file in Path(table.url.removeprefix("file://")).rglob("*.parquet"):
        file.write_bytes(b"not to be read")
    outcome = table.delete(where)
    assert outcome.num_deleted_rows == 20
    assert table.files().num_rows == 0
    assert outcome.metrics["numRemovedFiles"] == 2
    assert last(table, AddFile) == []
    assert last(table, AddCDCFile) == []


def test_whole_partitions_go_without_reading(table: Table) -> None:
    table.delete("id = 15")
    outcome = table.delete("month = 2")
    assert outcome.num_deleted_rows == 9
    assert ids(table) == list(range(10))
    assert len(last(table, RemoveFile)) == 1
    assert last(table, AddFile) == []


def test_a_row_count_that_statistics_lack_comes_from_the_footer(tmp_path: Path) -> None:
    make(tmp_path)
    commit = tmp_path / "t/_delta_log/00000000000000000001.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for old in (tmp_path / "t/_delta_log").glob("*.crc"):
        old.unlink()
    assert Table(tmp_path / "t").delete().num_deleted_rows == 20


def test_a_vector_marks_rows_and_the_file_stays(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    before = {add.path: add for version in (1, 2) for add in read_commit(table.store, version) if isinstance(add, AddFile)}
    outcome = table.delete("id in (1, 2, 11)")
    adds, removes = last(table, AddFile), last(table, RemoveFile)
    assert {add.path for add in adds} == {remove.path for remove in removes} == set(before)
    for add in adds:
        old, new = json.loads(before[add.path].stats or ""), json.loads(add.stats)
        assert new.pop("tightBounds") is False
        assert new == old
        assert add.data_change
    assert sorted(add.deletion_vector.cardinality for add in adds) == [1, 2]
    assert len({add.deletion_vector.path_or_inline_dv for add in adds}) == 1, "both vectors are in one file"
    assert {name: outcome.metrics[name] for name in ("numAddedFiles", "numRemovedFiles", "numCopiedRows", "numDeletedRows")} == {
        "numAddedFiles": 0,
        "numRemovedFiles": 0,
        "numCopiedRows": 0,
        "numDeletedRows": 3,
    }
    assert (outcome.metrics["numDeletionVectorsAdded"], outcome.metrics["numDeletionVectorsRemoved"]) == (2, 0)


def test_a_vector_joins_the_one_that_is_there(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    table.delete("id = 1")
    outcome = table.delete("id = 2")
    (add,) = last(table, AddFile)
    (remove,) = last(table, RemoveFile)
    assert (add.deletion_vector.cardinality, remove.deletion_vector.cardinality) == (2, 1)
    assert (outcome.metrics["numDeletionVectorsAdded"], outcome.metrics["numDeletionVectorsRemoved"]) == (1, 1)
    assert ids(table) == [0, *range(3, 20)]


def test_a_file_of_which_no_row_is_left_goes(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    table.delete("id < 9")
    outcome = table.delete("id = 9")
    assert last(table, AddFile) == []
    assert (outcome.metrics["numRemovedFiles"], outcome.metrics["numDeletionVectorsRemoved"]) == (1, 1)
    assert ids(table) == list(range(10, 20))


def test_many_vectors_fill_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_changes, "VECTOR_FILE_BYTES", 50)
    table = make(tmp_path, VECTORS)
    table.delete("id in (1, 2, 11)")
    assert len(list((tmp_path / "t").glob("deletion_vector_*.bin"))) == 2
    assert ids(table) == [i for i in range(20) if i not in (1, 2, 11)]


def test_without_vectors_the_rows_that_stay_are_copied(tmp_path: Path) -> None:
    table = make(tmp_path)
    outcome = table.delete("id in (1, 2, 11)")
    names = ("numAddedFiles", "numRemovedFiles", "numCopiedRows", "numDeletedRows", "numAddedChangeFiles")
    assert [outcome.metrics[name] for name in names] == [2, 2, 17, 3, 0]
    assert table.history(1)[0]["operationParameters"] == {"predicate": '["id in (1, 2, 11)"]'}
    assert table.history(1)[0]["operation"] == "DELETE"


def test_turning_vectors_off_rewrites_files_that_have_them(tmp_path: Path) -> None:
    table = make(tmp_path, VECTORS)
    table.delete("id in (1, 11)")
    table.set_properties({"delta.enableDeletionVectors": "false"})
    table.delete("id = 2")
    assert [add.deletion_vector for add in last(table, AddFile)] == [None]
    assert ids(table) == [i for i in range(20) if i not in (1, 2, 11)]


def test_the_feed_shows_deleted_rows_on_every_path(table: Table) -> None:
    table.set_properties(FEED)
    first = table.version()
    table.delete("id in (4, 14)")
    table.delete("id = 5")
    table.delete("month = 2")
    table.delete()
    for older, newer in pairwise(range(first, table.version() + 1)):
        changes = table.changes(newer, newer)
        assert set(changes["_change_type"].to_pylist()) == {"delete"}
        assert sorted(changes["id"].to_pylist()) == sorted(set(ids(table, version=older)) - set(ids(table, version=newer)))


def test_change_data_files_are_written_by_rewrites_only(table: Table) -> None:
    table.delete("id in (4, 14)")
    properties = table.snapshot().config.properties
    expected = properties.enable_change_data_feed and not properties.enable_deletion_vectors
    files = last(table, AddCDCFile)
    assert bool(files) == expected
    assert all(file.path.startswith("_change_data/month=") for file in files)


def test_an_append_only_table_refuses_before_a_file_is_written(tmp_path: Path) -> None:
    table = make(tmp_path, {"delta.appendOnly": "true"})
    names = set((tmp_path / "t").rglob("*"))
    for where in ("id = 1", "month = 1", None):
        with pytest.raises(InvalidRequest) as caught:
            table.delete(where)
        assert caught.value.code == "DELTA_CANNOT_MODIFY_APPEND_ONLY"
    assert set((tmp_path / "t").rglob("*")) == names


def test_where_there_is_no_table_nothing_can_be_deleted(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Table(tmp_path / "nothing").delete("id = 1")


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("properties", [FEED, {**FEED, **VECTORS}], ids=["rewrite", "vectors"])
def test_mapped_columns_are_deleted_by_and_shown_under_their_names(tmp_path: Path, mode: str, properties: dict[str, str]) -> None:
    table = make(tmp_path, {**properties, "delta.columnMapping.mode": mode})
    table.delete("name = 'n4'")
    assert ids(table) == [i for i in range(20) if i != 4]
    (changed,) = table.changes(3).to_pylist()
    assert {name: changed[name] for name in (*SCHEMA.names, "_change_type", "_commit_version")} == {
        "id": 4,
        "month": 1,
        "name": "n4",
        "_change_type": "delete",
        "_commit_version": 3,
    }


def test_a_delete_meets_a_winner_that_took_a_row_of_its_own(table: Table) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_delete(transaction, "id in (1, 2)")
    table.delete("id = 2")
    with pytest.raises(DeltaConcurrentModificationException):
        stale.commit(transaction, staged.operation)
    assert ids(table) == [0, 1, *range(3, 20)]


def test_a_delete_passes_a_winner_in_another_partition(table: Table) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_delete(transaction, "month = 1 and id = 1")
    table.append(rows(50, month=2))
    stale.commit(transaction, staged.operation)
    assert ids(table) == [0, *range(2, 20), 50]


@pytest.mark.parametrize("where", ["month = 1", None], ids=["a partition", "all rows"])
def test_a_delete_of_whole_files_meets_a_winner_that_added_rows_to_them(table: Table, where: str | None) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_delete(transaction, where)
    table.append(rows(50, month=1))
    with pytest.raises(ConcurrentAppendException):
        stale.commit(transaction, staged.operation)
    assert ids(table) == [*range(20), 50]


def test_a_delete_of_a_partition_passes_a_winner_in_another(table: Table) -> None:
    stale = Table(table.url)
    transaction = stale.begin()
    staged = stage_delete(transaction, "month = 1")
    table.append(rows(50, month=2))
    stale.commit(transaction, staged.operation)
    assert ids(table) == [*range(10, 20), 50]
