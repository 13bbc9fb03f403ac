"""Variants by a second hand, for tests: trees of tagged values to bytes and back, and taken apart into typed columns.

A tree is ``("null",)``, ``("int8", 5)`` and so on, ``("array", [trees])`` or ``("object", {name: tree})``. A shape says into which columns
variants are taken apart: None (no typed column), the tag of a primitive, ``("array", shape)`` or ``("object", {name: shape})``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["PRIMITIVES", "Style", "apart", "decoded", "metadata_of", "value_of"]


@dataclass(frozen=True)
class Primitive:
    number: int
    kind: pa.DataType
    pack: Callable[[Any], bytes]
    unpack: Callable[[bytes], Any]


def _packed(number: int, kind: pa.DataType, code: str) -> Primitive:
    return Primitive(number, kind, lambda value: struct.pack(code, value), lambda data: struct.unpack(code, data)[0])


def _decimal(number: int, digits: int, width: int) -> Primitive:
    return Primitive(
        number,
        pa.decimal128(digits, 2),
        lambda value: b"\x02" + int(value.scaleb(2)).to_bytes(width, "little", signed=True),
        lambda data: Decimal(int.from_bytes(data[1:], "little", signed=True)).scaleb(-data[0]),
    )


def _long(number: int, kind: pa.DataType, to: Callable[[Any], bytes], back: Callable[[bytes], Any]) -> Primitive:
    return Primitive(number, kind, lambda value: struct.pack("<I", len(to(value))) + to(value), lambda data: back(data[4:]))


PRIMITIVES = {
    "int8": _packed(3, pa.int8(), "<b"),
    "int16": _packed(4, pa.int16(), "<h"),
    "int32": _packed(5, pa.int32(), "<i"),
    "int64": _packed(6, pa.int64(), "<q"),
    "double": _packed(7, pa.float64(), "<d"),
    "decimal4": _decimal(8, 9, 4),
    "decimal8": _decimal(9, 18, 8),
    "decimal16": _decimal(10, 38, 16),
    "date": _packed(11, pa.date32(), "<i"),
    "timestamp": _packed(12, pa.timestamp("us", tz="UTC"), "<q"),
    "timestamp_ntz": _packed(13, pa.timestamp("us"), "<q"),
    "float": _packed(14, pa.float32(), "<f"),
    "binary": _long(15, pa.binary(), bytes, bytes),
    "string": _long(16, pa.string(), str.encode, bytes.decode),
    "time": _packed(17, pa.time64("us"), "<q"),
    "timestamp_nanos": _packed(18, pa.timestamp("ns", tz="UTC"), "<q"),
    "timestamp_ntz_nanos": _packed(19, pa.timestamp("ns"), "<q"),
    "uuid": Primitive(20, pa.binary(16), bytes, bytes),
}
_TAGS = {item.number: tag for tag, item in PRIMITIVES.items()}


@dataclass(frozen=True)
class Style:
    """Free choices of writers: wider numbers than needed, the order of an object's values, short texts."""

    wide: bool = False
    backwards: bool = False
    short_texts: bool = True


def metadata_of(names: Sequence[str], style: Style = Style()) -> bytes:
    texts = [name.encode() for name in names]
    ends = [sum(map(len, texts[:index])) for index in range(len(texts) + 1)]
    width = 4 if style.wide or len(texts) > 255 or ends[-1] > 255 else 1
    numbers = b"".join(number.to_bytes(width, "little") for number in [len(texts), *ends])
    return bytes([1 | (width - 1) << 6]) + numbers + b"".join(texts)


def value_of(tree: Any, names: Sequence[str], style: Style = Style()) -> bytes:
    tag, *inside = tree
    if tag == "null":
        return b"\x00"
    if tag == "boolean":
        return b"\x04" if inside[0] else b"\x08"
    if tag == "string" and style.short_texts and len(inside[0].encode()) < 64:
        return bytes([len(inside[0].encode()) << 2 | 1]) + inside[0].encode()
    if tag in PRIMITIVES:
        return bytes([PRIMITIVES[tag].number << 2]) + PRIMITIVES[tag].pack(inside[0])
    if tag == "array":
        return _nested([], [value_of(item, names, style) for item in inside[0]], style)
    keys = sorted(inside[0], key=str.encode)
    return _nested([names.index(key) for key in keys], [value_of(inside[0][key], names, style) for key in keys], style, True)


def _nested(ids: list[int], values: list[bytes], style: Style, is_object: bool = False) -> bytes:
    order = list(range(len(values)))[:: -1 if style.backwards and is_object else 1]
    starts, data = {len(values): sum(map(len, values))}, b""
    for index in order:
        starts[index] = len(data)
        data += values[index]
    width = 4 if style.wide or len(data) > 255 or max(ids, default=0) > 255 else 1
    large = style.wide or len(values) > 255
    header = (large << 4 | (width - 1) << 2 | width - 1) << 2 | 2 if is_object else (large << 2 | width - 1) << 2 | 3
    numbers = [number.to_bytes(width, "little") for number in [*ids, *(starts[index] for index in range(len(values) + 1))]]
    return bytes([header]) + len(values).to_bytes(4 if large else 1, "little") + b"".join(numbers) + data


def decoded(metadata: bytes, value: bytes) -> Any:
    """The tree of a variant."""
    width = (metadata[0] >> 6) + 1
    numbers = [int.from_bytes(metadata[at : at + width], "little") for at in range(1, len(metadata) - width + 1, width)]
    text = metadata[1 + width * (numbers[0] + 2) :]
    return _tree([text[numbers[1 + i] : numbers[2 + i]].decode() for i in range(numbers[0])], value)


def _tree(names: list[str], value: bytes) -> Any:
    basic, header = value[0] & 3, value[0] >> 2
    if basic == 1:
        return "string", value[1 : 1 + header].decode()
    if basic == 0:
        if header < 3:
            return ("null",) if header == 0 else ("boolean", header == 1)
        primitive = PRIMITIVES[_TAGS[header]]
        size = 4 + struct.unpack_from("<I", value, 1)[0] if header in (15, 16) else len(primitive.pack(_ANY.get(header, 0)))
        return _TAGS[header], primitive.unpack(value[1 : 1 + size])
    large = header >> (4 if basic == 2 else 2) & 1
    at = 5 if large else 2
    count, width = int.from_bytes(value[1:at], "little"), (header & 3) + 1
    ids = list[int]()
    if basic == 2:
        wide = (header >> 2 & 3) + 1
        ids = [int.from_bytes(value[at + wide * i : at + wide * (i + 1)], "little") for i in range(count)]
        at += wide * count
    starts = [int.from_bytes(value[at + width * i : at + width * (i + 1)], "little") for i in range(count)]
    at += width * (count + 1)
    actual = [_tree(names, value[at + start :]) for start in starts]
    if basic == 3:
        return "array", actual
    keys = [names[i] for i in ids]
    assert keys == sorted(keys, key=str.encode), "an object lists its fields in the order of their names"
    return "object", dict(zip(keys, actual, strict=True))


_ANY: dict[int, Any] = {8: Decimal(0), 9: Decimal(0), 10: Decimal(0), 20: bytes(16)}


def apart(trees: Sequence[Any], shape: Any, names: Sequence[str], style: Style = Style()) -> pa.StructArray:
    """The variants (None: no variant) as a file would have them that takes them apart into this shape."""
    kind = pa.struct([pa.field("metadata", pa.binary()), *_kind(shape)])
    metadata = metadata_of(names, style)
    rows = [None if item is None else {"metadata": metadata, **_parts(item, shape, names, style)} for item in trees]
    return pa.array(rows, kind)


def _kind(shape: Any) -> list[pa.Field]:
    value = pa.field("value", pa.binary())
    match shape:
        case None:
            return [value]
        case ("array", inside):
            typed = pa.list_(pa.field("element", pa.struct(_kind(inside)), False))
        case ("object", fields):
            typed = pa.struct([pa.field(name, pa.struct(_kind(item)), False) for name, item in fields.items()])
        case "boolean":
            typed = pa.bool_()
        case _:
            typed = PRIMITIVES[shape].kind
    return [value, pa.field("typed_value", typed)]


def _parts(tree: Any, shape: Any, names: Sequence[str], style: Style) -> dict[str, Any]:
    if tree is None:
        return {"value": None, "typed_value": None}
    tag, *inside = tree
    match shape:
        case ("array", element) if tag == "array":
            return {"value": None, "typed_value": [_parts(item, element, names, style) for item in inside[0]]}
        case ("object", fields) if tag == "object":
            rest = {name: item for name, item in inside[0].items() if name not in fields}
            typed = {name: _parts(inside[0].get(name), item, names, style) for name, item in fields.items()}
            return {"value": value_of(("object", rest), names, style) if rest else None, "typed_value": typed}
        case str() if tag == shape:
            return {"value": None, "typed_value": inside[0]}
    return {"value": value_of(tree, names, style), "typed_value": None}
