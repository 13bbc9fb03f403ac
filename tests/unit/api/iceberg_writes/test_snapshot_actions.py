"""Snapshots made by hand: deletes by position and by vector, rows deleted in the commit that adds them, and snapshots that lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.api.iceberg_writes.hand_made import KINDS, Writer, rows
from tests.unit.uniform.commits.client_files import Written
from tests.unit.uniform.serve.serving import refused


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted_by_position(tmp_path: Path, kind: str) -> None:
    writer = Writer(tmp_path, **KINDS[kind])
    writer.table.append(rows(1, 2, 3, 4))
    (location,) = writer.files()
    deleted = writer.vector(location, [1]) if "Puffin" in kind else writer.position_deletes(**{location: [1]})
    assert writer.commit("delete", deleted).status == 200
    writer.assert_rows(1, 3, 4)
    history = writer.table.history(1)[0]
    assert (history["operation"], history["operationMetrics"]["numDeletedRows"]) == ("ICEBERG DELETE", "1")
    marked = writer.table.files()["deletionVector"].null_count == 0
    assert marked == ("rewritten" not in kind)


def test_a_vector_replaces_a_smaller_one(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["Puffin files of vectors"])
    writer.table.append(rows(1, 2, 3, 4))
    writer.table.delete("id = 2")
    (location,) = writer.files()
    assert writer.commit("delete", writer.vector(location, [1, 3]), without="d").status == 200
    writer.assert_rows(1, 3)
    assert "restores deleted rows" in refused(
        writer.commit("delete", writer.vector(location, [0]), without="d"), 400, "UnsupportedOperationException"
    )
    writer.assert_rows(1, 3)


def test_rows_are_updated_by_deletes_and_another_file(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.set_properties({"delta.enableChangeDataFeed": "true"})
    writer.table.append(rows(1, 2, 3))
    (location,) = writer.files()
    version = writer.table.version() + 1
    assert writer.commit("overwrite", writer.data_file(22), writer.position_deletes(**{location: [1]})).status == 200
    writer.assert_rows(1, 22, 3)
    feed = writer.table.changes(version).select(["id", "_change_type"]).to_pylist()
    assert sorted((each["id"], each["_change_type"]) for each in feed) == [(2, "delete"), (22, "insert")]


def test_rows_may_be_deleted_in_the_commit_that_adds_them(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    added = writer.data_file(5, 6, 7)
    assert writer.commit("overwrite", added, writer.position_deletes(**{added.path: [0, 2]})).status == 200
    writer.assert_rows(6)


def test_all_rows_of_a_file_are_deleted_by_removing_it(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    (location,) = writer.files()
    assert writer.commit("delete", writer.position_deletes(**{location: [0, 1]})).status == 200
    writer.assert_rows()
    assert writer.files() == []


def test_deletes_of_other_files_have_no_effect(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1))
    assert writer.commit("delete", writer.position_deletes(**{"file:///elsewhere/x.parquet": [0]})).status == 200
    writer.assert_rows(1)


def test_snapshots_that_contradict_the_table_are_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    (location,) = writer.files()
    version = writer.table.version()
    lies = {
        "deletes row 2 of the file": writer.commit("delete", writer.position_deletes(**{location: [2]})),
        "is outside of the folder": writer.commit("append", Written("file:///etc/passwd", 1, 9)),
        "does not exist": writer.commit("append", writer.data_file(5), **{"manifest-list": f"file://{writer.root}/none.avro"}),
        "; it is not opened": writer.commit("append", **{"manifest-list": "file:///etc/passwd"}),
        "removes files": writer.commit("append", without="m"),
        "must not change rows": writer.commit("replace", without="m"),
        "and deletes 1 others": writer.commit("replace", writer.position_deletes(**{location: [0]})),
        "Parquet file": writer.commit("append", Written(writer.put("data/x.parquet", b"no"), 1, 2)),
        "has 1 rows, and 7 by its manifest": writer.commit("append", Written(writer.data_file(1).path, 7, 9)),
    }
    for message, answer in lies.items():
        assert message in refused(answer, 400, "BadRequestException")
    conflict = writer.commit("delete", **{"parent-snapshot-id": 77})
    assert "is not in the table" in refused(conflict, 409, "CommitFailedException")
    assert writer.table.version() == version
    writer.assert_rows(1, 2)


def test_files_are_rearranged_without_a_change_of_data(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2))
    writer.table.append(rows(3))
    assert writer.commit("replace", writer.data_file(3, 1, 2), without="m").status == 200
    writer.assert_rows(1, 2, 3)
    assert len(writer.files()) == 1
    log = sorted((writer.root / "_delta_log").glob("*.json"))[-1].read_text()
    assert '"dataChange":true' not in log and '"dataChange":false' in log
