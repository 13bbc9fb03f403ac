"""Many removed files as columns: the commit, the next version and its checksum are those of single actions."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest

import tahoe
from tahoe.exceptions import ConcurrentAppendException, NotFound
from tahoe.log.checksum import read_checksum
from tahoe.log.files import removed_files
from tahoe.log.files.removed_files import LiveFiles, RemovedFiles, adds_of, joined, parts_of, single_actions
from tahoe.log.replay import add_files
from tahoe.ops.rows.delete import stage_delete
from tahoe.protocol.actions import AddFile, Metadata, RemoveFile, SetTransaction
from tahoe.store.local_store import LocalLogStore
from tahoe.testing.table_laws import assert_laws


def _table(root: Path) -> tahoe.Table:
    """Six files in three partitions, one of them NULL; one file has a deletion vector."""
    rows = pa.table({"id": range(6), "part": ["a b", "é", None] * 2})
    properties = {"delta.enableDeletionVectors": "true"}
    table = tahoe.Table.create(root, rows.schema, partition_by=["part"], properties=properties)
    for number in range(2):
        table.append(rows.slice(number * 3, 3))
        table.append(rows.slice(number * 3, 3))
    table.delete("id = 1 or id = 4")
    return table


def _lines(table: tahoe.Table) -> list[dict[str, dict[str, object]]]:
    name = f"{table.version():020d}.json"
    return [json.loads(line) for line in (Path(table.url.removeprefix("file://")) / "_delta_log" / name).read_text().splitlines()]


def _removes(table: tahoe.Table) -> list[dict[str, object]]:
    return sorted(
        ({**line["remove"], "deletionTimestamp": 0} for line in _lines(table) if "remove" in line), key=lambda each: str(each)
    )


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removed_files, "_FEW", 0)


@pytest.mark.parametrize("text", [None, "true"])
def test_a_delete_of_many_files_commits_the_tombstones_of_single_actions(
    tmp_path: Path, text: str | None, request: pytest.FixtureRequest
) -> None:
    table = _table(tmp_path / "t")
    before = add_files(table.files())
    expected = sorted(({"deletionTimestamp": 0} | add.remove(0).to_json_value() for add in before), key=lambda each: str(each))
    request.getfixturevalue("many")
    changed = table.delete(text)
    assert _removes(table) == sorted(({**each, "deletionTimestamp": 0} for each in expected), key=lambda each: str(each))
    assert (changed.num_deleted_rows, changed.metrics["numRemovedFiles"]) == (8, len(before))
    assert changed.metrics["numRemovedBytes"] == sum(add.size for add in before)
    assert changed.metrics["numDeletionVectorsRemoved"] == sum(add.deletion_vector is not None for add in before) == 0
    info = _lines(table)[0]["commitInfo"]
    assert (info["operation"], info["isBlindAppend"], info["isolationLevel"]) == ("DELETE", False, "Serializable")


def test_the_version_after_a_delete_of_many_files_is_that_of_the_log(tmp_path: Path, many: None) -> None:
    table = _table(tmp_path / "t")
    assert len(table.files())
    table.delete()
    table.append(pa.table({"id": [7], "part": ["x"]}))
    in_memory, read = table.snapshot(), tahoe.Table(table.url).snapshot()
    assert in_memory.files()["path"].to_pylist() == read.files()["path"].to_pylist()
    assert len(read.files()) == 1
    checksum = read_checksum(LocalLogStore(tmp_path / "t"), table.version())
    assert checksum is not None
    assert checksum.num_files == 1
    assert checksum.table_size_bytes == add_files(read.files())[0].size
    assert_laws(table)
    assert table.check() == []


def test_a_file_with_a_deletion_vector_is_removed_with_it(tmp_path: Path, many: None) -> None:
    table = tahoe.Table.create(
        tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"}
    )
    table.append(pa.table({"id": range(10)}))
    table.delete("id = 3")
    changed = table.delete()
    assert (changed.num_deleted_rows, changed.metrics["numDeletionVectorsRemoved"]) == (9, 1)
    assert "deletionVector" in _removes(table)[0]
    assert len(table.files()) == 0
    assert table.check() == []


def test_an_append_conflicts_with_a_delete_of_many_files(tmp_path: Path, many: None) -> None:
    table = _table(tmp_path / "t")
    transaction = table.begin()
    staged = stage_delete(transaction)
    assert isinstance(transaction.removed[0], RemovedFiles)
    tahoe.Table(table.url).append(pa.table({"id": [8], "part": ["x"]}))
    with pytest.raises(ConcurrentAppendException, match="the whole table"):
        table.commit_rows(transaction, staged)


def test_few_actions_are_objects(tmp_path: Path) -> None:
    table = _table(tmp_path / "t")
    assert isinstance(adds_of(table.files()), list)
    transaction = table.begin()
    stage_delete(transaction)
    assert transaction.removed == []
    assert {type(action) for action in transaction.staged} == {RemoveFile}
    assert isinstance(joined([1], (2, 3)), tuple)


def test_joined_actions_are_a_sequence(tmp_path: Path) -> None:
    files = _table(tmp_path / "t").files()
    adds, app = add_files(files), SetTransaction("a", 1)
    removed = RemovedFiles(LiveFiles(files), 5)
    actions = joined([app], removed, joined([app, *adds]))
    expected = [app, *(add.remove(5) for add in adds), app, *adds]
    assert list(actions) == expected
    assert len(actions) == len(expected)
    assert actions[len(adds)] == expected[len(adds)]
    assert actions[-1] == expected[-1]
    assert list(actions[1:3]) == expected[1:3]
    assert len(parts_of(actions)) == 3
    assert list(single_actions(actions)) == [app, app, *adds]
    assert not any(isinstance(action, Metadata) for action in actions)
    with pytest.raises(IndexError):
        actions[len(expected)]
    assert all(isinstance(add, AddFile) for add in LiveFiles(files))


def _actions(table: tahoe.Table) -> list[dict[str, dict[str, object]]]:
    """The lines of the newest commit without its times, in any order."""
    lines = []
    for line in _lines(table):
        ((name, value),) = line.items()
        members = {key: each for key, each in value.items() if key not in ("deletionTimestamp", "createdTime", "id")}
        lines += [] if name == "commitInfo" else [{name: members}]
    return sorted(lines, key=str)


def test_a_restore_and_a_clone_in_bulk_equal_those_by_single_actions(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    table = _table(tmp_path / "t")
    restored_version = table.version() - 1
    table.append(pa.table({"id": [9], "part": ["new"]}))
    before = {path: path.read_bytes() for path in (tmp_path / "t" / "_delta_log").iterdir()}
    actual = []
    for many in (False, True):
        if many:
            request.getfixturevalue("many")
            for path in (tmp_path / "t" / "_delta_log").iterdir():
                path.unlink()
            for path, content in before.items():
                path.write_bytes(content)
        table = tahoe.Table(tmp_path / "t")
        restored = table.restore(version=restored_version)
        clone = tahoe.Table(table.url)
        cloned = clone.clone(tmp_path / f"clone{many}", shallow=True)
        copy = tahoe.Table(tmp_path / f"clone{many}")
        actual.append((restored.metrics, _actions(table), cloned.metrics, _actions(copy), copy.to_arrow().sort_by("id")))
        in_memory, read = table.snapshot(), tahoe.Table(table.url).snapshot()
        assert sorted(map(str, add_files(in_memory.files()))) == sorted(map(str, add_files(read.files())))
        assert_laws(table)
        assert table.check() == [] and copy.check() == []
    assert actual[0] == actual[1]
    assert {name for action in actual[0][1] for name in action} >= {"add", "remove"}


def test_a_restore_of_many_files_names_a_missing_file(tmp_path: Path, many: None) -> None:
    table = _table(tmp_path / "t")
    path = table.files()["path"][0].as_py()
    table.delete()
    (tmp_path / "t" / unquote(path)).unlink()
    with pytest.raises(NotFound, match="1 file of that version are missing"):
        table.restore(version=table.version() - 1)
