"""Bytes that are no manifests or manifest lists, by a name of their fault: damaged Avro, odd schemas, and little that expands to much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tahoe.uniform.formats.avro import encode_long
from tests.attack.iceberg_requests import LIST_SCHEMA, container

__all__ = ["BROKEN_FILES"]

_MEBIBYTE = 1024 * 1024


def _record(*fields: tuple[int, object]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": f"f{n}", "field-id": n, "type": kind} for n, kind in fields]}


def _nested(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def _many_empty() -> bytes:
    """Arrays of arrays of NULL: each inner array announces as many items as bytes are left, and items have no bytes."""
    inner = encode_long(1_000_000) + b"\0"
    block = encode_long(100_000) + inner * 100_000 + b"\0" * 1_000_000
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    return container(_record((500, nulls)), block, 1)


def _bomb(size: int, schema: object, count: int = 1) -> Callable[[], bytes]:
    return lambda: container(schema, b"\0" * size, count)


BROKEN_FILES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "another magic": lambda: b"Obj\2" + b"\0" * 50,
    "text": lambda: b"not avro at all" * 10,
    "random zlib": lambda: container(LIST_SCHEMA, b"", 1),
    "unknown codec": lambda: container(LIST_SCHEMA, b"", 0, "snappy"),
    "codec of bytes": lambda: container(LIST_SCHEMA, b"", 0, "\x00"),
    "no schema": lambda: b"Obj\1\0" + b"s" * 16,
    "schema is no JSON": lambda: container("{", b"", 1),
    "schema is a number": lambda: container("5", b"", 1),
    "schema is a text": lambda: container('"int"', b"\2", 1),
    "schema without fields": lambda: container('{"type": "record", "name": "r"}', b"\0", 1),
    "schema of null": lambda: container("null", b"\0", 1),
    "schema nested 30 times": lambda: container(_nested(30), b"\0", 1),
    "schema nested 100,000 times": lambda: container(_nested(100_000), b"\0", 1),
    "schema of unknown type": lambda: container(_record((500, "varchar")), b"\0", 1),
    "schema with a negative size": lambda: container(_record((500, {"type": "fixed", "size": -5, "name": "f"})), b"\0", 1),
    "schema with another type": lambda: container(_record((500, "long"), (0, "string"), (2, "int")), b"\0" * 9, 1),
    "huge header": lambda: b"Obj\1" + encode_long(2**60),
    "negative header": lambda: b"Obj\1" + encode_long(-(2**63)) + encode_long(5),
    "negative length": lambda: b"Obj\1" + encode_long(1) + encode_long(-5) + b"xxxxx",
    "number of eleven bytes": lambda: b"Obj\1" + b"\xff" * 11,
    "more entries than bytes": lambda: container(LIST_SCHEMA, b"\0" * 10, 2**40),
    "a negative number of entries": lambda: container(LIST_SCHEMA, b"\0" * 10, -1),
    "an entry of NULL": lambda: container(_record((500, "null"), (0, "null"), (2, "null")), b"\0", 1),
    "an endless array": lambda: container(_record((500, {"type": "array", "items": "null"})), encode_long(2**60) + b"\0", 1),
    "an endless text": lambda: container(_record((500, "string"), (0, "string")), encode_long(2**60), 1),
    "an invalid text": lambda: container(_record((500, "string"), (0, "string")), encode_long(2) + b"\xff\xff", 1),
    "an unknown branch": lambda: container(_record((500, ["null", "string"]), (0, ["null", "int"])), encode_long(7), 1),
    "entries after the last": lambda: container(_record((0, "int")), b"\4" * 9, 1),
    "many items without bytes": _many_empty,
    "a decompression bomb": _bomb(300 * _MEBIBYTE, LIST_SCHEMA, 1),
    "a decompression bomb below the limit": _bomb(
        200 * _MEBIBYTE, _record((500, {"type": "array", "items": "null"})), 200 * _MEBIBYTE
    ),
    "a bomb of NULL": lambda: container(
        _record((500, {"type": "array", "items": "null"})), encode_long(100 * _MEBIBYTE) + b"\0" * 100 * _MEBIBYTE, 1
    ),
    "a bomb of empty records": lambda: container(
        _record((500, {"type": "array", "items": _record()})), encode_long(100 * _MEBIBYTE) + b"\0" * 100 * _MEBIBYTE, 1
    ),
}
