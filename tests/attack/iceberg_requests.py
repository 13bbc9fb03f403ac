"""A request of an Iceberg client with all files that it names, to be mutated: valid as it is built, hostile after a mutation."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.uniform.commits.client_avro import records
from tahoe.uniform.formats.avro import encode_bytes, encode_long, encode_string
from tahoe.uniform.serve.rest_protocol import Request, Response
from tahoe.uniform.serve.writable_catalog import WritableCatalog
from tests.iceberg_clients import LocalClient, writable_catalog

__all__ = ["SCHEMA", "Attempt", "Victim", "appended", "container", "created", "deleted", "in_partition", "overwritten", "parquet"]

SNAPSHOT_ID = 8_000_000_000_000_000_001
TABLES = "/v1/namespaces/sales/tables"
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
_SYNC = b"synchronization!"
_HEADERS = {"host": "127.0.0.1:8181", "content-type": "application/json"}


def _field(name: str, number: int, kind: object) -> dict[str, Any]:
    return {"name": name, "field-id": number, "type": kind}


def _metrics(name: str, number: int, key: int, value: int, kind: str) -> dict[str, Any]:
    pair = {"type": "record", "name": f"k{key}_v{value}", "fields": [_field("key", key, "int"), _field("value", value, kind)]}
    return _field(name, number, ["null", {"type": "array", "items": pair, "logicalType": "map"}])


def data_file_schema(partition: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "r2",
        "fields": [
            _field("content", 134, "int"),
            _field("file_path", 100, "string"),
            _field("file_format", 101, "string"),
            _field("partition", 102, {"type": "record", "name": "r102", "fields": list(partition)}),
            _field("record_count", 103, "long"),
            _field("file_size_in_bytes", 104, "long"),
            _metrics("value_counts", 109, 119, 120, "long"),
            _metrics("null_value_counts", 110, 121, 122, "long"),
            _metrics("lower_bounds", 125, 126, 127, "bytes"),
            _metrics("upper_bounds", 128, 129, 130, "bytes"),
            _field("key_metadata", 131, ["null", "bytes"]),
            _field("equality_ids", 135, ["null", {"type": "array", "items": "int"}]),
            _field("referenced_data_file", 143, ["null", "string"]),
        ],
    }


def entry_schema(file: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field("status", 0, "int"),
            _field("snapshot_id", 1, ["null", "long"]),
            _field("sequence_number", 3, ["null", "long"]),
            _field("file_sequence_number", 4, ["null", "long"]),
            _field("data_file", 2, file),
        ],
    }


LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field("manifest_path", 500, "string"),
        _field("manifest_length", 501, "long"),
        _field("partition_spec_id", 502, "int"),
        _field("content", 517, "int"),
        _field("sequence_number", 515, "long"),
        _field("min_sequence_number", 516, "long"),
        _field("added_snapshot_id", 503, "long"),
        _field("added_files_count", 504, "int"),
        _field("existing_files_count", 505, "int"),
        _field("deleted_files_count", 506, "int"),
        _field("added_rows_count", 512, "long"),
        _field("existing_rows_count", 513, "long"),
        _field("deleted_rows_count", 514, "long"),
        _field("key_metadata", 519, ["null", "bytes"]),
    ],
}


def encoded(schema: Any, value: Any) -> bytes:
    """A value in Avro."""
    if isinstance(schema, list):
        return b"\0" if value is None else b"\2" + encoded(schema[1], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    match kind:
        case "int" | "long":
            return encode_long(value)
        case "string":
            return encode_bytes(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else encode_bytes(value)
        case "bytes":
            return encode_bytes(value)
        case "array":
            items = b"".join(encoded(schema["items"], each) for each in value)
            return (encode_long(len(value)) + items if value else b"") + b"\0"
        case "record":
            return b"".join(encoded(each["type"], value.get(each["name"])) for each in schema["fields"])
    raise AssertionError(kind)


def container(
    schema: object, block: bytes, count: int, codec: str = "deflate", metadata: Mapping[str, bytes] | None = None
) -> bytes:
    """An Avro file with one block; a text as schema is written as it is."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    header = {"avro.schema": text.encode(), "avro.codec": codec.encode(), **(metadata or {})}
    pairs = b"".join(encode_string(key) + encode_bytes(value) for key, value in header.items())
    stored = zlib.compress(block, 9)[2:-4] if codec == "deflate" else block
    return b"Obj\1" + encode_long(len(header)) + pairs + b"\0" + _SYNC + encode_long(count) + encode_bytes(stored) + _SYNC


def parquet(rows: pa.Table, ids: Sequence[int] = (1, 2), **options: Any) -> bytes:
    """A Parquet file whose columns have these field ids."""
    columns = [each.with_metadata({"PARQUET:field_id": str(number)}) for each, number in zip(rows.schema, ids, strict=True)]
    buffer = io.BytesIO()
    pq.write_table(rows.cast(pa.schema(columns)), buffer, **options)
    return buffer.getvalue()


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


@dataclass
class Victim:
    """A warehouse with tables that hostile requests must leave as they are.

    Args:
        outside: a folder beside the warehouse.
    """

    root: Path
    outside: Path
    catalog: WritableCatalog

    @classmethod
    def create(cls, folder: Path) -> Victim:
        root, outside = folder / "warehouse", folder / "outside"
        (root / "sales").mkdir(parents=True)
        outside.mkdir()
        catalog = writable_catalog(root, write_token="writes")
        client = LocalClient(catalog, token="writes")
        client.create_table("sales.plain", SCHEMA).append(rows(1, 2, 3))
        client.create_table("sales.other", SCHEMA).append(rows(7, 8))
        strict = client.create_table("sales.strict", SCHEMA)
        tahoe.Table(root / "sales" / "strict").add_constraint("positive", "id > 0")
        strict.refresh().append(rows(1))
        parts = Attempt(cls(root, outside, catalog), "parts")
        parts.body = {
            "name": "parts",
            **NEW,
            "partition-spec": {"fields": [{"name": "name", "source-id": 2, "transform": "identity"}]},
        }
        assert parts.create().status == 200
        (outside / "rows.parquet").write_bytes(parquet(rows(5)))
        assert UNIFORM_RUNTIME.queue.drain(120)
        return cls(root, outside, catalog)

    def contents(self) -> dict[str, tuple[bytes, int]]:
        """The bytes and the time of change of each file of the warehouse and beside it."""
        folder = self.root.parent
        return {
            str(path.relative_to(folder)): (path.read_bytes(), path.lstat().st_mtime_ns)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
        } | {str(path.relative_to(folder)): (b"", 0) for path in folder.rglob("*") if path.is_dir() or path.is_symlink()}

    def metadata(self, table: str) -> dict[str, Any]:
        loaded = self.catalog.answer(Request("GET", f"{TABLES}/{table}", "", _HEADERS))
        assert loaded.status == 200 and loaded.content is not None
        document: dict[str, Any] = loaded.content["metadata"]
        return document

    def data_file(self, table: str) -> str:
        """The name of the only data file of a table."""
        (file,) = tahoe.Table(self.root / "sales" / table).files().to_pylist()
        return str(file["path"])


NEW = {
    "schema": {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": False, "type": "long"},
            {"id": 2, "name": "name", "required": False, "type": "string"},
        ],
    }
}


@dataclass
class Attempt:
    """A request and the files that the client has written for it.

    Args:
        files: by name below the table; written before the request is sent.
        entries: those of the manifest.
        listed: those of the manifest list; the manifest of `entries` is the first.
        body: of the request.
        finish: mutates the files once they are encoded.
    """

    victim: Victim
    table: str = "plain"
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, Path] = field(default_factory=dict)
    entries: list[dict[str, Any]] = field(default_factory=list)
    listed: list[dict[str, Any]] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=lambda: {**_HEADERS, "authorization": "Bearer writes"})
    path: str = ""
    file_schema: dict[str, Any] = field(default_factory=data_file_schema)
    finish: Callable[[Attempt], None] = lambda _: None

    @property
    def folder(self) -> Path:
        return self.victim.root / "sales" / self.table

    def url(self, name: str) -> str:
        return f"file://{self.folder}/{name}"

    def add(self, name: str, data: bytes, rows: int, **more: Any) -> dict[str, Any]:
        """Write a file of the client, and name it in the manifest."""
        self.files[name] = data
        entry = {
            "content": 0,
            "file_path": self.url(name),
            "file_format": "PARQUET",
            "partition": {},
            "record_count": rows,
            "file_size_in_bytes": len(data),
            **more,
        }
        self.entries.append({"status": 1, "snapshot_id": SNAPSHOT_ID, "data_file": entry})
        return entry

    @property
    def snapshot(self) -> dict[str, Any]:
        """The added snapshot in the body."""
        snapshot: dict[str, Any] = self.body["updates"][0]["snapshot"]
        return snapshot

    def commit(self, operation: str) -> Attempt:
        """Complete the request: a commit of the manifest as a snapshot."""
        document = self.victim.metadata(self.table)
        parent = document.get("current-snapshot-id")
        snapshot = {
            "snapshot-id": SNAPSHOT_ID,
            "parent-snapshot-id": parent,
            "sequence-number": document["last-sequence-number"] + 1,
            "timestamp-ms": document["last-updated-ms"] + 1,
            "manifest-list": self.url("metadata/snap-attack.avro"),
            "summary": {"operation": operation},
            "schema-id": document["current-schema-id"],
        }
        self.path = f"{TABLES}/{self.table}"
        self.listed = [manifest_entry(self.url("metadata/attack-m0.avro"))]
        if operation != "overwrite":
            self.listed += self._present(document)
        self.body = {
            "identifier": {"namespace": ["sales"], "name": self.table},
            "requirements": [
                {"type": "assert-table-uuid", "uuid": document["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": SNAPSHOT_ID},
            ],
        }
        return self

    def _present(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """The manifests of the table in its newest snapshot."""
        lists = {each["snapshot-id"]: each["manifest-list"] for each in document["snapshots"]}
        if document.get("current-snapshot-id") not in lists:
            return []
        name = lists[document["current-snapshot-id"]]
        data = Path(name.removeprefix("file://").removeprefix("file:")).read_bytes()
        return [{each["name"]: entry.get(each["field-id"]) for each in LIST_SCHEMA["fields"]} for entry in records(data, name)]

    def create(self) -> Response:
        self.path = TABLES
        return self.send()

    def send(self) -> Response:
        """Send the request, whose files are written."""
        data = json.dumps(self.body).encode() if self.raw is None else self.raw
        return self.victim.catalog.answer(Request("POST", self.path, "", self.headers, data))

    def write(self) -> list[Path]:
        """Write the files of the client; return the paths."""
        schema = entry_schema(self.file_schema)
        if self.listed:
            block = b"".join(encoded(schema, each) for each in self.entries)
            self.files.setdefault("metadata/attack-m0.avro", container(schema, block, len(self.entries)))
            first = self.listed[0]
            first.setdefault("manifest_length", len(self.files["metadata/attack-m0.avro"]))
            live = [each for each in self.entries if each["status"] == 1]
            first.setdefault("added_files_count", len(live))
            first.setdefault("added_rows_count", sum(each["data_file"]["record_count"] for each in live))
            for each in self.listed:
                each.setdefault("manifest_length", first["manifest_length"])
                each.setdefault("added_files_count", 0)
                each.setdefault("added_rows_count", 0)
            block = b"".join(encoded(LIST_SCHEMA, each) for each in self.listed)
            self.files.setdefault("metadata/snap-attack.avro", container(LIST_SCHEMA, block, len(self.listed)))
        self.finish(self)
        return [*map(self._written, self.files.items()), *map(self._linked, self.links.items())]

    def _written(self, file: tuple[str, bytes]) -> Path:
        path = self.folder / file[0]
        assert not path.exists()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file[1])
        return path

    def _linked(self, link: tuple[str, Path]) -> Path:
        path = self.folder / link[0]
        path.symlink_to(link[1])
        return path


def manifest_entry(path: str, content: int = 0) -> dict[str, Any]:
    return {
        "manifest_path": path,
        "partition_spec_id": 0,
        "content": content,
        "sequence_number": 0,
        "min_sequence_number": 0,
        "added_snapshot_id": SNAPSHOT_ID,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
    }


def appended(victim: Victim, table: str = "plain") -> Attempt:
    """A valid append of two files; the list names the manifests of the table, too."""
    attempt = Attempt(victim, table)
    attempt.add("attack-0.parquet", parquet(rows(10, 11)), 2)
    attempt.add("attack-1.parquet", parquet(rows(12, 13, 14)), 3)
    return attempt.commit("append")


def overwritten(victim: Victim) -> Attempt:
    """A valid overwrite of the table's only file."""
    attempt = Attempt(victim)
    attempt.add("attack-0.parquet", parquet(rows(20)), 1)
    return attempt.commit("overwrite")


def deleted(victim: Victim) -> Attempt:
    """A valid position delete of one row; the data manifest of the table stays."""
    attempt = Attempt(victim)
    location = attempt.url(victim.data_file("plain"))
    content = parquet(pa.table({"file_path": [location], "pos": pa.array([1], pa.int64())}), (2147483546, 2147483545))
    attempt.add("attack-deletes.parquet", content, 1, content=1)
    attempt.commit("delete")
    attempt.listed[0]["content"] = 1
    return attempt


def in_partition(victim: Victim) -> Attempt:
    """A valid append to a partitioned table."""
    document = victim.metadata("parts")
    (partition,) = document["partition-specs"][0]["fields"]
    schema = data_file_schema([_field("name", partition["field-id"], ["null", "string"])])
    attempt = Attempt(victim, "parts", file_schema=schema)
    attempt.add("attack-0.parquet", parquet(rows(4)), 1, partition={"name": "n4"})
    return attempt.commit("append")


def created(victim: Victim) -> Attempt:
    """A valid request for a new table."""
    return Attempt(victim, "fresh", body=json.loads(json.dumps({"name": "fresh", **NEW})), path=TABLES)


def long_bound(number: int) -> bytes:
    return struct.pack("<q", number)
