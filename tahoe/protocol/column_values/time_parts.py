"""Partition columns that are one date or time together: year, month, day and hour of one base column. Pure.

    year(at), month(at), at >= 12:00 of 5 May 2020 ─► year > 2020 OR (year = 2020 AND month >= 5)

A month alone does not determine an order, but after a year it does. The first column of such a chain grows with the base; each
further column is a field within the unit of those before it, so that together they grow as well. Day and hour of a date column follow too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tahoe.expr.tree.expression import Call, Cast, Expression, Literal, Reference
from tahoe.expr.tree.predicate import And, Comparison, In, Or, Predicate, any_of
from tahoe.protocol.column_values.generated_partition import MOST_VALUES, GeneratedPartition
from tahoe.protocol.column_values.monotonic_expressions import pattern_fields
from tahoe.schema.types import PrimitiveType

_DATE = PrimitiveType("date")
_WITHIN = {
    "quarter": ("year",),
    "month": ("year", "quarter"),
    "day": ("month",),
    "dayofyear": ("year", "quarter", "month"),
    "hour": ("day", "dayofyear"),
    "minute": ("hour",),
    "second": ("minute",),
}
"""Maps a field to the units within which it grows with time, the greatest first."""
_OF_DAYS = ("quarter", "month", "day", "dayofyear")
_FIELDS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}


@dataclass(frozen=True, slots=True)
class TimeParts:
    """Partition columns that grow together with their base.

    Args:
        parts: the first grows by itself, each further one while those before it are equal.
    """

    parts: tuple[GeneratedPartition, ...]

    def implied(self, leaf: Predicate) -> Predicate | None:
        """Return the predicate on the partitions that a predicate over one column implies for every matching row; None for nothing."""
        match leaf:
            case Comparison(op, column, literal) if self.parts[0].is_base(column, literal) and literal.value is not None:
                return self._compared(op, literal.value)
            case In(column, literals) if len(literals) <= MOST_VALUES:
                parts = [self.implied(Comparison("=", column, member)) for member in literals if member.value is not None]
                return None if None in parts else any_of(part for part in parts if part is not None)
        return None

    def _compared(self, op: str, value: object) -> Predicate | None:
        least = self._bounded(">", value) if op in ("=", "<=>", ">", ">=") else None
        greatest = self._bounded("<", value) if op in ("=", "<=>", "<", "<=") else None
        if op in ("=", "<=>"):
            return None if least is None or greatest is None else And((least, greatest))
        return least or greatest

    def _bounded(self, sign: str, value: object) -> Predicate | None:
        bounds = [part.bound(value, -1 if sign == ">" else 1) for part in self.parts]
        if None in bounds:
            return None
        predicate: Predicate = self.parts[-1].compared(f"{sign}=", bounds[-1])
        for part, bound in reversed(list(zip(self.parts[:-1], bounds, strict=False))):
            predicate = Or((part.compared(sign, bound), And((part.compared("=", bound), predicate))))
        first = self.parts[0]
        return Or((predicate, first.compared("<", "0"))) if sign == ">" and first.writes_years else predicate


def time_parts(partitions: Iterable[GeneratedPartition]) -> tuple[TimeParts, ...]:
    """Return the chains among generated partition columns, each of at least two columns."""
    generated = tuple(partitions)
    chains = (_chain(year, generated) for year in generated if year.grows)
    return tuple(TimeParts(chain) for chain in chains if len(chain) > 1)


def _chain(first: GeneratedPartition, partitions: Sequence[GeneratedPartition]) -> tuple[GeneratedPartition, ...]:
    chain, unit = [first], _finest(first.value)
    for field, within in _WITHIN.items():
        # If one value of a row depends on a time zone and another does not, they may belong to different days.
        fitting = (
            (candidate, finest)
            for candidate in partitions
            if (finest := _field(candidate.value, field)) is not None
            and candidate.base.path == first.base.path
            and candidate.depends_on_zone == first.depends_on_zone
        )
        if unit in within and (fitting_part := next(fitting, None)) is not None:
            chain.append(fitting_part[0])
            unit = fitting_part[1]
    return tuple(chain)


def _finest(value: Expression) -> str | None:
    """The smallest unit of time in a growing value; None for one that cannot be compared with equality, or is no time."""
    match value:
        case Reference(data_type=data_type) | Cast(child=Reference(), data_type=data_type) if data_type == _DATE:
            return "day"
        case Call(function="year", arguments=(day,)) if _is_day(day):
            return "year"
        case Call(function="trunc", arguments=(day, Literal(value=str(unit)))) if _is_day(day):
            return unit
        case Call(function="date_format", arguments=(time, Literal(value=str(pattern)))) if _is_time(time):
            return _FIELDS[pattern_fields(pattern)[-1]]
    return None


def _field(value: Expression, field: str) -> str | None:
    """The smallest unit of a value that begins with a field of time, as `month` or the text of a month and a day does."""
    match value:
        case Call(function=function, arguments=(given,)) if function == field and (_is_time(given) or _is_day(given)):
            return field if field in _OF_DAYS or _is_time(given) else None
        case Call(function="date_format", arguments=(time, Literal(value=str(pattern)))) if _is_time(time):
            fields = pattern_fields(pattern)
            return _FIELDS[fields[-1]] if fields and _FIELDS[fields[0]] == field else None
    return None


def _is_day(value: Expression) -> bool:
    """Whether the expression is the column itself, or its day."""
    return isinstance(value, Reference) or (
        isinstance(value, Cast) and isinstance(value.child, Reference) and value.data_type == _DATE
    )


def _is_time(value: Expression) -> bool:
    """Whether the expression is the column itself, or the midnight of a date."""
    match value:
        case Cast(child=Reference(data_type=data_type)):
            return data_type == _DATE
    return isinstance(value, Reference)
