"""A column's default as Iceberg's ``write-default`` (format/spec.md, "Default values" and "JSON single-value serialization").

Delta has no equivalent of ``initial-default``, which fills in rows from before a column: these rows have NULL.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.expr.compute.compute import compute
from tahoe.protocol.column_values.default_values import CURRENT_DEFAULT, constant_default
from tahoe.schema.types import StructField

__all__ = ["write_default"]

_PLAIN = ("boolean", "byte", "short", "integer", "long", "string")


def write_default(column: StructField) -> Any:
    """Return the JSON value; None for no default, NULL, the statement's time, a default that depends on a time zone or is not understood,
    and a number that JSON cannot represent. Only Tahoe adds rows on the Iceberg side, so nothing is lost by omitting it."""
    if CURRENT_DEFAULT not in column.metadata:
        return None
    try:
        default = constant_default(column, "")
        value = None if default is None else compute(default.value, pa.table({"row": pa.nulls(1)}))[0].as_py()
    except TahoeError:
        return None
    return None if value is None else _json(value, str(column.data_type))


def _json(value: Any, kind: str) -> Any:
    match value:
        case bytes():
            return value.hex()
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return value if kind in _PLAIN else None
