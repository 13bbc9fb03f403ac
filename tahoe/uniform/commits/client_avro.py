"""Avro container files that clients wrote, decoded by field id within bounds (Avro 1.12, "Object Container Files").

The bytes are untrusted: every length is checked against the bytes that are there, and blocks are decompressed up to a limit. Tahoe's own
manifests, which are many times larger, are read by `tahoe.uniform.formats.avro`.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import InvalidRequest, Unsupported

MOST_BYTES = 256 * 1024 * 1024
"""The maximum size of one file, and of all files of one budget, after decompression."""
_MOST_BLOCK_BYTES = 16 * 1024 * 1024
"""The maximum size of one block after decompression, whose values are in memory together. Writers end blocks after some kilobytes."""
_MOST_ITEMS = 100_000
"""The maximum length of one array or map: those of manifests have an item per column, row group or partition field."""
_MOST_DEPTH = 16
_MAGIC = b"Obj\x01"
_SYNC = 16

Record = Mapping[int, Any]
"""The values of a record by their field ids."""

_Read = Callable[["_Input"], Any]


class _Malformed(ValueError):
    """The bytes are not what their schema announces."""


@dataclass(slots=True)
class Budget:
    """The bytes that several files may have together after decompression."""

    left: int = MOST_BYTES


@dataclass(slots=True)
class _Input:
    """Bytes and a position in them.

    Args:
        items: the number of items of arrays read so far. Items may have no bytes, as NULL, and yet take time.
    """

    data: bytes
    position: int = 0
    items: int = 0

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise _Malformed("a length exceeds the file")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def long(self) -> int:
        if self.position < len(self.data) and (byte := self.data[self.position]) < 0x80:  # as are most numbers
            self.position += 1
            return (byte >> 1) ^ -(byte & 1)
        unsigned = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            unsigned |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (unsigned >> 1) ^ -(unsigned & 1)
        raise _Malformed("a number has more than ten bytes")

    def array(self, read: _Read) -> list[Any]:
        values: list[Any] = []
        while count := self.long():
            if count < 0:  # a negative count is followed by the block's size in bytes
                count = -count
                self.long()
            self.items += count
            if self.items > len(self.data) or len(values) + count > _MOST_ITEMS:
                raise _Malformed(f"an array has more items than bytes, or more than {_MOST_ITEMS:,}")
            values += [read(self) for _ in range(count)]
        return values


def records(data: bytes, name: str, budget: Budget | None = None) -> Iterator[Record]:
    """Yield the records of a container file.

    Args:
        name: the file's location, for messages.
        budget: of this file and others; None for one of its own.

    Raises:
        InvalidRequest: the bytes are no Avro file, or more than the budget.
        Unsupported: the compression is neither ``deflate`` nor ``null``.
    """
    try:
        source = _Input(data)
        if source.take(len(_MAGIC)) != _MAGIC:
            raise _Malformed("it does not begin like an Avro file")
        header = dict(source.array(lambda pair: (_text(pair), pair.take(pair.long()))))
        codec = header.get("avro.codec", b"null").decode()
        if codec not in ("null", "deflate"):
            raise Unsupported(
                f"The manifest {name} is compressed with '{codec}': set write.avro.compression-codec to gzip.",
                code="TAHOE_ICEBERG_MANIFEST_CODEC",
                file=name,
            )
        read = _record(json.loads(header["avro.schema"]), 0)
        yield from _blocks(source, read, budget or Budget(), is_deflated=codec == "deflate")
    except (ValueError, KeyError, TypeError, AttributeError, struct.error, zlib.error, RecursionError) as error:
        raise InvalidRequest(
            f"The manifest {name} cannot be read as Avro: {error!s:.200}. Write it again.",
            code="TAHOE_ICEBERG_MANIFEST",
            file=name,
        ) from error


def _blocks(source: _Input, read: _Read, budget: Budget, *, is_deflated: bool) -> Iterator[Record]:
    sync = source.take(_SYNC)
    while source.position < len(source.data):
        count, stored = source.long(), source.take(source.long())
        if source.take(_SYNC) != sync:
            raise _Malformed("a block is cut off")
        block = _Input(_inflated(stored) if is_deflated else stored)
        budget.left -= len(block.data)
        if budget.left < 0 or len(block.data) > _MOST_BLOCK_BYTES:
            raise _Malformed(f"it has more than {_MOST_BLOCK_BYTES:,} bytes in a block, or more than {MOST_BYTES:,} in all")
        if not 0 <= count <= len(block.data):
            raise _Malformed("a block has more entries than bytes")
        for _ in range(count):
            yield read(block)
        if block.position < len(block.data):
            raise _Malformed("a block has bytes after its last entry")


def _inflated(stored: bytes) -> bytes:
    decompressor = zlib.decompressobj(-15)
    block = decompressor.decompress(stored, _MOST_BLOCK_BYTES + 1)
    # PyIceberg leaves a part of zlib's checksum after the data.
    if len(block) <= _MOST_BLOCK_BYTES and not decompressor.eof:
        raise _Malformed("a compressed block is cut off")
    return block


def _text(source: _Input) -> str:
    return source.take(source.long()).decode()


def _real(form: str) -> _Read:
    packed = struct.Struct(form)
    return lambda source: packed.unpack(source.take(packed.size))[0]


_PRIMITIVES: Mapping[str, _Read] = {
    "null": lambda source: None,
    "boolean": lambda source: source.take(1) == b"\1",
    "int": _Input.long,
    "long": _Input.long,
    "float": _real("<f"),
    "double": _real("<d"),
    "bytes": lambda source: source.take(source.long()),
    "string": _text,
}


def _reader(schema: Any, depth: int) -> _Read:
    """Return the decoder of a schema's values."""
    if depth > _MOST_DEPTH:
        raise _Malformed("its schema is nested too deeply")
    if isinstance(schema, list):
        return _union([_reader(each, depth + 1) for each in schema])
    if isinstance(schema, str):
        return _PRIMITIVES[schema]
    match schema["type"]:
        case "record":
            return _record(schema, depth)
        case "array":
            item = _reader(schema["items"], depth + 1)
            return lambda source: source.array(item)
        case "map":
            value = _reader(schema["values"], depth + 1)
            return lambda source: source.array(lambda pair: (_text(pair), value(pair)))
        case "fixed":
            size = int(schema["size"])
            return lambda source: source.take(size)
    return _reader(schema["type"], depth + 1)


def _union(branches: list[_Read]) -> _Read:
    by_number = dict(enumerate(branches))

    def read(source: _Input) -> Any:
        branch = by_number.get(source.long())
        if branch is None:
            raise _Malformed("a union has no such branch")
        return branch(source)

    return read


def _record(schema: Any, depth: int) -> _Read:
    fields = [(field.get("field-id"), _reader(field["type"], depth + 1)) for field in schema["fields"]]

    def read(source: _Input) -> Record:
        record = {}
        for number, each in fields:
            value = each(source)
            if number is not None:
                record[number] = value
        return record

    return read
