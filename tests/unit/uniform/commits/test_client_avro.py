"""Avro files of clients: decoded by field id; corrupt or hostile bytes are refused in bounded time and memory."""

from __future__ import annotations

import json
import random
import zlib
from contextlib import suppress

import pytest

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.uniform.commits import client_avro
from tahoe.uniform.commits.client_avro import Budget, records
from tahoe.uniform.formats.avro import encode_bytes, encode_long, encode_string, write_container

SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "any_name", "field-id": 7, "type": "string"},
        {"name": "number", "field-id": 8, "type": ["null", "long"]},
        {"name": "list", "field-id": 9, "type": {"type": "array", "items": "int"}},
        {"name": "without_id", "type": {"type": "fixed", "name": "f", "size": 2}},
        {
            "name": "inner",
            "field-id": 10,
            "type": {"type": "record", "name": "s", "fields": [{"name": "x", "field-id": 1, "type": "boolean"}]},
        },
    ],
}
ENTRY = encode_string("text") + b"\2" + encode_long(-5) + encode_long(2) + encode_long(1) + encode_long(2) + b"\0" + b"ab" + b"\1"
DECODED = {7: "text", 8: -5, 9: [1, 2], 10: {1: True}}


def file(schema: object = SCHEMA, entries: list[bytes] | None = None) -> bytes:
    return write_container(json.dumps(schema), {"k": "v"}, [ENTRY] * 3 if entries is None else entries, sync=b"s" * 16)


def raw(schema: object, body: bytes, count: int, codec: str = "null") -> bytes:
    header = encode_long(2) + encode_string("avro.schema") + encode_string(json.dumps(schema))
    header += encode_string("avro.codec") + encode_string(codec) + b"\0" + b"s" * 16
    return b"Obj\x01" + header + encode_long(count) + encode_bytes(body) + b"s" * 16


def test_records_are_decoded_by_field_id() -> None:
    assert list(records(file(), "f")) == [DECODED] * 3
    assert list(records(raw(SCHEMA, ENTRY, 1), "f")) == [DECODED]


def test_another_compression_is_named() -> None:
    with pytest.raises(Unsupported, match="'zstandard'"):
        list(records(raw(SCHEMA, ENTRY, 1, "zstandard"), "f"))


@pytest.mark.parametrize(
    ("schema", "body", "count"),
    [
        pytest.param("string", encode_long(-3), 1, id="a negative length"),
        pytest.param("string", encode_long(2**40), 1, id="a length beyond the file"),
        pytest.param("long", b"\xff" * 50, 1, id="an endless number"),
        pytest.param({"type": "array", "items": "null"}, encode_long(2**60) + b"\0", 1, id="items without bytes"),
        pytest.param(["null", "long"], encode_long(7), 1, id="a branch that does not exist"),
        pytest.param("null", b"", 2**60, id="entries without bytes"),
        pytest.param("r", b"\0", 1, id="a schema that names itself"),
        pytest.param({"type": "enum", "symbols": []}, b"\0", 1, id="an unknown type"),
    ],
)
def test_hostile_bytes_are_refused(schema: object, body: bytes, count: int) -> None:
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "field-id": 1, "type": schema}]}
    with pytest.raises(InvalidRequest, match="The manifest f cannot be read"):
        list(records(raw(record, body, count), "f"))


def test_a_deeply_nested_schema_is_refused() -> None:
    schema: object = "long"
    for _ in range(50):
        schema = {"type": "array", "items": schema}
    record = {"type": "record", "name": "r", "fields": [{"name": "a", "field-id": 1, "type": schema}]}
    with pytest.raises(InvalidRequest, match="nested too deeply"):
        list(records(raw(record, b"\0", 1), "f"))


def test_decompression_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_avro, "_MOST_BLOCK_BYTES", 1_000_000)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = compressor.compress(b"\0" * 2_000_000) + compressor.flush()
    with pytest.raises(InvalidRequest, match="more than 1,000,000 bytes in a block"):
        list(records(raw(SCHEMA, bomb, 1, "deflate"), "f"))


def test_a_changed_byte_never_causes_another_error() -> None:
    data, drawn = file(), random.Random(5)
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(drawn.randint(1, 3)):
            changed[drawn.randrange(len(changed))] = drawn.randrange(256)
        with suppress(InvalidRequest, Unsupported):
            list(records(bytes(changed[: drawn.randint(len(changed) // 2, len(changed))]), "f"))


def test_files_share_a_budget() -> None:
    budget = Budget(2 * 3 * len(ENTRY))
    assert len([*records(file(), "f", budget), *records(file(), "f", budget)]) == 6
    with pytest.raises(InvalidRequest, match="in all"):
        list(records(file(), "f", budget))


def test_items_without_bytes_are_counted() -> None:
    nulls = {"type": "array", "items": "null"}
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "field-id": 1, "type": {"type": "array", "items": nulls}}]}
    rows = encode_long(40) + (encode_long(100) + b"\0") * 40 + b"\0"
    with pytest.raises(InvalidRequest, match="more items than bytes"):
        list(records(raw(schema, rows, 1), "f"))


@pytest.mark.parametrize("end", [b"more", b"\0"])
def test_bytes_after_the_last_entry_are_refused(end: bytes) -> None:
    with pytest.raises(InvalidRequest, match="bytes after its last entry"):
        list(records(raw(SCHEMA, ENTRY + end, 1), "f"))


def test_a_compressed_block_that_is_cut_off_is_refused() -> None:
    packed = zlib.compress(ENTRY)[2:-4]
    assert list(records(raw(SCHEMA, packed, 1, "deflate"), "f")) == [DECODED]
    with pytest.raises(InvalidRequest, match="a compressed block is cut off"):
        list(records(raw(SCHEMA, packed[:-1], 1, "deflate"), "f"))
