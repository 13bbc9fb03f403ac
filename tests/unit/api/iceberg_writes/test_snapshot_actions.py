"""Snapshots made by hand: deletes by position and by vector, rows deleted in the commit that adds them, and snapshots that lie."""

from __future__ import annotations

import io
import itertools
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap64

import tahoe
from tahoe.protocol.dv import bitmap_to_bytes
from tahoe.uniform.commits.client_manifests import manifests_in
from tahoe.uniform.serve.rest_protocol import Request, Response
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list
from tests.unit.uniform.serve.serving import LOCAL, refused

SCHEMA = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.columnMapping.mode": "name"}
VECTORS = {"delta.enableDeletionVectors": "true", "delta.universalFormat.config.iceberg.deletes": "position"}
KINDS = {
    "files are rewritten": {"delta.enableIcebergCompatV2": "true"},
    "position deletes of vectors": {"delta.enableIcebergCompatV2": "true", **VECTORS},
    "Puffin files of vectors": {"delta.enableIcebergCompatV3": "true", "delta.enableDeletionVectors": "true"},
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())}, schema=SCHEMA)


class Writer:
    """Writes snapshots of one table by hand, and commits them."""

    def __init__(self, root: Path, **properties: str) -> None:
        self.catalog = writable_catalog(root)
        self.root = root / "t"
        tahoe.Table.create(self.root, pa.schema([("id", pa.int64())]), properties={**UNIFORM, **properties})
        self._numbers = itertools.count(1)

    @property
    def table(self) -> tahoe.Table:
        return tahoe.Table(self.root)

    @property
    def document(self) -> Any:
        return self.catalog._warehouse.load(("default",), "t").document

    def put(self, name: str, data: bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"file://{path}"

    def data_file(self, *ids: int) -> Written:
        target = io.BytesIO()
        pq.write_table(rows(*ids), target)
        data = target.getvalue()
        return Written(self.put(f"data/own-{next(self._numbers)}.parquet", data), len(ids), len(data))

    def position_deletes(self, **positions: list[int]) -> Written:
        """Return a delete file. Args: positions: by the location of the data file."""
        pairs = [(path, position) for path, each in positions.items() for position in each]
        target = io.BytesIO()
        columns = {"file_path": [path for path, _ in pairs], "pos": pa.array([position for _, position in pairs], pa.int64())}
        pq.write_table(pa.table(columns), target)
        path = self.put(f"data/deletes-{next(self._numbers)}.parquet", target.getvalue())
        return Written(path, len(pairs), len(target.getvalue()), content=1)

    def vector(self, location: str, positions: list[int]) -> Written:
        blob = bitmap_to_bytes(BitMap64(positions))
        data = b"PFA1" + struct.pack(">i", len(blob)) + blob + struct.pack(">I", zlib.crc32(blob))
        path = self.put(f"data/vector-{next(self._numbers)}.puffin", data)
        return Written(path, len(positions), len(data), 1, 1, "puffin", location, 4, len(data) - 4)

    def commit(self, operation: str, *files: Written, without: str | None = None, **changes: Any) -> Response:
        """Commit a snapshot with these files in addition to the current ones.

        Args:
            without: leave out the manifests with this in their names: ``m`` of data files, ``d`` of deletes.
            changes: of the snapshot.
        """
        number, document = next(self._numbers), self.document
        current = next(each for each in document["snapshots"] if each["snapshot-id"] == document["current-snapshot-id"])
        old = manifests_in(Path(current["manifest-list"].removeprefix("file://")).read_bytes(), "list")
        kept = {
            each.path: int(each.deletes)
            for each in old
            if without is None or not each.path.rpartition("/")[2].startswith(without)
        }
        for content in (0, 1):
            some = [file for file in files if bool(file.content) == bool(content)]
            if some:
                kept[self.put(f"metadata/own-{number}-{content}.avro", manifest(*some))] = content
        snapshot = {
            "snapshot-id": 10**9 + number,
            "parent-snapshot-id": current["snapshot-id"],
            "manifest-list": self.put(f"metadata/list-{number}.avro", manifest_list(kept)),
            "summary": {"operation": operation},
            **changes,
        }
        updates = [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]},
        ]
        body = json.dumps({"requirements": [], "updates": updates}).encode()
        return self.catalog.answer(Request("POST", "/v1/namespaces/default/tables/t", "", LOCAL, body))

    def files(self) -> list[str]:
        """Return the locations of the live data files, oldest first."""
        table = self.table
        files = sorted(table.files().to_pylist(), key=lambda file: file["modificationTime"])
        return [f"{table.url}/{file['path']}" for file in files]

    def assert_rows(self, *ids: int) -> None:
        found = self.table.to_arrow()
        assert sorted(found["id"].to_pylist()) == sorted(ids)
        assert canonical(LocalClient(self.catalog).load_table("default.t").scan().to_arrow()) == canonical(found)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_deleted_by_position(tmp_path: Path, kind: str) -> None:
    writer = Writer(tmp_path, **KINDS[kind])
    writer.table.append(rows(1, 2, 3, 4).replace_schema_metadata(None))
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
    writer.table.append(rows(1, 2, 3, 4).replace_schema_metadata(None))
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
    writer.table.append(rows(1, 2, 3).replace_schema_metadata(None))
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
    writer.table.append(rows(1, 2).replace_schema_metadata(None))
    (location,) = writer.files()
    assert writer.commit("delete", writer.position_deletes(**{location: [0, 1]})).status == 200
    writer.assert_rows()
    assert writer.files() == []


def test_deletes_of_other_files_have_no_effect(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1).replace_schema_metadata(None))
    assert writer.commit("delete", writer.position_deletes(**{"file:///elsewhere/x.parquet": [0]})).status == 200
    writer.assert_rows(1)


def test_snapshots_that_contradict_the_table_are_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path, **KINDS["files are rewritten"])
    writer.table.append(rows(1, 2).replace_schema_metadata(None))
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
    writer.table.append(rows(1, 2).replace_schema_metadata(None))
    writer.table.append(rows(3).replace_schema_metadata(None))
    assert writer.commit("replace", writer.data_file(3, 1, 2), without="m").status == 200
    writer.assert_rows(1, 2, 3)
    assert len(writer.files()) == 1
    log = sorted((writer.root / "_delta_log").glob("*.json"))[-1].read_text()
    assert '"dataChange":true' not in log and '"dataChange":false' in log
