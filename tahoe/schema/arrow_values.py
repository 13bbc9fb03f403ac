"""Python values → Arrow, without pandas.

`pyarrow.array` and `pyarrow.scalar` import pandas wherever it is installed, to see whether they were given something of it: a third of a
second that the first call of a process pays for nothing. These functions build the few values of a log or a filter from buffers instead.
Many values, invalid ones and other types are passed to pyarrow, whose result or error is returned.
"""

from __future__ import annotations

import sys
from array import array as machine_array
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tahoe.schema.arrow import is_variant


def array(values: Sequence[object], data_type: pa.DataType) -> pa.Array:
    """As `pyarrow.array(values, data_type)`."""
    if not len(values):
        return pa.nulls(0, data_type)
    if "pandas" in sys.modules or len(values) > _FEW:
        return pa.array(values, data_type)
    try:
        return _built(values, data_type)
    except (_NotKnown, ValueError, OverflowError, ArithmeticError):
        return pa.array(values, data_type)


def combined(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """As `values.combine_chunks()`, without a copy of an array or a single chunk."""
    if not isinstance(values, pa.ChunkedArray):
        return values
    if values.num_chunks == 1:
        return values.chunk(0)
    return values.combine_chunks() if values.num_chunks else pa.nulls(0, values.type)


def empty_table(schema: pa.Schema) -> pa.Table:
    """As `schema.empty_table()`."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def nulls(count: int, data_type: pa.DataType) -> pa.Array:
    """Return `pyarrow.nulls`; the parts of a null variant are empty, since they are required in Parquet."""
    if is_variant(data_type):
        parts = [pa.repeat(pa.scalar(b"", pa.binary()), count) for _ in data_type.fields]
    elif pa.types.is_struct(data_type) and data_type.num_fields:
        parts = [nulls(count, field.type) for field in data_type.fields]
    else:
        return pa.nulls(count, data_type)
    return pa.StructArray.from_arrays(parts, fields=data_type.fields, mask=pa.repeat(pa.scalar(True), count))


def scalar(value: object, data_type: pa.DataType | None = None) -> pa.Scalar:
    """As `pyarrow.scalar(value, data_type)`."""
    arrow_type = _INFERRED.get(type(value)) if data_type is None else data_type
    return pa.scalar(value) if arrow_type is None else array([value], arrow_type)[0]


_FEW = 20_000
"""Beyond so many values the work is pyarrow's, and pandas a small part of the time."""
_INFERRED = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), bytes: pa.binary()}
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


class _NotKnown(Exception):
    """Pyarrow must look at it."""


def _built(values: Sequence[object], data_type: pa.DataType) -> pa.Array:
    if pa.types.is_null(data_type) and all(value is None for value in values):
        return pa.nulls(len(values))
    if pa.types.is_struct(data_type) or pa.types.is_map(data_type) or pa.types.is_list(data_type):
        return _nested(values, data_type)
    buffers = [_validity(values)]
    if pa.types.is_string(data_type) or pa.types.is_binary(data_type):
        texts = pa.types.is_string(data_type)
        parts = [b"" if v is None else _exactly(v, str).encode() if texts else _exactly(v, bytes) for v in values]
        buffers += [_offsets(map(len, parts)), pa.py_buffer(b"".join(parts))]
    elif pa.types.is_boolean(data_type):
        buffers.append(_bits(value is not None and _exactly(value, bool) for value in values))
    elif pa.types.is_decimal128(data_type):
        parts = [bytes(16) if v is None else _unscaled(v, data_type).to_bytes(16, "little", signed=True) for v in values]
        buffers.append(pa.py_buffer(b"".join(parts)))
    else:
        code, convert = _machine_type(data_type)
        buffers.append(pa.py_buffer(machine_array(code, [0 if value is None else convert(value) for value in values])))
    return pa.Array.from_buffers(data_type, len(values), buffers)


def _nested(values: Sequence[object], data_type: pa.DataType) -> pa.Array:
    validity = _validity(values)
    if pa.types.is_struct(data_type):
        rows = [{} if value is None else _exactly(value, dict) for value in values]
        children = [_built([row.get(field.name) for row in rows], field.type) for field in data_type]
        return pa.Array.from_buffers(data_type, len(values), [validity], children=children)
    lists = [() if value is None else value.items() if isinstance(value, dict) else _exactly(value, list) for value in values]
    offsets = _offsets(map(len, lists))
    if pa.types.is_list(data_type):
        children = [_built([item for values_of_list in lists for item in values_of_list], data_type.value_type)]
        return pa.Array.from_buffers(data_type, len(values), [validity, offsets], children=children)
    pairs = [_exactly(pair, tuple) for values_of_list in lists for pair in values_of_list]
    if any(len(pair) != 2 or pair[0] is None for pair in pairs):
        raise _NotKnown
    keys, items = (_built([pair[i] for pair in pairs], part) for i, part in ((0, data_type.key_type), (1, data_type.item_type)))
    entries = pa.Array.from_buffers(
        pa.struct([data_type.key_field, data_type.item_field]), len(pairs), [None], children=[keys, items]
    )
    return pa.Array.from_buffers(data_type, len(values), [validity, offsets], children=[entries])


def _machine_type(data_type: pa.DataType) -> tuple[str, Callable[[Any], Any]]:
    """The letter of `array.array` for the values of a type, and how a value becomes one."""
    code = _NUMBERS.get(data_type)
    if code is not None:
        kind = float if code in "fd" else int
        return code, lambda value: _exactly(value, kind)
    if data_type == pa.date32():
        return "i", lambda value: (_exactly(value, date) - date(1970, 1, 1)).days
    if pa.types.is_timestamp(data_type) and data_type.unit == "us":
        zoned = data_type.tz is not None
        return "q", lambda value: _microseconds(value, zoned)
    raise _NotKnown


_NUMBERS = {
    pa.int8(): "b",
    pa.int16(): "h",
    pa.int32(): "i",
    pa.int64(): "q",
    pa.uint64(): "Q",
    pa.float32(): "f",
    pa.float64(): "d",
}


def _microseconds(value: object, zoned: bool) -> int:
    if type(value) is not datetime or (value.tzinfo is not None) != zoned:
        raise _NotKnown
    return (value - (_EPOCH_UTC if zoned else _EPOCH)) // timedelta(microseconds=1)


def _unscaled(value: object, data_type: pa.DataType) -> int:
    sign, digits, exponent = _exactly(value, Decimal).as_tuple()
    shift = int(exponent) + int(data_type.scale)  # raises ValueError for NaN and infinity
    if shift < 0 or len(digits) + shift > data_type.precision:
        raise _NotKnown
    number: int = int("".join(map(str, digits))) * 10**shift
    return -number if sign else number


def _exactly(value: object, kind: type) -> Any:
    """The value, where it is of this very type: pyarrow has its own rules for all others."""
    if type(value) is not kind:
        raise _NotKnown
    return value


def _validity(values: Sequence[object]) -> pa.Buffer | None:
    return _bits(value is not None for value in values) if any(value is None for value in values) else None


def _bits(flags: Iterable[bool]) -> pa.Buffer:
    """One bit a flag, the first in the lowest place."""
    text = "".join("1" if flag else "0" for flag in flags)
    return pa.py_buffer(int(text[::-1] or "0", 2).to_bytes((len(text) + 7) // 8, "little"))


def _offsets(lengths: Iterable[int]) -> pa.Buffer:
    offsets = machine_array("i", [0])
    for length in lengths:
        offsets.append(offsets[-1] + length)
    return pa.py_buffer(offsets)
