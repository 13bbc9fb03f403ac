"""Reassembles shredded variants, which a file stores in typed columns, without Spark.

See Parquet's specification "Variant Shredding" and Delta's PROTOCOL.md, "Variant Shredding". A shredded variant is a group of `metadata`,
`value` and `typed_value`: a non-null `typed_value` is the value, or some fields of an object; the rest is in `value`. The conversion works
column by column: each part becomes the list of its values' bytes, from which objects and arrays are assembled row by row.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tahoe.schema.variant_bytes import NULL, Dictionary, MalformedVariant, array_of, fields_of, object_of

_NOTHING = Dictionary((), {})
_SHORT_TEXT = 64


def is_shredded(data_type: pa.DataType) -> bool:
    """Whether the struct of a variant column in a file is shredded."""
    names = {field.name for field in data_type.fields} if pa.types.is_struct(data_type) else set()
    return {"metadata", "typed_value"} <= names


def unshredded(array: pa.StructArray) -> pa.StructArray:
    """Convert shredded variants to a struct of `metadata` and `value`, with the same nulls.

    Integers, decimals and timestamps keep the width of their column, as the specification requires; strings get the shortest encoding.

    Raises:
        MalformedVariant: a value was shredded in a way that the specification forbids.
    """
    position = [field.name for field in array.type.fields].index("metadata")
    if not pa.types.is_binary(array.type.field(position).type):
        raise MalformedVariant("its metadata is not binary")
    missing = array.is_null()
    metadata = array.flatten()[position]
    by_metadata = dict[bytes | None, Dictionary]({None: _NOTHING})
    dictionaries = list[Dictionary]()
    for text, is_missing in zip(metadata.to_pylist(), missing.to_pylist(), strict=True):
        if text is None and not is_missing:
            raise MalformedVariant("it has no metadata")
        if text not in by_metadata:
            by_metadata[text] = Dictionary.of(text)
        dictionaries.append(by_metadata[text])
    # A missing value in a required position is a variant's null.
    values = [NULL if value is None else value for value in _values(array, dictionaries)]
    return pa.StructArray.from_arrays([pa.array(values, pa.binary()), metadata], ["value", "metadata"], mask=missing)


def _values(group: pa.StructArray, dictionaries: Sequence[Dictionary]) -> list[bytes | None]:
    """Return the value of each row of a group, None if it is missing."""
    parts = {}
    if pa.types.is_struct(group.type):
        parts = dict(zip((field.name for field in group.type.fields), group.flatten(), strict=True))
    value, typed = parts.get("value"), parts.get("typed_value")
    if value is None and typed is None:
        raise MalformedVariant(f"a part of it is {group.type}, which has neither value nor typed_value")
    if value is not None and not pa.types.is_binary(value.type):
        raise MalformedVariant(f"a value of it is {value.type}, not binary")
    rest: list[bytes | None] = [None] * len(group) if value is None else value.to_pylist()
    if typed is None:
        return rest
    if pa.types.is_struct(typed.type):
        return _objects(typed, rest, dictionaries)
    typed_values = _arrays(typed, dictionaries) if _is_list(typed.type) else _primitives(typed)
    if any(untyped is not None and typed_value is not None for untyped, typed_value in zip(rest, typed_values, strict=True)):
        raise MalformedVariant("it has both a value and a typed_value, and is no object")
    return [typed_value if untyped is None else untyped for untyped, typed_value in zip(rest, typed_values, strict=True)]


def _objects(typed: pa.StructArray, rest: Sequence[bytes | None], dictionaries: Sequence[Dictionary]) -> list[bytes | None]:
    """Assemble objects some of whose fields have columns of their own; `rest` has the other fields, and the values that are not objects."""
    names = [field.name.encode() for field in typed.type.fields]
    # An object lists its fields in the order of their names' bytes.
    columns = sorted(
        zip(names, (_values(child, dictionaries) for child in typed.flatten()), strict=True), key=lambda pair: pair[0]
    )
    shredded = frozenset(names)
    objects = list[bytes | None]()
    for row, is_object in enumerate(typed.is_valid().to_pylist()):
        others = rest[row]
        if not is_object:
            objects.append(others)
            continue
        fields = [(name, value) for name, values in columns if (value := values[row]) is not None]
        if others is not None:
            unnamed = fields_of(others, dictionaries[row])
            if not shredded.isdisjoint(unnamed):
                raise MalformedVariant("a field with a column of its own is in the value beside it too")
            fields = sorted([*fields, *unnamed.items()])
        objects.append(object_of([(dictionaries[row].place(name), value) for name, value in fields]))
    return objects


def _arrays(typed: pa.Array, dictionaries: Sequence[Dictionary]) -> list[bytes | None]:
    offsets = typed.offsets.to_pylist()
    valid = typed.is_valid().to_pylist()
    first, last = (offsets[0], offsets[-1]) if offsets else (0, 0)
    of_elements = [
        dictionary for dictionary, start, end in zip(dictionaries, offsets, offsets[1:], strict=False) for _ in range(end - start)
    ]
    elements = [NULL if element is None else element for element in _values(typed.values[first:last], of_elements)]
    return [
        array_of(elements[start - first : end - first]) if is_array else None
        for is_array, start, end in zip(valid, offsets, offsets[1:], strict=False)
    ]


def _primitives(typed: pa.Array) -> list[bytes | None]:
    """Encode the values of a column without parts as the variant type that the specification assigns to the column's type."""
    kind, types = typed.type, pa.types
    if types.is_boolean(kind):
        return [None if value is None else b"\x04" if value else b"\x08" for value in typed.to_pylist()]
    if types.is_string(kind) or types.is_large_string(kind):
        return [None if value is None else _text(value) for value in _checked(typed).cast(pa.large_binary()).to_pylist()]
    if types.is_binary(kind) or types.is_large_binary(kind):
        return [None if value is None else b"\x3c" + len(value).to_bytes(4, "little") + value for value in typed.to_pylist()]
    if kind == pa.binary(16):
        return [None if value is None else b"\x50" + value for value in typed.to_pylist()]
    if types.is_decimal(kind) and kind.precision <= _DIGITS[-1][0] and 0 <= kind.scale <= kind.precision:
        header, width = next((header, width) for digits, header, width in _DIGITS if kind.precision <= digits)
        return _fixed(typed, bytes((header << 2, kind.scale)), width)
    if kind not in _FIXED:
        raise MalformedVariant(f"its typed_value is {kind}, which is no type of a variant")
    header, width = _FIXED[kind]
    return _fixed(typed, bytes((header << 2,)), width)


_FIXED: dict[pa.DataType, tuple[int, int]] = {
    pa.int8(): (3, 1),
    pa.int16(): (4, 2),
    pa.int32(): (5, 4),
    pa.int64(): (6, 8),
    pa.float64(): (7, 8),
    pa.date32(): (11, 4),
    pa.timestamp("us", tz="UTC"): (12, 8),
    pa.timestamp("us"): (13, 8),
    pa.float32(): (14, 4),
    pa.time64("us"): (17, 8),
    pa.timestamp("ns", tz="UTC"): (18, 8),
    pa.timestamp("ns"): (19, 8),
}
"""Types of a column with the type of the variant's value and its bytes, which are those of Arrow."""
_DIGITS = ((9, 8, 4), (18, 9, 8), (38, 10, 16))
"""Up to how many digits a decimal has which type of a variant's value, and how many bytes."""


def _fixed(typed: pa.Array, head: bytes, width: int) -> list[bytes | None]:
    """Values of one width: their bytes in Arrow, of decimals only the lower ones, which are enough for as many digits."""
    stride = typed.type.bit_width // 8
    data = typed.buffers()[1]
    raw = b"" if data is None else data.to_pybytes()
    begin = typed.offset * stride
    return [
        head + raw[begin + row * stride : begin + row * stride + width] if is_there else None
        for row, is_there in enumerate(typed.is_valid().to_pylist())
    ]


def _checked(texts: pa.Array) -> pa.Array:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise MalformedVariant(f"a text of it is not UTF-8: {error}") from error
    return texts


def _text(text: bytes) -> bytes:
    if len(text) < _SHORT_TEXT:
        return bytes((len(text) << 2 | 1,)) + text
    return b"\x40" + len(text).to_bytes(4, "little") + text


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
