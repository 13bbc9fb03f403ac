"""The least and greatest value of a column in a file, as in the log's statistics (PROTOCOL.md, "Per-file Statistics").

Bounds must be valid for every reader, so if the specification leaves a choice the wider bound is written:

- Texts are cut to a prefix; the least is cut, the greatest is cut and made greater than all texts with that prefix.
- Timestamps have milliseconds. The specification truncates both bounds down, and the reference's reader adds a millisecond to the
  greatest. Here the greatest is rounded *up*: right for readers that add a millisecond and for those that do not.
- NaN is Spark's greatest number, and JSON has none: a column with NaN has no greatest value here, which readers take as unknown.
  Infinity has no JSON either and is left out too.
- 0.0 and -0.0 are equal to SQL and different to some readers: the least zero is -0.0 where there may be one, the greatest is 0.0.
- 32-bit floats are written with all digits of their 64-bit value, so that the bound stays right when the column becomes a double.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField

DEFAULT_PREFIX_LENGTH = 32

NAN_COUNTED = "tahoe.nanCounted"
"""The tag of a file whose greatest floats count NaN (`tahoe.protocol.nan_bounds`). Its value is ``true``."""

Leaf: TypeAlias = tuple[StructField, ...]
"""A leaf column as the chain of fields from the top-level column to it."""


def has_bounds(data_type: DataType) -> bool:
    """Whether columns of the type have a least and greatest value in the statistics, as in the reference."""
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _BOUNDED)


def bound_of(value: Any, data_type: DataType, *, greatest: bool, prefix_length: int = DEFAULT_PREFIX_LENGTH) -> Any:
    """Return a least or greatest value as a JSON value, widened if JSON or the specification cannot represent it; None for unknown.

    Args:
        value: a Python value of the type; ``timestamp`` and ``timestamp_ntz`` as microseconds since the epoch.
    """
    if value is None:
        return None
    match data_type:
        case PrimitiveType("string"):
            return truncate_max(value, prefix_length) if greatest else truncate_min(value, prefix_length)
        case PrimitiveType("float" | "double"):
            if not math.isfinite(value):
                return None
            return value + 0.0 if greatest else value  # adding 0.0 turns -0.0 into 0.0
        case PrimitiveType("date"):
            return value.isoformat() if isinstance(value, date) else None
        case PrimitiveType("timestamp" | "timestamp_ntz" as name):
            return _moment_text(-(-value // 1000) if greatest else value // 1000, "Z" if name == "timestamp" else "")
    return value


def truncate_min(text: str, length: int) -> str | None:
    """Return the first characters of a least text: not greater than any text of the file."""
    return text[:length] if length > 0 else None


def truncate_max(text: str, length: int) -> str | None:
    """Return a text of about `length` UTF-16 units that is not less than the given one; None if there is no short one.

    The prefix is followed by the greatest character, U+7F if that is enough, else U+10FFFF. Characters that are U+10FFFF
    themselves are skipped first. Units and order of trial are the reference's, so that both write the same bounds.
    """
    if length <= 0:
        return None
    units, end = 0, 0
    while end < len(text) and units < length:
        units += 1 if text[end] < "\U00010000" else 2
        end += 1
    while units <= 2 * length:
        if end >= len(text):
            return text
        if text[end] != "\U0010ffff":
            return text[:end] + ("\x7f" if text[end] < "\x7f" else "\U0010ffff")
        units, end = units + 2, end + 1
    return None


_BOUNDED = frozenset({"string", "long", "integer", "short", "byte", "float", "double", "date", "timestamp", "timestamp_ntz"})
_EPOCH = datetime(1970, 1, 1)


def _moment_text(milliseconds: int, suffix: str) -> str | None:
    try:
        return (_EPOCH + timedelta(milliseconds=milliseconds)).isoformat(timespec="milliseconds") + suffix
    except OverflowError:
        return None
