"""A generated partition column, and the predicates on it that follow from its base column (PROTOCOL.md, "Generated Columns"). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.expr.compute.compute import compute
from tahoe.expr.tree.common_types import same_type
from tahoe.expr.tree.expression import Expression, Reference
from tahoe.expr.tree.predicate import Column, Comparison, In, IsNull, Literal, Or, Predicate, StartsWith, all_of, any_of
from tahoe.protocol.column_values.monotonic_expressions import asks_for_days_alone, depends_on_zone, is_prefix, writes_years
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import PrimitiveType, StructField, StructType

_TIMESTAMP, _STRING = (PrimitiveType(name) for name in ("timestamp", "string"))
_ANY_ZONE = timedelta(hours=16)
_A_DAY_LEFT_OUT = timedelta(days=1)
"""If a time zone skipped a date, each of its hours is that of the next day (Samoa, 30 December 2011)."""
MOST_VALUES = 100
"""No filter is derived from a longer list of constants."""


@dataclass(frozen=True, slots=True)
class GeneratedPartition:
    """A partition column that is generated from one other column.

    Args:
        value: its expression.
        base: the column that it reads.
        grows: whether a greater base never has a lesser value.
    """

    column: StructField
    value: Expression
    base: Reference
    grows: bool

    def implied(self, leaf: Predicate) -> Predicate | None:
        """Return the predicate on the partition that a predicate over one column implies for every matching row; None for nothing."""
        match leaf:
            case Comparison(op, column, literal) if self.is_base(column, literal):
                return None if literal.value is None else self._kept(self._compared(op, literal.value))
            case In(column, literals) if self.is_base(column) and len(literals) <= MOST_VALUES:
                parts = [self.implied(Comparison("=", column, member)) for member in literals if member.value is not None]
                return None if None in parts else any_of(part for part in parts if part is not None)
            case IsNull(column) if self.is_base(column) and self._value(None) is None:
                return IsNull(self.partition)
            case StartsWith(column, prefix) if self.is_base(column) and is_prefix(self.value):
                return self._kept(StartsWith(self.partition, self._value(prefix)))
        return None

    @property
    def partition(self) -> Column:
        """The column that filters name."""
        return Column((self.column.name,))

    @property
    def writes_years(self) -> bool:
        """See `tahoe.protocol.column_values.monotonic_expressions.writes_years`."""
        return writes_years(self.value)

    @property
    def depends_on_zone(self) -> bool:
        """See `tahoe.protocol.column_values.monotonic_expressions.depends_on_zone`."""
        return depends_on_zone(self.value)

    def is_base(self, column: Column, literal: Literal | None = None) -> bool:
        """Whether the column is the base column, and the literal, if any, has its type."""
        named = [part.lower() for part in column.path] == [part.lower() for part in self.base.path]
        return named and (literal is None or same_type(literal.data_type, self.base.data_type))

    def bound(self, value: Any, direction: int) -> Any:
        """The value for a base that is as far off as any time zone can make it; None if it is unknown.

        Args:
            direction: -1 for a bound never greater than the value, 1 for one never less.
        """
        try:
            is_shown = self.value != self.base and self.depends_on_zone
            if is_shown:
                value += direction * (_ANY_ZONE if self.base.data_type == _TIMESTAMP else _A_DAY_LEFT_OUT)
            computed = self._value(value)
            if computed is not None and self.column.data_type == _TIMESTAMP:
                # Its beginning follows the writer's clock; if the log's text has no time zone, the text was written by that clock too.
                computed += direction * (2 if is_shown else 1) * _ANY_ZONE
        except OverflowError:
            return None
        return computed

    def compared(self, op: str, value: object) -> Comparison:
        """Compare the partition column with a value of its own type."""
        return Comparison(op, self.partition, Literal(value, self.column.data_type))

    def _kept(self, predicate: Predicate | None) -> Predicate | None:
        """Add the partitions whose empty text the log stores as NULL."""
        if predicate is None or self.column.data_type != _STRING:
            return predicate
        return Or((predicate, IsNull(self.partition)))

    def _compared(self, op: str, value: object) -> Predicate | None:
        if op in ("=", "<=>"):
            return self._within(value) if self.grows else self._exactly(value)
        if not self.grows:
            return None
        return self._at_most(value) if op in ("<", "<=") else self._at_least(value) if op in (">", ">=") else None

    def _exactly(self, value: Any) -> Predicate | None:
        """Return the condition that the partition is one of the base's possible values in any time zone."""
        if not self.depends_on_zone:
            exact = self._value(value)
            return None if exact is None else self.compared("=", exact)
        if not asks_for_days_alone(self.value):
            return None
        try:  # the three are so close that no day falls between two of them
            values = [self._value(value + far * _ANY_ZONE) for far in (-1, 0, 1)]
        except OverflowError:
            return None
        literals = [Literal(partition_value, self.column.data_type) for partition_value in dict.fromkeys(values)]
        return None if None in values else In(self.partition, tuple(literals))

    def _within(self, value: object) -> Predicate | None:
        bounds = [self._at_least(value), self._at_most(value)]
        return None if None in bounds else all_of(part for part in bounds if part is not None)

    def _at_least(self, value: object) -> Predicate | None:
        least = self.bound(value, -1)
        if least is None:
            return None
        compared = self.compared(">=", least)
        return Or((compared, self.compared("<", "0"))) if self.writes_years else compared

    def _at_most(self, value: object) -> Predicate | None:
        greatest = self.bound(value, 1)
        return None if greatest is None else self.compared("<=", greatest)

    def _value(self, base: object) -> Any:
        """Return the column's value for a value of its base; None for NULL, and if it cannot be computed."""
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
