"""Selective predicates over the rows of a table: as a filter in Python, as an expression of PyIceberg, and as SQL of several engines.

The result of an engine for a predicate is compared with its own full scan, filtered here: files that statistics should not have skipped
show as missing rows.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as iceberg

__all__ = ["DIALECTS", "Dialect", "Predicate", "predicates"]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, ">": operator.gt}
_ICEBERG = {
    "=": iceberg.EqualTo,
    "<": iceberg.LessThan,
    ">=": iceberg.GreaterThanOrEqual,
    ">": iceberg.GreaterThan,
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How an engine writes names and literals.

    Args:
        quote: around names.
        timestamp, local, day: templates of instants, of times without a zone and of days; the value is ISO's text without a zone.
        nan_is_greatest: whether NaN is above all numbers, or compares with none.
        earliest: the first day that literals of the engine can name.
    """

    quote: str
    timestamp: str
    local: str
    nan_is_greatest: bool
    day: str = "DATE '{}'"
    earliest: date = date.min


DIALECTS = {
    "pyiceberg": Dialect('"', "", "", False),
    "duckdb": Dialect('"', "TIMESTAMPTZ '{}+00'", "TIMESTAMP '{}'", True),
    "spark": Dialect("`", "TIMESTAMP '{}Z'", "TIMESTAMP_NTZ '{}'", True),
    "sail": Dialect("`", "TIMESTAMP '{}Z'", "TIMESTAMP_NTZ '{}'", True),
    "datafusion": Dialect('"', "arrow_cast('{}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')", "TIMESTAMP '{}'", True),
    "clickhouse": Dialect(
        '"', "toDateTime64('{}', 6, 'UTC')", "toDateTime64('{}', 6, 'UTC')", False, "toDate32('{}')", date(1900, 1, 1)
    ),
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """``path operator value``; the value is None for ``is null`` and ``is not null``."""

    path: tuple[str, ...]
    operator: str
    value: Any
    data_type: pa.DataType

    def filtered(self, rows: pa.Table, dialect: Dialect) -> pa.Table:
        return rows.filter(pa.array([self._holds(row, dialect) for row in rows.to_pylist()], pa.bool_()))

    def iceberg(self) -> Any:
        name = ".".join(self.path)
        if self.value is None:
            return iceberg.IsNull(name) if self.operator == "is null" else iceberg.NotNull(name)
        value = self.value.isoformat() if isinstance(self.value, date) else self.value
        return _ICEBERG[self.operator](name, value)

    def is_for(self, dialect: Dialect) -> bool:
        return not isinstance(self.value, date) or dialect.earliest.isoformat() <= self.value.isoformat()[:10]

    def sql(self, dialect: Dialect) -> str:
        column = ".".join(f"{dialect.quote}{name}{dialect.quote}" for name in self.path)
        return f"{column} {self.operator}" if self.value is None else f"{column} {self.operator} {self._literal(dialect)}"

    def _holds(self, row: dict[str, Any], dialect: Dialect) -> bool:
        value: Any = row
        for name in self.path:
            value = None if value is None else value[name]
        if self.value is None:
            return (value is None) == (self.operator == "is null")
        if value is None:
            return False
        if isinstance(value, float) and math.isnan(value):
            return dialect.nan_is_greatest and self.operator in (">", ">=")
        return _COMPARE[self.operator](value, self.value)

    def _literal(self, dialect: Dialect) -> str:
        value = self.value
        if isinstance(value, datetime):
            text = value.replace(tzinfo=None).isoformat(" ", "microseconds")
            return (dialect.timestamp if self.data_type.tz else dialect.local).format(text)
        if isinstance(value, date):
            return dialect.day.format(value.isoformat())
        if isinstance(value, bool | int):
            return str(value)
        if isinstance(value, Decimal):
            return f"CAST('{value}' AS DECIMAL({self.data_type.precision}, {self.data_type.scale}))"
        if isinstance(value, float):
            return f"CAST('{value}' AS DOUBLE)"
        return "'" + value.replace("'", "''") + "'"


def predicates(rows: pa.Table, chance: random.Random, count: int) -> list[Predicate]:
    """Some predicates whose values are among the rows, none with NaN or zeros of floats, which engines compare differently."""
    actual = []
    leaves = list(_leaves(rows.schema, ()))
    for path, data_type in chance.sample(leaves, min(count, len(leaves))):
        values = [value for value in (_value(row, path) for row in rows.to_pylist()) if _is_comparable(value)]
        kind = chance.choice(["is null", "is not null"] if not values or chance.random() < 0.15 else list(_COMPARE))
        value = None if kind not in _COMPARE else chance.choice(values)
        actual.append(Predicate(path, kind, value, data_type))
    return actual


def _leaves(fields: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaves(list(field.type), (*path, field.name))
        elif not pa.types.is_nested(field.type) and not pa.types.is_binary(field.type) and not pa.types.is_float32(field.type):
            yield (*path, field.name), field.type


def _value(row: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        row = None if row is None else row[name]
    return row


def _is_comparable(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and (math.isnan(value) or value == 0.0))
