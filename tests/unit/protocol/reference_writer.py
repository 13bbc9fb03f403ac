"""Statistics as delta-spark writes them, in plain Python: the input of data skipping in tables of Spark."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tahoe.schema.types import DataType, PrimitiveType, StructType
from tests.unit.expr import sql_model

_BOUNDED = {"string", "long", "integer", "short", "byte", "float", "double", "date", "timestamp", "timestamp_ntz"}


def statistics(rows: list[dict[str, Any]], schema: StructType) -> str:
    """The JSON text: both timestamp bounds truncated down, NaN and infinities as texts, floats with the digits of a float."""
    minimum: dict[str, Any] = {}
    maximum: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for path, data_type in _leaves(schema, ()):
        values = [_at(row, path) for row in rows]
        present = [value for value in values if value is not None]
        _put(nulls, path, len(values) - len(present))
        if present and (not isinstance(data_type, PrimitiveType) or data_type.name in _BOUNDED):
            by_order = functools.cmp_to_key(
                lambda a, b: (sql_model.order(a) > sql_model.order(b)) - (sql_model.order(a) < sql_model.order(b))
            )
            _put(minimum, path, _written(min(present, key=by_order), data_type, greatest=False))
            greatest = _written(max(present, key=by_order), data_type, greatest=True)
            if greatest is not None:
                _put(maximum, path, greatest)
    value = {"numRecords": len(rows), "minValues": minimum, "maxValues": maximum, "nullCount": nulls}
    # Decimals are numbers in JSON, with all their digits.
    return (
        json.dumps(value, default=lambda number: f"\x00{number:f}\x00", ensure_ascii=False)
        .replace('"\\u0000', "")
        .replace('\\u0000"', "")
    )


def _leaves(schema: StructType, prefix: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], DataType]]:
    for column in schema:
        if isinstance(column.data_type, StructType):
            yield from _leaves(column.data_type, (*prefix, column.name))
        else:
            yield (*prefix, column.name), column.data_type


def _at(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _written(value: Any, data_type: DataType, *, greatest: bool) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return float(f"{value:.8g}") if data_type == PrimitiveType("float") and abs(value) < 1e38 else value
    if isinstance(value, datetime):
        down = value - timedelta(microseconds=value.microsecond % 1000)
        return down.replace(tzinfo=None).isoformat(timespec="milliseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        return _greatest_text(value) if greatest else value[:32]
    return value if isinstance(value, int | Decimal) else None


def _greatest_text(text: str) -> str | None:
    """In UTF-16 units, as Java counts; half a pair is never cut off."""
    units = text.encode("utf-16-le")
    if len(units) <= 64:
        return text
    end = 66 if 0xD8 <= units[63] <= 0xDB else 64
    while end <= 128:
        if end >= len(units):
            return text
        if units[end : end + 4] == "\U0010ffff".encode("utf-16-le"):
            end += 4
            continue
        following = int.from_bytes(units[end : end + 2], "little")
        return units[:end].decode("utf-16-le") + ("\x7f" if following < 0x7F else "\U0010ffff")
    return None
