"""The part of Avro that Iceberg's manifests need: primitives and container files (Avro 1.12, "Object Container Files").

Written by hand because manifests are the hot path of a conversion: whole entries are joined from prepared byte strings, and blocks
contain hundreds of entries, which is several times as fast and a fifth of the size of one block per entry.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from tahoe.base.exceptions import CorruptTable

BLOCK_ENTRIES = 512
"""Entries per block of a container file. Smaller blocks compress worse; larger ones make removing an entry costlier."""

_MAGIC = b"Obj\x01"
_COMPRESSION_LEVEL = 2


def encode_long(number: int) -> bytes:
    """Encode an ``int`` or ``long``: zigzag, then seven bits per byte, lowest first."""
    unsigned = (number << 1) ^ (number >> 63)
    if unsigned < _PREPARED:
        return _VARINTS[unsigned]
    return _varint(unsigned)


def encode_bytes(data: bytes) -> bytes:
    """Encode ``bytes``: the length, then the content."""
    size = len(data)
    return (_LENGTHS[size] if size < _PREPARED_LENGTHS else encode_long(size)) + data


def encode_string(text: str) -> bytes:
    """Encode a ``string``: as UTF-8 bytes."""
    return encode_bytes(text.encode())


def decode_long(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    byte = data[position]
    position += 1
    unsigned = byte & 0x7F
    shift = 7
    while byte & 0x80:
        byte = data[position]
        position += 1
        unsigned |= (byte & 0x7F) << shift
        shift += 7
    return (unsigned >> 1) ^ -(unsigned & 1), position


def decode_value(schema: Any, data: bytes, position: int) -> tuple[Any, int]:
    """Return a datum of any schema that manifests use, and the position after it. Slow; for layouts that are not known in advance."""
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, list):  # a union: the branch, then its datum
        branch, position = decode_long(data, position)
        return decode_value(kind[branch], data, position)
    match kind:
        case "null":
            return None, position
        case "boolean":
            return data[position] == 1, position + 1
        case "int" | "long":
            return decode_long(data, position)
        case "bytes" | "string":
            length, position = decode_long(data, position)
            value = data[position : position + length]
            return (value.decode() if kind == "string" else value), position + length
        case "float" | "double" | "fixed":
            size = {"float": 4, "double": 8}.get(kind) or schema["size"]
            return data[position : position + size], position + size
        case "record":
            values = {}
            for field in schema["fields"]:
                values[field["name"]], position = decode_value(field["type"], data, position)
            return values, position
        case "array":
            return _decode_array(partial(decode_value, schema["items"]), data, position)
    return decode_value(kind, data, position)  # a nested type, such as a partition's dates


def write_container(schema: str, metadata: Mapping[str, str], entries: Iterable[bytes], *, sync: bytes) -> bytes:
    """Return a container file, compressed with ``deflate``.

    Args:
        schema: the Avro schema, JSON.
        metadata: the file's own metadata, in addition to ``avro.schema`` and ``avro.codec``.
        entries: encoded datums.
        sync: the 16 bytes between blocks; an argument, so that equal content gives equal files.
    """
    return container(container_header(schema, metadata, sync=sync), _in_blocks(entries), sync=sync)


def container_header(schema: str, metadata: Mapping[str, str], *, sync: bytes) -> bytes:
    """Return the header of a container file; arguments as in `write_container`."""
    header = {**metadata, "avro.schema": schema, "avro.codec": "deflate"}
    parts = [_MAGIC, encode_long(len(header))]
    parts += [encode_string(key) + encode_string(value) for key, value in header.items()]
    return b"".join([*parts, b"\0", sync])


def container(header: bytes, blocks: Iterable[tuple[int, bytes]], *, sync: bytes) -> bytes:
    """Return a container file of compressed blocks: pairs of the number of entries and the result of `pack_block`."""
    parts = [header]
    for count, packed in blocks:
        parts += (encode_long(count), encode_long(len(packed)), packed, sync)
    return b"".join(parts)


def pack_block(entries: list[bytes]) -> bytes:
    """Return encoded entries as one compressed block."""
    compressor = zlib.compressobj(_COMPRESSION_LEVEL, zlib.DEFLATED, -15)
    return compressor.compress(b"".join(entries)) + compressor.flush()


def inflate(packed: bytes) -> bytes:
    """Return the entries of a block from `pack_block`."""
    return zlib.decompress(packed, -15)


def read_container(data: bytes, name: str) -> tuple[dict[str, str], Iterator[tuple[int, bytes]]]:
    """Return the metadata of a container file, and its blocks as (number of entries, decompressed entries).

    Raises `CorruptTable` with the file's name if it is incomplete.
    """
    metadata, position = _header(data, name, ("null", "deflate"))
    return metadata, _read_blocks(data, position, metadata.get("avro.codec") == "deflate", name)


def packed_blocks(data: bytes, name: str) -> tuple[dict[str, str], list[tuple[int, bytes, bytes]]]:
    """Like `read_container`, with each block also as stored, compressed with ``deflate``."""
    metadata, position = _header(data, name, ("deflate",))
    return metadata, list(_blocks(data, position, name, deflated=True))


def _header(data: bytes, name: str, codecs: tuple[str, ...]) -> tuple[dict[str, str], int]:
    try:
        if data[:4] != _MAGIC:
            raise ValueError("it does not begin like an Avro file")
        pairs, position = _decode_array(_read_pair, data, 4)
        metadata: dict[str, str] = dict(pairs)
        if metadata.get("avro.codec", "null") not in codecs:
            raise ValueError(f"its compression is '{metadata.get('avro.codec', 'null')}'")
    except (ValueError, IndexError) as error:
        raise _corrupt(name, error) from error
    return metadata, position


def _decode_array(decode: Callable[[bytes, int], tuple[Any, int]], data: bytes, position: int) -> tuple[list[Any], int]:
    """Return the items of an array, or the pairs of a map, and the position after them."""
    values: list[Any] = []
    count, position = decode_long(data, position)
    while count:
        if count < 0:  # a negative count is followed by the block's size in bytes
            count = -count
            _, position = decode_long(data, position)
        for _ in range(count):
            value, position = decode(data, position)
            values.append(value)
        count, position = decode_long(data, position)
    return values, position


def _varint(unsigned: int) -> bytes:
    if 1 << 14 <= unsigned < 1 << 28:  # most file sizes
        low = (unsigned & 0x7F | 0x80, unsigned >> 7 & 0x7F | 0x80)
        if unsigned < 1 << 21:
            return bytes((*low, unsigned >> 14))
        return bytes((*low, unsigned >> 14 & 0x7F | 0x80, unsigned >> 21))
    out = bytearray()
    while unsigned >= 0x80:
        out.append((unsigned & 0x7F) | 0x80)
        unsigned >>= 7
    out.append(unsigned)
    return bytes(out)


_PREPARED = 1 << 13
_VARINTS = [_varint(unsigned) for unsigned in range(_PREPARED)]
_LENGTHS = _VARINTS[::2]
_PREPARED_LENGTHS = len(_LENGTHS)


def _in_blocks(entries: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    rest = iter(entries)
    while block := list(islice(rest, BLOCK_ENTRIES)):
        yield len(block), pack_block(block)


def _read_pair(data: bytes, position: int) -> tuple[tuple[str, str], int]:
    key, position = _read_text(data, position)
    value, position = _read_text(data, position)
    return (key, value), position


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    length, position = decode_long(data, position)
    if length < 0 or position + length > len(data):
        raise ValueError("it ends too early")
    return data[position : position + length].decode(), position + length


def _read_blocks(data: bytes, position: int, deflated: bool, name: str) -> Iterator[tuple[int, bytes]]:
    for count, body, _ in _blocks(data, position, name, deflated=deflated):
        yield count, body


def _blocks(data: bytes, position: int, name: str, *, deflated: bool) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield each block as (number of entries, entries, stored bytes)."""
    sync = data[position : position + 16]
    position += 16
    while position < len(data):
        try:
            count, position = decode_long(data, position)
            size, position = decode_long(data, position)
            stored = data[position : position + size]
            position += size + 16
            if len(stored) != size or data[position - 16 : position] != sync:
                raise ValueError("a block is cut off or damaged")
            body = inflate(stored) if deflated else stored
        except (ValueError, IndexError, zlib.error) as error:
            raise _corrupt(name, error) from error
        yield count, body, stored


def _corrupt(name: str, error: Exception) -> CorruptTable:
    return CorruptTable(
        f"The Iceberg metadata file {name} cannot be read: {error}. Rebuild the Iceberg side of the table.",
        code="TAHOE_CORRUPT_ICEBERG_METADATA",
        file=name,
    )
