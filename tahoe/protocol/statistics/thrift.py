"""Thrift's compact protocol, in which Parquet keeps its footers, to and from plain values.

A struct is ``{member number: (type, value)}``, a list is ``(element type, [values])``; numbers are int, texts bytes. Members that
nobody here knows go through unharmed, and what was read is written byte for byte the same.
"""

from __future__ import annotations

from typing import Any

from tahoe.exceptions import CorruptTable

__all__ = ["BINARY", "I16", "I32", "I64", "LIST", "STRUCT", "Struct", "footer_of", "read_struct", "with_footer", "write_struct"]

_TRUE, _FALSE, _I8, I16, I32, I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(1, 13)

Struct = dict[int, tuple[int, Any]]

MAGIC = b"PAR1"


def read_struct(data: bytes) -> Struct:
    """The struct that the bytes begin with. Raises `CorruptTable` for bytes that are none."""
    try:
        return _Reader(data).struct()
    except (IndexError, ValueError, RecursionError) as error:
        raise CorruptTable(
            f"A Parquet footer is not Thrift ({type(error).__name__}: {error}).", code="TAHOE_DATA_FILE_DAMAGED"
        ) from error


def write_struct(values: Struct) -> bytes:
    """The bytes of a struct."""
    return _Writer().struct(values)


def footer_of(content: bytes) -> tuple[int, Struct]:
    """Where the footer of a Parquet file begins, and what it says. Raises `CorruptTable` where there is no plain footer."""
    length = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - length
    if content[:4] != MAGIC or content[-4:] != MAGIC or start < len(MAGIC):
        raise CorruptTable("The bytes are no Parquet file with a plain footer.", code="TAHOE_DATA_FILE_DAMAGED")
    return start, read_struct(content[start:-8])


def with_footer(footer: Struct) -> bytes:
    """The end of a Parquet file: the footer, its length and the magic bytes."""
    data = write_struct(footer)
    return data + len(data).to_bytes(4, "little") + MAGIC


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> Struct:
        fields: Struct = {}
        number = 0
        while (head := self._byte()) != 0:
            kind, delta = head & 0x0F, head >> 4
            number = number + delta if delta else self._integer()
            # In a struct the type is the boolean's value.
            fields[number] = (kind, kind == _TRUE) if kind in (_TRUE, _FALSE) else (kind, self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if I16 <= kind <= I64:
            return self._integer()
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            if count > len(self._data):
                raise ValueError("a list is longer than its bytes")
            return head & 0x0F, [self._value(head & 0x0F) for _ in range(count)]
        if kind in (_TRUE, _FALSE, _I8):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            return kinds, [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in range(count)]
        raise ValueError(f"there is no type {kind}")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        if self._at > len(self._data):
            raise IndexError("the bytes end early")
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        data, at = self._data, self._at
        number = shift = 0
        while (byte := data[at]) & 0x80:
            number |= (byte & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise ValueError("a number has more than 64 bits")
        self._at = at + 1
        return number | byte << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


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
        if kind == _DOUBLE:
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
