"""A checksum of rows that does not depend on the engine, the order of rows or columns, or the width of types."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["checksum"]

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


def checksum(rows: pa.Table) -> str:
    """The sum of the rows' hashes, as 16 hexadecimal digits.

    Each leaf column (structs are taken apart) is brought to one canonical form and hashed value by value together with its name;
    the hashes of a row are added, mixed, and added over the rows, all modulo 2^64. Equal rows thus count as often as they occur.
    """
    total = np.zeros(rows.num_rows, dtype=np.uint64)
    for name, column in _leaves(rows):
        total += _mixed(_hashes(column) ^ _hash_of(name.encode()))
    return f"{int(_mixed(total).sum(dtype=np.uint64)):016x}"


def _leaves(rows: pa.Table) -> list[tuple[str, pa.Array]]:
    while any(pa.types.is_struct(field.type) for field in rows.schema):
        rows = rows.flatten()
    return [(name, rows.column(name).combine_chunks()) for name in rows.column_names]


def _canonical(column: pa.Array) -> pa.Array:
    """Whole numbers as int64, the others as float64, times as microseconds since the epoch, texts and the rest as text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _canonical(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    return column.cast(pa.large_string())


def _hashes(column: pa.Array) -> Hashes:
    values = _canonical(column)
    if pa.types.is_large_string(values.type):
        encoded = values.dictionary_encode()
        known = np.array([_hash_of(text.encode()) for text in encoded.dictionary.to_pylist()] or [np.uint64(0)], dtype=np.uint64)
        hashes = known[encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    else:
        # -0.0 is 0.0, and there is one NaN.
        plain = values.fill_null(0).to_numpy(zero_copy_only=False)
        if plain.dtype == np.float64:
            plain = np.where(np.isnan(plain), np.nan, plain + 0.0)
        hashes = _mixed(np.ascontiguousarray(plain).view(np.uint64))
    return np.where(pc.is_null(values).to_numpy(zero_copy_only=False), np.uint64(0x6E756C6C), hashes)


def _hash_of(data: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big"))


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every bit of the input moves half of the output's."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
