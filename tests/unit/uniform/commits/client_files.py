"""Manifests as a client writes them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tahoe.uniform.formats.avro import encode_long, encode_string, write_container


def _optional(name: str, number: int, kind: str) -> dict[str, object]:
    return {"name": name, "field-id": number, "type": ["null", kind]}


_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "field-id": 134, "type": "int"},
        {"name": "file_path", "field-id": 100, "type": "string"},
        {"name": "file_format", "field-id": 101, "type": "string"},
        {"name": "partition", "field-id": 102, "type": {"type": "record", "name": "r102", "fields": []}},
        {"name": "record_count", "field-id": 103, "type": "long"},
        {"name": "file_size_in_bytes", "field-id": 104, "type": "long"},
        _optional("referenced_data_file", 143, "string"),
        _optional("content_offset", 144, "long"),
        _optional("content_size_in_bytes", 145, "long"),
        {"name": "equality_ids", "field-id": 135, "type": ["null", {"type": "array", "items": "int", "element-id": 136}]},
    ],
}
_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [{"name": "status", "field-id": 0, "type": "int"}, {"name": "data_file", "field-id": 2, "type": _FILE}],
}
_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "field-id": 500, "type": "string"},
        {"name": "manifest_length", "field-id": 501, "type": "long"},
        {"name": "content", "field-id": 517, "type": "int"},
    ],
}


@dataclass(frozen=True)
class Written:
    """An entry of a manifest."""

    path: str
    rows: int = 3
    size: int = 9
    status: int = 1
    content: int = 0
    file_format: str = "parquet"
    referenced_file: str | None = None
    offset: int | None = None
    length: int | None = None
    equality_ids: tuple[int, ...] = ()

    @property
    def encoded(self) -> bytes:
        """The entry in Avro."""
        head = encode_long(self.status) + encode_long(self.content) + encode_string(self.path) + encode_string(self.file_format)
        reference = b"\0" if self.referenced_file is None else b"\2" + encode_string(self.referenced_file)
        numbers = (b"\0" if number is None else b"\2" + encode_long(number) for number in (self.offset, self.length))
        items = b"".join(map(encode_long, self.equality_ids))
        ids = b"\2" + encode_long(len(self.equality_ids)) + items + b"\0" if self.equality_ids else b"\0"
        return b"".join((head, encode_long(self.rows), encode_long(self.size), reference, *numbers, ids))


def manifest(*files: Written) -> bytes:
    """Return a manifest."""
    return write_container(json.dumps(_ENTRY), {}, [file.encoded for file in files], sync=b"s" * 16)


def manifest_list(paths: Sequence[str] | Mapping[str, int], sizes: Mapping[str, int] | None = None) -> bytes:
    """Return a manifest list.

    Args:
        paths: of data manifests, or with the content of each.
        sizes: of the manifests, as far as they are read.
    """
    contents = paths if isinstance(paths, Mapping) else dict.fromkeys(paths, 0)
    entries = [
        encode_string(path) + encode_long((sizes or {}).get(path, 5)) + encode_long(content) for path, content in contents.items()
    ]
    return write_container(json.dumps(_LIST), {}, entries, sync=b"s" * 16)
