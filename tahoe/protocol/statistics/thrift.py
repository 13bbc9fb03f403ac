"""Thrift's compact protocol, the encoding of Parquet footers, to and from plain values.

A struct is ``{member number: (type, value)}``, a list is ``(element type, [values])``; numbers are int, texts bytes. Unknown
members are preserved, and an unchanged value is written byte for byte as it was read.
"""

from __future__ import annotations

from typing import Any

from tahoe.base.exceptions import CorruptTable

_TRUE, _FALSE, _I8, I16, I32, I64, DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)

Struct = dict[int, tuple[int, Any]]

MAGIC = b"PAR1"
_TRUTH = (_TRUE, _FALSE)


def read_struct(data: bytes) -> Struct:
    """Parse the struct at the beginning of the bytes. Raises `CorruptTable` if there is none."""
    try:
        return _struct(data, 0)[0]
    except (IndexError, ValueError, RecursionError) as error:
        raise CorruptTable(
            f"A Parquet footer is not Thrift ({type(error).__name__}: {error}).", code="TAHOE_DATA_FILE_DAMAGED"
        ) from error


def write_struct(values: Struct) -> bytes:
    """Encode a struct."""
    return _Writer().struct(values)


def field_at(data: bytes, at: int, before: int) -> tuple[int, int, int]:
    """Return the number and type of the struct member at a byte offset, and the offset of its value.

    Args:
        before: the number of the member before it; 0 for the first.

    Raises `IndexError` or `ValueError` for invalid bytes, as the other functions that read a part do.
    """
    head = data[at]
    if head >> 4:
        return before + (head >> 4), head & 0x0F, at + 1
    number, begin = _integer(data, at + 1)
    return number, head & 0x0F, begin


def end_of_value(data: bytes, at: int, kind: int) -> int:
    """Return the offset after a member's value. (The value of a boolean member is part of its head.)"""
    return at if kind in _TRUTH else _value(data, at, kind)[1]


def read_integer(data: bytes, at: int) -> int:
    """Return the number at a byte offset."""
    return _integer(data, at)[0]


def read_list_head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the element type and length of the list at a byte offset, and the offset of its first element."""
    count, begin = data[at] >> 4, at + 1
    if count == 15:
        count, begin = _unsigned(data, begin)
    return data[at] & 0x0F, count, begin


def footer_of(content: bytes | memoryview) -> tuple[int, Struct]:
    """Return the offset and the contents of a Parquet file's footer. Raises `CorruptTable` if there is no plain footer."""
    length = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - length
    if content[:4] != MAGIC or content[-4:] != MAGIC or start < len(MAGIC):
        raise CorruptTable("The bytes are no Parquet file with a plain footer.", code="TAHOE_DATA_FILE_DAMAGED")
    return start, read_struct(bytes(content[start:-8]))


def with_footer(footer: Struct) -> bytes:
    """Return the end of a Parquet file: the footer, its length and the magic bytes."""
    data = write_struct(footer)
    return data + len(data).to_bytes(4, "little") + MAGIC


# Every small file of a table has a footer that is parsed here, so single-byte numbers, short texts and plain members are read inline,
# because a call takes longer than reading them. Every function returns the value, and the offset after it.


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at += 1
        kind, delta = head & 0x0F, head >> 4
        if delta:
            number += delta
        else:
            number, at = _integer(data, at)
        if I16 <= kind <= I64:
            if (byte := data[at]) < 0x80:
                value, at = (byte >> 1) ^ -(byte & 1), at + 1
            else:
                value, at = _integer(data, at)
            fields[number] = kind, value
        elif kind in _TRUTH:
            # Inside a struct the type is the boolean's value.
            fields[number] = kind, kind == _TRUE
        else:
            value, at = _value(data, at, kind)
            fields[number] = kind, value
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == BINARY:
        count, at = _unsigned(data, at)
        return _bytes(data, at, count)
    if kind == STRUCT:
        return _struct(data, at)
    if kind in (LIST, _SET):
        return _list(data, at)
    if I16 <= kind <= I64:
        return _integer(data, at)
    if kind in (_TRUE, _FALSE, _I8):
        return data[at], at + 1
    if kind == DOUBLE:
        return _bytes(data, at, 8)
    if kind == _MAP:
        return _map(data, at)
    raise ValueError(f"there is no type {kind}")


def _list(data: bytes, at: int) -> tuple[tuple[int, list[Any]], int]:
    head = data[at]
    at += 1
    kind, count = head & 0x0F, head >> 4
    if count == 15:
        count, at = _unsigned(data, at)
    if count > len(data):
        raise ValueError("a list is longer than its bytes")
    items = []
    for _ in range(count):
        item, at = _value(data, at, kind)
        items.append(item)
    return (kind, items), at


def _map(data: bytes, at: int) -> tuple[tuple[int, list[Any]], int]:
    count, at = _unsigned(data, at)
    kinds = 0
    if count:
        kinds, at = data[at], at + 1
    if count > len(data):
        raise ValueError("a map is longer than its bytes")
    items = []
    for _ in range(count):
        key, at = _value(data, at, kinds >> 4)
        value, at = _value(data, at, kinds & 0x0F)
        items.append((key, value))
    return (kinds, items), at


def _bytes(data: bytes, at: int, count: int) -> tuple[bytes, int]:
    end = at + count
    if end > len(data):
        raise IndexError("the bytes end early")
    return data[at:end], end


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while (byte := data[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        at += 1
        if shift > 63:
            raise ValueError("a number has more than 64 bits")
    return number | byte << shift, at + 1


def _integer(data: bytes, at: int) -> tuple[int, int]:
    number, at = _unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at


class _Writer:
    def struct(self, values: Struct) -> bytes:
        out = bytearray()
        last = 0
        for number, (kind, value) in sorted(values.items()):
            delta = number - last
            out += bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + _zigzag(number)
            if kind not in (_TRUE, _FALSE):
                out += self._value(kind, value)
            last = number
        return bytes(out + b"\0")

    def _value(self, kind: int, value: Any) -> bytes:
        if I16 <= kind <= I64:
            return _zigzag(value)
        if kind == BINARY:
            return _varint(len(value)) + bytes(value)
        if kind == STRUCT:
            return self.struct(value)
        if kind in (LIST, _SET):
            element, items = value
            head = bytes([len(items) << 4 | element]) if len(items) < 15 else bytes([0xF0 | element]) + _varint(len(items))
            return head + b"".join(self._value(element, item) for item in items)
        if kind == DOUBLE:
            return bytes(value)
        if kind == _MAP:
            kinds, pairs = value
            body = b"".join(self._value(kinds >> 4, key) + self._value(kinds & 0x0F, item) for key, item in pairs)
            return _varint(len(pairs)) + (bytes([kinds]) + body if pairs else b"")
        return bytes([value])


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _zigzag(number: int) -> bytes:
    return _varint((number << 1) ^ (number >> 63))
