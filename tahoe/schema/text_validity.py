"""Validation of many texts at once: if all bytes are ASCII, each text is valid UTF-8."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from tahoe.base.lazy import pc

_WORTH_ONE_CHECK = 256
_ROWS_VALIDATED_AT_ONCE = 128 * 1024


def is_ascii(values: pa.Array) -> bool:
    """Return whether many texts consist of ASCII; False for other types, and for so few texts that validating each is as fast.

    All bytes are compared at once, which takes an eighth of the time of validating text by text. Bytes of null texts count as well.

    Raises `pa.ArrowInvalid`: the array's buffers are too small.
    """
    if len(values) < _WORTH_ONE_CHECK or not pa.types.is_string(values.type):
        return False
    values.validate()
    _, offsets, content = values.buffers()
    first, last = (_offset(offsets, values.offset + place) for place in (0, len(values)))
    if first >= last:
        return first == last
    # A byte of a character outside ASCII is negative as a signed number.
    least = pc.min_max(pa.Array.from_buffers(pa.int8(), last - first, [None, content], offset=first))["min"].as_py()
    return bool(least >= 0)


def validate(values: pa.Array) -> None:
    """Validate an array completely, as `values.validate(full=True)`; many values are validated on all cores.

    Raises `pa.ArrowInvalid`: offsets out of order or outside their buffer, text that is not UTF-8, and the like.
    """
    if len(values) < 2 * _ROWS_VALIDATED_AT_ONCE:
        _validate_part(values)
        return
    values.validate()
    parts = [values.slice(start, _ROWS_VALIDATED_AT_ONCE) for start in range(0, len(values), _ROWS_VALIDATED_AT_ONCE)]
    if sum(part.null_count for part in parts) != values.null_count:  # a part does not know the count of all
        values.validate(full=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_validate_part, parts))


def _validate_part(values: pa.Array) -> None:
    # Validating bytes compares the offsets alone.
    (values.view(pa.binary()) if is_ascii(values) else values).validate(full=True)


def _offset(offsets: pa.Buffer, place: int) -> int:
    return int.from_bytes(offsets.slice(4 * place, 4).to_pybytes(), sys.byteorder, signed=True)
