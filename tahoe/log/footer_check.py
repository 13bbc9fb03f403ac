"""Whether a Parquet footer can be handed to Arrow.

Arrow's C++ ends the whole process, without an exception, when it is asked for the metadata of a column chunk that is not there, has
another type than the schema says, or statistics of the wrong size. A flipped bit is enough. So footers that nobody vouches for are
walked through here first: Thrift's compact protocol, of which only such members are looked at and all others skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["fault_in_footer"]


def fault_in_footer(footer: bytes) -> str | None:
    """What is wrong with the serialised `FileMetaData` of a Parquet file; None where Arrow can take it.

    Args:
        footer: the Thrift structure alone, without its length and the magic bytes after it.
    """
    reader = _Reader(footer)
    leaves: list[_Leaf] = []
    fault: str | None = None
    try:
        for member, kind in reader.members():
            if member == _SCHEMA:
                elements = [_element(reader) for _ in reader.list_of(kind, _STRUCT)]
                leaves = list(_leaves(iter(elements[1:]), elements[0].children, 0, 0))
            elif member == _ROW_GROUPS:
                for number in reader.list_of(kind, _STRUCT):
                    found = _fault_in_row_group(reader, leaves)
                    fault = fault or (found and f"row group {number} has {found}")
            else:
                reader.skip(kind)
    except (IndexError, ValueError, RecursionError, StopIteration, RuntimeError):
        return "its footer is not Thrift"
    return fault if leaves else "its footer has no schema"


# Members by their numbers in parquet.thrift.
_SCHEMA, _ROW_GROUPS = 2, 4  # of FileMetaData
_TYPE_OF_ELEMENT, _TYPE_LENGTH, _REPETITION, _NUM_CHILDREN = 1, 2, 3, 5  # of SchemaElement
_COLUMNS = 1  # of RowGroup
_META_DATA, _CRYPTO_METADATA = 3, 8  # of ColumnChunk
_TYPE_OF_COLUMN, _STATISTICS, _SIZE_STATISTICS, _GEOSPATIAL_STATISTICS = 1, 12, 16, 17  # of ColumnMetaData
_BOUNDS = (1, 2, 5, 6)  # of Statistics
_UNENCODED_BYTES, _REPETITION_HISTOGRAM, _DEFINITION_HISTOGRAM = 1, 2, 3  # of SizeStatistics

_BYTE_ARRAY, _FIXED_LENGTH = 6, 7
_BYTES_OF_TYPE = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_REQUIRED, _OPTIONAL, _REPEATED = range(3)

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)


@dataclass(frozen=True, slots=True)
class _Element:
    """A schema element; `kind` is None for a group."""

    kind: int | None
    length: int
    repetition: int
    children: int


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf column: its physical type, the bytes of one value (None where they vary), and its greatest levels."""

    kind: int | None
    value_bytes: int | None
    definition_level: int
    repetition_level: int


def _element(reader: _Reader) -> _Element:
    found = {_TYPE_OF_ELEMENT: -1, _TYPE_LENGTH: 0, _REPETITION: _REQUIRED, _NUM_CHILDREN: 0}
    stated = False
    for member, kind in reader.members():
        if member in found:
            found[member] = reader.integer(kind)
            stated = stated or member == _TYPE_OF_ELEMENT
        else:
            reader.skip(kind)
    children = found[_NUM_CHILDREN]
    return _Element(found[_TYPE_OF_ELEMENT] if stated else None, found[_TYPE_LENGTH], found[_REPETITION], children)


def _leaves(elements: Iterator[_Element], count: int, definition_level: int, repetition_level: int) -> Iterator[_Leaf]:
    """The leaves below the next `count` elements of a schema, which come in depth-first order."""
    for _ in range(count):
        element = next(elements, None)
        if element is None or not _REQUIRED <= element.repetition <= _REPEATED:
            raise ValueError("the schema ends early, or an element of it has no repetition")
        definition = definition_level + (element.repetition != _REQUIRED)
        repetition = repetition_level + (element.repetition == _REPEATED)
        if element.children:
            yield from _leaves(elements, element.children, definition, repetition)
        else:
            value_bytes = element.length if element.kind == _FIXED_LENGTH else _BYTES_OF_TYPE.get(element.kind or 0)
            yield _Leaf(element.kind, None if element.kind == _BYTE_ARRAY else value_bytes, definition, repetition)


def _fault_in_row_group(reader: _Reader, leaves: list[_Leaf]) -> str | None:
    fault: str | None = None
    columns = 0
    for member, kind in reader.members():
        if member == _COLUMNS:
            for columns in reader.list_of(kind, _STRUCT):
                found = _fault_in_column(reader, leaves[columns] if columns < len(leaves) else None)
                fault = fault or (found and f"{found} for column {columns}")
            columns += 1
        else:
            reader.skip(kind)
    if columns != len(leaves):
        return f"{columns} columns, but the schema has {len(leaves)}"
    return fault


def _fault_in_column(reader: _Reader, leaf: _Leaf | None) -> str | None:
    fault: str | None = "no metadata"
    for member, kind in reader.members():
        if member == _META_DATA and kind == _STRUCT:
            fault = _fault_in_metadata(reader, leaf)
        elif member == _CRYPTO_METADATA:
            fault = "encrypted metadata"
            reader.skip(kind)
        else:
            reader.skip(kind)
    return fault


def _fault_in_metadata(reader: _Reader, leaf: _Leaf | None) -> str | None:
    stated = -2
    fault: str | None = None
    for member, kind in reader.members():
        if member == _TYPE_OF_COLUMN:
            stated = reader.integer(kind)
        elif member == _STATISTICS and kind == _STRUCT:
            fault = _fault_in_statistics(reader, leaf) or fault
        elif member == _SIZE_STATISTICS and kind == _STRUCT:
            fault = _fault_in_size_statistics(reader, leaf) or fault
        else:
            if member == _GEOSPATIAL_STATISTICS:
                fault = "geospatial statistics"
            reader.skip(kind)
    return fault if leaf is None or stated == leaf.kind else "another type than the schema"


def _fault_in_statistics(reader: _Reader, leaf: _Leaf | None) -> str | None:
    fault: str | None = None
    for member, kind in reader.members():
        if member in _BOUNDS and kind == _BINARY:
            size = reader.varint()
            reader.advance(size)
            if leaf is not None and leaf.value_bytes is not None and size not in (0, leaf.value_bytes):
                fault = f"statistics of {size} bytes"
        else:
            reader.skip(kind)
    return fault


def _fault_in_size_statistics(reader: _Reader, leaf: _Leaf | None) -> str | None:
    fault: str | None = None
    for member, kind in reader.members():
        if member in (_REPETITION_HISTOGRAM, _DEFINITION_HISTOGRAM):
            size = len(reader.list_of(kind, _I64))
            for _ in range(size):
                reader.varint()
            if leaf is not None:
                expected = leaf.repetition_level if member == _REPETITION_HISTOGRAM else leaf.definition_level
                if size not in (0, expected + 1):
                    fault = f"a histogram of {size} levels"
        else:
            if member == _UNENCODED_BYTES and leaf is not None and leaf.kind != _BYTE_ARRAY:
                fault = "byte counts for values of fixed size"
            reader.skip(kind)
    return fault


class _Reader:
    """Thrift's compact protocol. Reading past the end is IndexError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def members(self) -> _Members:
        return _Members(self)

    def list_of(self, kind: int, of: int) -> range:
        """The places of a list of `of`, each of which the caller reads."""
        if kind != _LIST:
            raise ValueError("no list")
        count, inner = self._list_header()
        if inner != of and count:
            raise ValueError("a list of something else")
        return range(count)

    def integer(self, kind: int) -> int:
        """A 32-bit number. One that is written as another type would be passed over by Arrow, so it is refused."""
        if kind != _I32:
            raise ValueError("no number of 32 bits")
        return self._integer()

    def _integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def varint(self) -> int:
        data, position, shift, value = self.data, self.position, 0, 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return value
            shift += 7
            if shift > 63:
                raise ValueError("a number of more than 64 bits")

    def skip(self, kind: int) -> None:
        if _I16 <= kind <= _I64:
            self.varint()
        elif kind == _BINARY:
            self.advance(self.varint())
        elif kind == _STRUCT:
            for _, inner in self.members():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            count, inner = self._list_header()
            for _ in range(count):
                self._skip_element(inner)
        elif kind == _MAP:
            raise ValueError("Parquet has no maps")
        elif kind in (_BYTE, _DOUBLE):
            self.advance(1 if kind == _BYTE else 8)
        elif kind not in (_TRUE, _FALSE):
            raise ValueError(kind)

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):
            self.advance(1)
        else:
            self.skip(kind)

    def _list_header(self) -> tuple[int, int]:
        byte = self.data[self.position]
        self.position += 1
        count = byte >> 4
        if count == 15:
            count = self.varint()
        if count > len(self.data):
            raise ValueError("a list longer than its bytes")
        return count, byte & 0x0F

    def advance(self, count: int) -> None:
        self.position += count
        if self.position > len(self.data):
            raise IndexError(self.position)


class _Members:
    """The members of a struct as (number, type); the caller reads each before the next is asked for."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader
        self._number = 0

    def __iter__(self) -> _Members:
        return self

    def __next__(self) -> tuple[int, int]:
        reader = self._reader
        byte = reader.data[reader.position]
        reader.position += 1
        if byte == 0:
            raise StopIteration
        delta = byte >> 4
        self._number = self._number + delta if delta else reader._integer()
        return self._number, byte & 0x0F
