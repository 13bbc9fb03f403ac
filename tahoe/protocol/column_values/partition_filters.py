"""Filters on a base column, as filters on the partition columns that are generated from it (PROTOCOL.md, "Generated Columns"). Pure.

    day = CAST(at AS DATE), at >= 12:00 of the 5th ─► day >= the 4th          k = length(s), s = 'abc' ─► k = 3

What is implied only ever leaves out files in which no row can be meant:

- An expression that grows with its column turns every comparison into one; of any other, equality alone says something.
- A timestamp was shown in the time zone of whoever wrote the row, which nobody noted. Wherever that was, its wall clock was less than
  `_ANY_ZONE` away from UTC's, so bounds are that much wider; what else depends on a time zone implies nothing.
- The log keeps the empty text as NULL, so partitions of texts that are NULL stay.
- Text of a date grows with it from year 0 to 9999 alone; what another year begins with is less than a digit, and stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tahoe.exceptions import TahoeError
from tahoe.expr.compute.compute import compute
from tahoe.expr.parse.parse_expression import parse_expression
from tahoe.expr.tree.common_types import same_type
from tahoe.expr.tree.expression import Call, Cast, Expression, Reference, references_of, walk
from tahoe.expr.tree.predicate import And, Column, Comparison, In, IsNull, Literal, Or, Predicate, all_of, any_of, normalise
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import DataType, PrimitiveType, StructField, StructType

__all__ = ["GeneratedPartition", "generated_partitions", "with_implied"]

_GENERATION = "delta.generationExpression"
_TIMESTAMP, _STRING, _DATE = (PrimitiveType(name) for name in ("timestamp", "string", "date"))
_NTZ = PrimitiveType("timestamp_ntz")
_TIMES = (_TIMESTAMP, _NTZ, _DATE)
_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))
_WHOLE = [PrimitiveType(name) for name in ("byte", "short", "integer", "long")]
_ANY_ZONE = timedelta(hours=16)
_A_DAY_LEFT_OUT = timedelta(days=1)
"""Of a date that a time zone never had, each hour is that of the next day (Samoa, 30 December 2011)."""
_FIELDS_OF_TIME = ("yyyy", "MM", "dd", "HH", "mm", "ss")
_MOST_VALUES = 100


@dataclass(frozen=True, slots=True)
class GeneratedPartition:
    """A partition column that is made of one other column.

    Args:
        value: its expression.
        base: what it reads.
        grows: whether a greater base never has a lesser value.
    """

    column: StructField
    value: Expression
    base: Reference
    grows: bool

    def implied(self, leaf: Predicate) -> Predicate | None:
        """What holds for the partition of every row for which a predicate over one column is true; None for nothing."""
        match leaf:
            case Comparison(op, column, literal) if self._is_base(column) and same_type(literal.data_type, self.base.data_type):
                return None if literal.value is None else self._kept(self._compared(op, literal.value))
            case In(column, literals) if self._is_base(column) and len(literals) <= _MOST_VALUES:
                parts = [self.implied(Comparison("=", column, one)) for one in literals if one.value is not None]
                return None if None in parts else any_of(part for part in parts if part is not None)
            case IsNull(column) if self._is_base(column) and self._value(None) is None:
                return IsNull(self._partition)
        return None

    @property
    def _partition(self) -> Column:
        return Column((self.column.name,))

    def _is_base(self, column: Column) -> bool:
        return [part.lower() for part in column.path] == [part.lower() for part in self.base.path]

    def _kept(self, found: Predicate | None) -> Predicate | None:
        """With the partitions whose text the log keeps as NULL."""
        if found is None or self.column.data_type != _STRING:
            return found
        return Or((found, IsNull(self._partition)))

    def _compared(self, op: str, value: Any) -> Predicate | None:
        if not self.grows:
            exact = None if op not in ("=", "<=>") or self._depends_on_zone() else self._value(value)
            return None if exact is None else self._is("=", exact)
        if op in ("=", "<=>"):
            found = [self._at_least(value), self._at_most(value)]
            return None if None in found else all_of(part for part in found if part is not None)
        return self._at_most(value) if op in ("<", "<=") else self._at_least(value) if op in (">", ">=") else None

    def _at_least(self, value: Any) -> Predicate | None:
        least = self._bound(value, -1)
        if least is None:
            return None
        found = self._is(">=", least)
        return Or((found, self._is("<", "0"))) if self._writes_years() else found

    def _at_most(self, value: Any) -> Predicate | None:
        greatest = self._bound(value, 1)
        return None if greatest is None else self._is("<=", greatest)

    def _bound(self, value: Any, direction: int) -> Any:
        """The value for a base that is as far off as any time zone can make it; None where it cannot be told."""
        try:
            shown = self.value != self.base and self._depends_on_zone()
            if shown:
                value += direction * (_ANY_ZONE if self.base.data_type == _TIMESTAMP else _A_DAY_LEFT_OUT)
            found = self._value(value)
            if shown and found is not None and self.column.data_type == _TIMESTAMP:
                found += direction * _ANY_ZONE
        except OverflowError:
            return None
        return found

    def _value(self, base: Any) -> Any:
        """The column's value for one of its base; None for NULL, and where it cannot be computed."""
        nested: Any = base
        for name in reversed(self.base.path[1:]):
            nested = {name: nested}
        data_type = self.base.data_type
        for name in reversed(self.base.path[1:]):
            data_type = StructType((StructField(name, data_type),))
        try:
            row = pa.table({self.base.path[0]: pa.array([nested], to_arrow_type(data_type))})
            return compute(self.value, row)[0].as_py()
        except (TahoeError, pa.ArrowException, ValueError, OverflowError):
            return None

    def _is(self, op: str, value: Any) -> Comparison:
        return Comparison(op, self._partition, Literal(value, self.column.data_type))

    def _depends_on_zone(self) -> bool:
        return any(node.data_type == _TIMESTAMP for node in walk(self.value))

    def _writes_years(self) -> bool:
        return any(isinstance(node, Call) and node.function == "date_format" for node in walk(self.value))


def generated_partitions(schema: StructType, partition_columns: Iterable[str]) -> tuple[GeneratedPartition, ...]:
    """The partition columns of a table about which a filter on another column says something.

    An expression that is not understood says nothing: whoever reads needs it not.
    """
    base = StructType(tuple(column for column in schema if _GENERATION not in column.metadata))
    columns = (schema.field(name) for name in partition_columns)
    found = (_understood(column, base) for column in columns if _GENERATION in column.metadata)
    return tuple(one for one in found if one is not None)


def with_implied(predicate: Predicate, partitions: Iterable[GeneratedPartition]) -> Predicate:
    """The predicate, and what it implies for the partitions of the rows for which it is true."""
    normal = normalise(predicate)
    found = [implied for one in partitions if (implied := _implied(normal, one)) is not None]
    return all_of((predicate, *found)) if found else predicate


def _implied(predicate: Predicate, partition: GeneratedPartition) -> Predicate | None:
    match predicate:
        case And(parts):
            known = [found for part in parts if (found := _implied(part, partition)) is not None]
            return all_of(known) if known else None
        case Or(parts):
            each = [_implied(part, partition) for part in parts]
            return None if not each or None in each else any_of(found for found in each if found is not None)
    return partition.implied(predicate)


def _understood(column: StructField, schema: StructType) -> GeneratedPartition | None:
    try:
        value = parse_expression(str(column.metadata[_GENERATION]), schema)
    except TahoeError:
        return None
    read = references_of(value)
    if len(read) != 1 or not read[0].by_bytes or read[0].data_type in _FLOATS or not same_type(value.data_type, column.data_type):
        return None  # 0.0 and -0.0 are equal and not one value, and what has another type was cast on its way in
    return GeneratedPartition(column, value, read[0], _grows(value))


def _grows(value: Expression) -> bool:
    match value:
        case Reference():
            return value.data_type in (*_TIMES, *_WHOLE, _STRING)
        case Cast(child=child, data_type=target, lenient=False):
            return _grows(child) and _cast_grows(child.data_type, target)
        case Call(function="year", arguments=(child,)):
            return _grows(child)
        case Call(function="trunc", arguments=(child, Literal())) | Call(function="date_trunc", arguments=(Literal(), child)):
            return _grows(child)
        case Call(function="date_format", arguments=(child, Literal(value=str(pattern)))):
            return _grows(child) and _in_order(pattern)
        case Call(function="substring", arguments=(child, Literal(value=0 | 1), Literal(value=int()))):
            return _grows(child)
        case Call(function="left", arguments=(child, Literal(value=int()))):
            return _grows(child)
    return False


def _cast_grows(source: DataType, target: DataType) -> bool:
    if source in _WHOLE and target in _WHOLE:
        return _WHOLE.index(PrimitiveType(str(source))) <= _WHOLE.index(PrimitiveType(str(target)))
    # A wall clock that a time zone left out is a later one there, less than a day: what is shown again grows but for that.
    return source == target or (source in _TIMES and target == _DATE) or (source in (_DATE, _NTZ) and target in _TIMES)


def _in_order(pattern: str) -> bool:
    """Whether a pattern writes the year, the month and so on, each of one width, in this order and leaves none out before another."""
    rest = pattern
    for number, field in enumerate(_fields(pattern)):
        if number >= len(_FIELDS_OF_TIME) or field != _FIELDS_OF_TIME[number]:
            return False
        rest = rest.replace(field, "", 1)
    return pattern.startswith("yyyy") and not any(letter.isalpha() or letter == "'" for letter in rest)


def _fields(pattern: str) -> Iterator[str]:
    """The fields of a pattern, from left to right."""
    found = sorted((pattern.find(field), field) for field in _FIELDS_OF_TIME if field in pattern)
    return (field for _, field in found)
