"""Manifests as a client writes them, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from tahoe.uniform.formats.avro import encode_long, encode_string, write_container

_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "field-id": 134, "type": "int"},
        {"name": "file_path", "field-id": 100, "type": "string"},
        {"name": "file_format", "field-id": 101, "type": "string"},
        {"name": "record_count", "field-id": 103, "type": "long"},
        {"name": "file_size_in_bytes", "field-id": 104, "type": "long"},
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


def manifest(*files: tuple[int, str], content: int = 0) -> bytes:
    """Return a manifest. Args: files: pairs of status and path."""
    entries = [
        encode_long(status)
        + encode_long(content)
        + encode_string(path)
        + encode_string("parquet")
        + encode_long(3)
        + encode_long(9)
        for status, path in files
    ]
    return write_container(json.dumps(_ENTRY), {}, entries, sync=b"s" * 16)


def manifest_list(paths: Sequence[str] | Mapping[str, int]) -> bytes:
    """Return a manifest list. Args: paths: of data manifests, or with the content of each."""
    contents = paths if isinstance(paths, Mapping) else dict.fromkeys(paths, 0)
    entries = [encode_string(path) + encode_long(5) + encode_long(content) for path, content in contents.items()]
    return write_container(json.dumps(_LIST), {}, entries, sync=b"s" * 16)
