"""Snapshots and requests made by hand, as no client makes them."""

from __future__ import annotations

import io
import itertools
import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

import tahoe
from tahoe.coordinator.coordinator import Coordinator
from tahoe.protocol.dv import bitmap_to_bytes
from tahoe.protocol.row_tracking import ROW_COMMIT_VERSION_FIELD_ID, ROW_ID_FIELD_ID
from tahoe.uniform.commits.client_manifests import manifests_in
from tahoe.uniform.serve.rest_protocol import Request, Response
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical
from tests.unit.uniform.commits.client_files import Written, manifest, manifest_list
from tests.unit.uniform.serve.serving import LOCAL

SCHEMA = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
LINEAGE = {"_row_id": ROW_ID_FIELD_ID, "_last_updated_sequence_number": ROW_COMMIT_VERSION_FIELD_ID}
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
    """Writes snapshots of one table by hand, and commits them. The table may exist; else it is created through Delta."""

    def __init__(self, root: Path, coordinator: Coordinator | None = None, **properties: str) -> None:
        self.catalog = writable_catalog(root, coordinator=coordinator)
        self.root, self._coordinator = root / "t", coordinator
        if not self.root.exists():
            schema = pa.schema([("id", pa.int64())])
            tahoe.Table.create(self.root, schema, properties={**UNIFORM, **properties}, coordinator=coordinator)
        self._numbers = itertools.count(1)

    @property
    def table(self) -> tahoe.Table:
        return tahoe.Table(self.root, coordinator=self._coordinator)

    @property
    def document(self) -> Any:
        return self.catalog._warehouse.load(("default",), "t").document

    def put(self, name: str, data: bytes) -> str:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"file://{path}"

    def data_file(self, *ids: int, row_ids: Sequence[int | None] | None = None) -> Written:
        """Return a data file. Args: row_ids: the ids that its rows had in other files; None for a file without them."""
        table, target = rows(*ids), io.BytesIO()
        if row_ids is not None:
            for (name, number), values in zip(LINEAGE.items(), (row_ids, [None] * len(ids)), strict=True):
                field = pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
                table = table.append_column(field, pa.array(values, pa.int64()))
        pq.write_table(table, target)
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

    def equality_deletes(self, values: pa.Table, *ids: int, **changes: Any) -> Written:
        """Return a file of equality deletes.

        Args:
            values: its columns, which get the ids from 1 on.
            ids: of the columns that are compared.
            changes: of the entry in the manifest.
        """
        fields = [column.with_metadata({"PARQUET:field_id": str(number)}) for number, column in enumerate(values.schema, 1)]
        target = io.BytesIO()
        pq.write_table(values.cast(pa.schema(fields)), target)
        path = self.put(f"data/equality-{next(self._numbers)}.parquet", target.getvalue())
        return replace(Written(path, len(values), len(target.getvalue()), content=2, equality_ids=ids), **changes)

    def vector(self, location: str, positions: list[int]) -> Written:
        blob = bitmap_to_bytes(BitMap64(positions))
        data = b"PFA1" + struct.pack(">i", len(blob)) + blob + struct.pack(">I", zlib.crc32(blob))
        path = self.put(f"data/vector-{next(self._numbers)}.puffin", data)
        return Written(path, len(positions), len(data), 1, 1, "puffin", location, 4, len(data) - 4)

    def commit(self, operation: str, *files: Written, without: str | None = None, **changes: Any) -> Response:
        """Commit a snapshot with these files in addition to the current ones; arguments as of `request`."""
        return self.send(self.request(operation, *files, without=without, **changes))

    def request(self, operation: str, *files: Written, without: str | None = None, **changes: Any) -> dict[str, Any]:
        """Return the request to commit a snapshot, whose manifests are written.

        Args:
            without: leave out the manifests with this in their names: ``m`` of data files, ``d`` of deletes.
            changes: of the snapshot.
        """
        number, document = next(self._numbers), self.document
        current = next(each for each in document["snapshots"] if each["snapshot-id"] == document["current-snapshot-id"])
        old = manifests_in(Path(current["manifest-list"].removeprefix("file://")).read_bytes(), "list")
        stay = [each for each in old.values() if without is None or not each.path.rpartition("/")[2].startswith(without)]
        manifests, sizes = {each.path: int(each.deletes) for each in stay}, dict[str, int]()
        for content in (0, 1):
            some = [file for file in files if bool(file.content) == bool(content)]
            if some:
                data = manifest(*some)
                path = self.put(f"metadata/own-{number}-{content}.avro", data)
                manifests[path], sizes[path] = content, len(data)
        snapshot = {
            "snapshot-id": 10**9 + number,
            "parent-snapshot-id": current["snapshot-id"],
            "sequence-number": document["last-sequence-number"] + 1,
            "timestamp-ms": document["last-updated-ms"],
            "manifest-list": self.put(f"metadata/list-{number}.avro", manifest_list(manifests, sizes)),
            "summary": {"operation": operation},
            **changes,
        }
        main = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": current["snapshot-id"]}
        return {
            "requirements": [{"type": "assert-table-uuid", "uuid": document["table-uuid"]}, main],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]},
            ],
        }

    def send(self, body: object) -> Response:
        """Send a request to commit to the table."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.catalog.answer(Request("POST", "/v1/namespaces/default/tables/t", "", LOCAL, data))

    def files(self) -> list[str]:
        """Return the locations of the live data files, oldest first."""
        table = self.table
        files = sorted(table.files().to_pylist(), key=lambda file: file["modificationTime"])
        return [f"{table.url}/{file['path']}" for file in files]

    def assert_ids(self, *ids: int) -> None:
        assert sorted(self.table.to_arrow()["id"].to_pylist()) == sorted(ids)

    def assert_rows(self, *ids: int) -> None:
        self.assert_ids(*ids)
        actual = self.table.to_arrow()
        assert canonical(LocalClient(self.catalog).load_table("default.t").scan().to_arrow()) == canonical(actual)
