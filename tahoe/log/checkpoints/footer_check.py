"""Checks whether Arrow can read a Parquet footer safely.

Arrow's C++ ends the whole process, without an exception, when it reads the metadata of a column chunk that is missing, has another type
than the schema, or has statistics of the wrong size. A flipped bit is enough. Footers without a verified checksum are therefore checked
here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from tahoe.base.exceptions import CorruptTable
from tahoe.protocol.statistics.thrift import BINARY, DOUBLE, I32, I64, LIST, STRUCT, Struct, read_struct


def fault_in_footer(footer: bytes) -> str | None:
    """Describe the fault of the serialised `FileMetaData` of a Parquet file; None if Arrow can read it.

    Args:
        footer: the Thrift structure alone, without its length and the magic bytes after it.
    """
    if sha256(footer).digest() in _sound:
        return None
    fault = _fault(footer)
    if fault is None:
        vouch_for_footer(footer)
    return fault


def vouch_for_footer(footer: bytes) -> None:
    """Remember that Arrow can take this footer; of one that Arrow itself has just written, it is known."""
    if len(_sound) >= _MOST_REMEMBERED:
        _sound.clear()
    _sound.add(sha256(footer).digest())


# Time travel opens a checkpoint once for each of the versions after it.
_sound: set[bytes] = set()
_MOST_REMEMBERED = 4_096


def _fault(footer: bytes) -> str | None:
    try:
        metadata = read_struct(footer)
        root, *elements = _list(metadata, _SCHEMA, STRUCT)
        leaves = list(_leaves(iter(elements), _integer(root, _NUM_CHILDREN, 0), 0, 0))
        for number, group in enumerate(_list(metadata, _ROW_GROUPS, STRUCT)):
            fault = _fault_in_row_group(group, leaves)
            if fault is not None:
                return f"row group {number} of its footer has {fault}"
    except (CorruptTable, ValueError, RecursionError):
        return "its footer cannot be read"
    return None if leaves else "its footer has no schema"


# Members by their numbers in parquet.thrift.
_SCHEMA, _ROW_GROUPS = 2, 4  # of FileMetaData
_TYPE_OF_ELEMENT, _TYPE_LENGTH, _REPETITION, _NUM_CHILDREN, _LOGICAL_TYPE = 1, 2, 3, 5, 10  # of SchemaElement
_GEOSPATIAL_TYPES = {17, 18}  # of LogicalType
_BOX, _KINDS = 1, 2  # of GeospatialStatistics
_PLANE, _HEIGHT, _MEASURE = (1, 2, 3, 4), (5, 6), (7, 8)  # of BoundingBox
_COLUMNS = 1  # of RowGroup
_META_DATA, _CRYPTO_METADATA = 3, 8  # of ColumnChunk
_TYPE_OF_COLUMN, _STATISTICS, _SIZE_STATISTICS, _GEOSPATIAL_STATISTICS = 1, 12, 16, 17  # of ColumnMetaData
_BOUNDS = (1, 2, 5, 6)  # of Statistics
_UNENCODED_BYTES, _REPETITION_HISTOGRAM, _DEFINITION_HISTOGRAM = 1, 2, 3  # of SizeStatistics

_BYTE_ARRAY, _FIXED_LENGTH = 6, 7
_BYTES_OF_TYPE = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_REQUIRED, _OPTIONAL, _REPEATED = range(3)


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A leaf column: its physical type, the bytes of one value (None where they vary), its greatest levels, and whether its logical type is
    GEOMETRY or GEOGRAPHY."""

    kind: int
    value_bytes: int | None
    definition_level: int
    repetition_level: int
    is_geospatial: bool


def _leaves(elements: Iterator[Struct], count: int, definition_level: int, repetition_level: int) -> Iterator[_Leaf]:
    """The leaves below the next `count` elements of a schema, which come in depth-first order."""
    for _ in range(count):
        element = next(elements, None)
        repetition = -1 if element is None else _integer(element, _REPETITION, -1)
        if element is None or not _REQUIRED <= repetition <= _REPEATED:
            raise ValueError("the schema ends early, or an element of it has no repetition")
        levels = definition_level + (repetition != _REQUIRED), repetition_level + (repetition == _REPEATED)
        children = _integer(element, _NUM_CHILDREN, 0)
        if children:
            yield from _leaves(elements, children, *levels)
        else:
            kind = _integer(element, _TYPE_OF_ELEMENT, -1)
            size = _integer(element, _TYPE_LENGTH, 0) if kind == _FIXED_LENGTH else _BYTES_OF_TYPE.get(kind)
            logical = _struct(element, _LOGICAL_TYPE) or {}
            yield _Leaf(kind, size, *levels, kind == _BYTE_ARRAY and bool(logical.keys() & _GEOSPATIAL_TYPES))


def _fault_in_row_group(group: Struct, leaves: list[_Leaf]) -> str | None:
    columns = _list(group, _COLUMNS, STRUCT)
    if len(columns) != len(leaves):
        return f"{len(columns)} columns, but the schema has {len(leaves)}"
    for number, (column, leaf) in enumerate(zip(columns, leaves, strict=True)):
        fault = "encrypted metadata" if _CRYPTO_METADATA in column else _fault_in_metadata(_struct(column, _META_DATA), leaf)
        if fault is not None:
            return f"{fault} for column {number}"
    return None


def _fault_in_metadata(metadata: Struct | None, leaf: _Leaf) -> str | None:
    if metadata is None:
        return "no metadata"
    if _integer(metadata, _TYPE_OF_COLUMN, -2) != leaf.kind:
        return "another type than the schema"
    if _GEOSPATIAL_STATISTICS in metadata and not (leaf.is_geospatial and _are_geospatial(metadata[_GEOSPATIAL_STATISTICS])):
        return "geospatial statistics that are none"
    statistics = _struct(metadata, _STATISTICS) or {}
    for kind, bound in (statistics[member] for member in _BOUNDS if member in statistics):
        if kind == BINARY and leaf.value_bytes is not None and len(bound) not in (0, leaf.value_bytes):
            return f"statistics of {len(bound)} bytes"
    sizes = _struct(metadata, _SIZE_STATISTICS) or {}
    if _UNENCODED_BYTES in sizes and leaf.kind != _BYTE_ARRAY:
        return "byte counts for values of fixed size"
    for member, level in ((_REPETITION_HISTOGRAM, leaf.repetition_level), (_DEFINITION_HISTOGRAM, leaf.definition_level)):
        if member in sizes and len(_list(sizes, member, I64)) not in (0, level + 1):
            return "a histogram of the wrong length"
    return None


def _are_geospatial(thrift_value: tuple[int, Any]) -> bool:
    """Whether a value is `GeospatialStatistics`: a box with both ends of each of its dimensions, and a list of kinds."""
    kind, statistics = thrift_value
    if kind != STRUCT or not statistics.keys() <= {_BOX, _KINDS}:
        return False
    _list(statistics, _KINDS, I32)
    if _BOX not in statistics:
        return True
    box = _struct(statistics, _BOX)
    if box is None or any(kind != DOUBLE for kind, _ in box.values()):
        return False
    ends = [sum(member in box for member in dimension) for dimension in (_PLANE, _HEIGHT, _MEASURE)]
    return ends[0] == 4 and ends[1] in (0, 2) and ends[2] in (0, 2) and sum(ends) == len(box)


def _integer(struct: Struct, member: int, default: int) -> int:
    """A number of 32 bits. One that is written as another type would be passed over by Arrow, so it is refused."""
    if member not in struct:
        return default
    kind, value = struct[member]
    if kind != I32:
        raise ValueError("no number of 32 bits")
    return int(value)


def _struct(struct: Struct, member: int) -> Struct | None:
    kind, value = struct.get(member, (None, None))
    return value if kind == STRUCT else None


def _list(struct: Struct, member: int, of: int) -> list[Any]:
    kind, value = struct.get(member, (LIST, (of, [])))
    if kind != LIST or (value[0] != of and value[1]):
        raise ValueError("no list of the expected kind")
    return list(value[1])
