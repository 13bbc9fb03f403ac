"""Field ids for the elements of lists and the keys and values of maps, put into the footer of a Parquet file that is already written.

Spark's Parquet writer gives ids to fields, but none to what arrays and maps hold; Iceberg readers need those
(PROTOCOL.md, "Writer Requirements for IcebergCompatV2"). Only the footer is made anew: column chunks stay byte for byte as they are.
The footer is Thrift's compact protocol; it is read into plain values, `SchemaElement`s get their ``field_id``, and it is written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tahoe.exceptions import CorruptTable
from tahoe.schema.mapping import nested_ids_of
from tahoe.schema.types import ArrayType, DataType, MapType, StructType

__all__ = ["with_nested_ids"]

_MAGIC = b"PAR1"
# Of the specification of Parquet (parquet.thrift): members of FileMetaData and of SchemaElement.
_SCHEMA, _NAME, _NUM_CHILDREN, _FIELD_ID = 2, 4, 5, 9


def with_nested_ids(content: bytes, schema: StructType) -> bytes:
    """The bytes of the file with an id on each list element, map key and map value that the schema has ids for.

    Args:
        schema: logical, with column mapping metadata.

    Raises:
        CorruptTable: the bytes are no Parquet file with a plain footer.
    """
    if content[:4] != _MAGIC or content[-4:] != _MAGIC:
        raise CorruptTable(
            "A file written by Spark is no Parquet file with a plain footer, so that it cannot be given field ids."
        )
    length = int.from_bytes(content[-8:-4], "little")
    start = len(content) - 8 - length
    metadata = _Reader(content[start:-8]).struct()
    ids = dict(_ids(schema))
    for path, element in _elements(metadata[_SCHEMA][1]):
        if path in ids:
            element[_FIELD_ID] = (_I32, ids[path])
    footer = _Writer().struct(metadata)
    return content[:start] + footer + len(footer).to_bytes(4, "little") + _MAGIC


def _ids(schema: StructType) -> Iterator[tuple[tuple[str, ...], int]]:
    """Ids by the path of the Parquet schema, physical names with ``list.element``, ``key_value.key``, ``key_value.value`` in between."""

    def walk(data_type: DataType, path: tuple[str, ...], key: str, known: Any) -> Iterator[tuple[tuple[str, ...], int]]:
        match data_type:
            case StructType():
                for column in data_type:
                    yield from walk(column.data_type, (*path, column.physical_name), column.physical_name, nested_ids_of(column))
            case ArrayType(element):
                yield from part(element, (*path, "list", "element"), f"{key}.element", known)
            case MapType(map_key, value):
                yield from part(map_key, (*path, "key_value", "key"), f"{key}.key", known)
                yield from part(value, (*path, "key_value", "value"), f"{key}.value", known)

    def part(data_type: DataType, path: tuple[str, ...], key: str, known: Any) -> Iterator[tuple[tuple[str, ...], int]]:
        if key in known:
            yield path, known[key]
        yield from walk(data_type, path, key, known)

    yield from walk(schema, (), "", {})


def _elements(flat: tuple[int, list[Any]]) -> Iterator[tuple[tuple[str, ...], dict[int, Any]]]:
    """Each `SchemaElement` with its path; the list is the tree in depth-first order, root first."""
    elements = iter(flat[1])

    def children(count: int, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[int, Any]]]:
        for _ in range(count):
            element = next(elements)
            inner = (*path, element[_NAME][1].decode())
            yield inner, element
            if _NUM_CHILDREN in element:
                yield from children(element[_NUM_CHILDREN][1], inner)

    root = next(elements)
    yield from children(root[_NUM_CHILDREN][1], ())


# Types of Thrift's compact protocol.
_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_INTEGERS = (_I16, _I32, _I64)


class _Reader:
    """Compact Thrift → values: a struct is ``{field id: (type, value)}``, a list is ``(element type, [values])``."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self) -> dict[int, tuple[int, Any]]:
        found: dict[int, tuple[int, Any]] = {}
        field_id = 0
        while (head := self._byte()) != 0:
            kind, delta = head & 0x0F, head >> 4
            field_id = field_id + delta if delta else self._integer()
            # In a struct the type is the boolean's value.
            found[field_id] = (kind, kind == _TRUE) if kind in (_TRUE, _FALSE) else (kind, self._value(kind))
        return found

    def _value(self, kind: int) -> Any:
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_TRUE, _FALSE, _I8):
            return self._byte()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            return head & 0x0F, [self._value(head & 0x0F) for _ in range(count)]
        if kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            return kinds, [(self._value(kinds >> 4), self._value(kinds & 0x0F)) for _ in range(count)]
        if kind == _STRUCT:
            return self.struct()
        raise CorruptTable(f"A Parquet footer holds the unknown Thrift type {kind}.")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _unsigned(self) -> int:
        found = shift = 0
        while (byte := self._byte()) & 0x80:
            found |= (byte & 0x7F) << shift
            shift += 7
        return found | byte << shift

    def _integer(self) -> int:
        number = self._unsigned()
        return (number >> 1) ^ -(number & 1)


class _Writer:
    """The reverse of `_Reader`, byte for byte for what Parquet's own libraries write."""

    def struct(self, values: dict[int, tuple[int, Any]]) -> bytes:
        out = bytearray()
        last = 0
        for field_id, (kind, value) in sorted(values.items()):
            delta = field_id - last
            out += bytes([delta << 4 | kind]) if 0 < delta < 16 else bytes([kind]) + _zigzag(field_id)
            if kind not in (_TRUE, _FALSE):
                out += self._value(kind, value)
            last = field_id
        return bytes(out + b"\0")

    def _value(self, kind: int, value: Any) -> bytes:
        if kind in _INTEGERS:
            return _zigzag(value)
        if kind in (_TRUE, _FALSE, _I8):
            return bytes([value])
        if kind == _DOUBLE:
            return bytes(value)
        if kind == _BINARY:
            return _varint(len(value)) + bytes(value)
        if kind in (_LIST, _SET):
            element, items = value
            head = bytes([len(items) << 4 | element]) if len(items) < 15 else bytes([0xF0 | element]) + _varint(len(items))
            return head + b"".join(self._value(element, item) for item in items)
        if kind == _MAP:
            kinds, pairs = value
            body = b"".join(self._value(kinds >> 4, key) + self._value(kinds & 0x0F, item) for key, item in pairs)
            return _varint(len(pairs)) + (bytes([kinds]) + body if pairs else b"")
        return self.struct(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _zigzag(number: int) -> bytes:
    return _varint((number << 1) ^ (number >> 63))
