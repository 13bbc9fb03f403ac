"""A comparison of a column with a constant of another type, as one in the column's own type that has Spark's answer.

Spark widens both sides and compares there. Each column type is a finite, ordered set of values whose widening keeps the order, so
the same rows are found by looking up where the constant falls among the column's values: `int = 5.5` is never true,
`int > 5.5` is `int > 5`, `byte < 1000` is true for every value that is not NULL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tahoe.base.clock import zone_of
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.constant_cast import boolean_of, date_of, number_of, timestamp_of, whole_number_of
from tahoe.expr.tree.predicate import (
    FALSE,
    UNKNOWN,
    Column,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Predicate,
    all_of,
    any_of,
    normalise,
)
from tahoe.expr.tree.predicate import Not as NotPredicate
from tahoe.schema.types import DataType, DecimalType, PrimitiveType


def compare(op: str, column: Column, data_type: DataType, literal: Literal, time_zone: str = "UTC") -> Predicate:
    """`column op literal` with the literal in the column's type, whatever type it came in.

    Args:
        data_type: of the column.
        literal: of any type; Spark's implicit widening decides (numbers, strings read as numbers, dates or timestamps).
        time_zone: the session's, for dates against timestamps and texts without a zone.

    Raises:
        InvalidRequest: the two types have no common one.
    """
    if literal.value is None:
        return IsNull(column) if op == "<=>" else UNKNOWN
    if data_type == PrimitiveType("void"):
        return FALSE if op == "<=>" else UNKNOWN
    value, domain = _aligned(column, data_type, literal, time_zone)
    if domain is None:
        return Comparison(op, column, Literal(value, data_type))
    return _placed(op, column, data_type, value, domain)


def is_in(column: Column, data_type: DataType, literals: tuple[Literal, ...], time_zone: str = "UTC") -> Predicate:
    """`column IN (literals)`, each literal aligned as `compare` does."""
    exact: list[Literal] = []
    branches: list[Predicate] = []
    for literal in literals:
        if literal.value is None:
            exact.append(Literal(None, data_type))
            continue
        match compare("=", column, data_type, literal, time_zone):
            case Comparison(_, _, aligned):
                exact.append(aligned)
            case other:
                branches.append(other)
    parts: list[Predicate] = [In(column, tuple(dict.fromkeys(exact)))] if exact else []
    return any_of([*parts, *dict.fromkeys(branches)])


@lru_cache(maxsize=64)
@dataclass(frozen=True, slots=True)
class _Domain:
    """The values of a column's type in order: `value(k)` is the k-th value, `image(k)` the value that it is compared as."""

    first: int
    last: int
    image: Callable[[int], Any]
    value: Callable[[int], Any]

    def count_below(self, constant: object, *, or_equal: bool) -> int:
        """The index of the first value that is not below the constant (or not equal to it either)."""
        low, high = self.first, self.last + 1
        while low < high:
            middle = (low + high) // 2
            image = self.image(middle)
            if image < constant or (or_equal and image == constant):
                low = middle + 1
            else:
                high = middle
        return low


_WHOLE = {"byte": 7, "short": 15, "integer": 31, "long": 63}
_FLOATING = ("float", "double")
_EPOCH = date(1970, 1, 1)


def _placed(op: str, column: Column, data_type: DataType, constant: object, domain: _Domain) -> Predicate:
    start = domain.count_below(constant, or_equal=False)  # values from here on are >= the constant
    end = domain.count_below(constant, or_equal=True)  # values from here on are > the constant

    def bound(operator: str, index: int) -> Predicate:
        return Comparison(operator, column, Literal(domain.value(index), data_type))

    def below(index: int) -> Predicate:
        if index <= domain.first:
            return _never(column)
        return _always(column) if index > domain.last else bound("<", index)

    def from_on(index: int) -> Predicate:
        if index <= domain.first:
            return _always(column)
        return _never(column) if index > domain.last else bound(">=", index)

    match op:
        case "<":
            return below(start)
        case "<=":
            return below(end)
        case ">":
            return from_on(end)
        case ">=":
            return from_on(start)
    if start == end:
        equal = _never(column)
    elif end - start == 1:
        return bound(op, start)
    else:
        equal = all_of((from_on(start), below(end)))
    if op == "=":
        return equal
    if op == "!=":
        return normalise(NotPredicate(equal))
    return FALSE if start == end else all_of((IsNotNull(column), equal))


def _never(column: Column) -> Predicate:
    """FALSE, but NULL where the column is."""
    return all_of((IsNull(column), UNKNOWN))


def _always(column: Column) -> Predicate:
    """TRUE, but NULL where the column is."""
    return any_of((IsNotNull(column), UNKNOWN))


def _aligned(column: Column, data_type: DataType, literal: Literal, time_zone: str) -> tuple[Any, _Domain | None]:
    """The constant in the column's own type and None, or the constant to look up in the column's domain."""
    match data_type:
        case PrimitiveType(name) if name in _WHOLE:
            return _for_whole(name, column, data_type, literal)
        case DecimalType():
            return _for_decimal(data_type, column, literal)
        case PrimitiveType(name) if name in _FLOATING:
            return _for_floating(name, column, data_type, literal)
        case PrimitiveType("date" | "timestamp" | "timestamp_ntz"):
            return _for_time(column, data_type, literal, time_zone)
        case PrimitiveType("string") if isinstance(literal.value, str):
            return literal.value, None
        case PrimitiveType("binary") if isinstance(literal.value, bytes | str):
            return literal.value.encode() if isinstance(literal.value, str) else literal.value, None
        case PrimitiveType("boolean") if isinstance(literal.value, bool | str):
            return boolean_of(literal.value) if isinstance(literal.value, str) else literal.value, None
    raise _no_common_type(column, data_type, literal)


def _for_whole(name: str, column: Column, data_type: DataType, literal: Literal) -> tuple[Any, _Domain | None]:
    value = whole_number_of(literal.value) if isinstance(literal.value, str) else literal.value
    limit = 1 << _WHOLE[name]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _no_common_type(column, data_type, literal)
    if isinstance(value, int) and -limit <= value < limit:
        return value, None
    if isinstance(value, float):
        if value != value:  # NaN is greater than every number
            value = float("inf")
            return value, _Domain(-limit, limit - 1, float, int)
        return value, _Domain(-limit, limit - 1, float, int)
    return Fraction(value), _Domain(-limit, limit - 1, lambda index: index, int)


def _number(column: Column, data_type: DataType, literal: Literal) -> int | float | Decimal:
    # Spark reads a string as a double next to a decimal.
    value = number_of(literal.value) if isinstance(literal.value, str) else literal.value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise _no_common_type(column, data_type, literal)
    return value


def _for_decimal(data_type: DecimalType, column: Column, literal: Literal) -> tuple[Any, _Domain | None]:
    value = _number(column, data_type, literal)
    unit = 10**data_type.scale
    limit = 10**data_type.precision

    def decimal_at(index: int) -> Decimal:
        return Decimal((int(index < 0), tuple(map(int, str(abs(index)))), -data_type.scale))

    if isinstance(value, float):
        constant = float("inf") if value != value else value
        return constant, _Domain(1 - limit, limit - 1, lambda index: index / unit, decimal_at)
    exact = Fraction(value) * unit
    if exact.denominator == 1 and abs(exact.numerator) < limit:
        return decimal_at(exact.numerator), None
    return exact, _Domain(1 - limit, limit - 1, lambda index: index, decimal_at)


def _for_floating(name: str, column: Column, data_type: DataType, literal: Literal) -> tuple[Any, _Domain | None]:
    value = _number(column, data_type, literal)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    if name == "double" or number != number or _float32_at(_float32_index(number)) == number:
        return number, None
    # A 32-bit column is compared with a number that needs 64 bits.
    return number, _Domain(_float32_index(float("-inf")), _float32_index(float("inf")), _float32_at, _float32_at)


def _float32_index(number: float) -> int:
    """The rank of the nearest 32-bit float: neighbours differ by one, 0.0 is rank 0."""
    try:
        bits: int = struct.unpack("<i", struct.pack("<f", number))[0]
    except OverflowError:
        bits = 0x7F800000 if number > 0 else -0x00800000
    return bits if bits >= 0 else -(bits & 0x7FFFFFFF)


def _float32_at(index: int) -> float:
    bits = index if index >= 0 else (-index) | 0x80000000
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def _for_time(column: Column, data_type: DataType, literal: Literal, time_zone: str) -> tuple[Any, _Domain | None]:
    value, zone = literal.value, zone_of(time_zone)
    if isinstance(value, str):
        if data_type == PrimitiveType("date"):
            return date_of(value), None
        timestamp = timestamp_of(value, zone)
        return (timestamp if data_type == PrimitiveType("timestamp") else _local(value, timestamp, zone)), None
    if not isinstance(value, date):
        raise _no_common_type(column, data_type, literal)
    if not isinstance(value, datetime):
        if data_type == PrimitiveType("date"):
            return value, None
        midnight = datetime.combine(value, time())
        return (midnight if data_type == PrimitiveType("timestamp_ntz") else _instant(midnight, zone)), None
    return _for_timestamp(column, data_type, value, zone)


def _for_timestamp(column: Column, data_type: DataType, value: datetime, zone: tzinfo) -> tuple[Any, _Domain | None]:
    match data_type:
        case PrimitiveType("timestamp"):
            return _instant(value, zone), None
        case PrimitiveType("timestamp_ntz"):
            if value.tzinfo is None:
                return value, None
            if zone != UTC:
                raise InvalidRequest(
                    f"Column {column} has no time zone; compare it with a TIMESTAMP_NTZ '…' literal.",
                    code="DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
                    column=str(column),
                )
            return value.astimezone(UTC).replace(tzinfo=None), None
    days = _Domain(
        (date.min - _EPOCH).days + 1,
        (date.max - _EPOCH).days - 1,
        lambda index: _midnight(index, zone if value.tzinfo else None),
        lambda index: _EPOCH + timedelta(days=index),
    )
    return value, days


def _midnight(day: int, zone: tzinfo | None) -> datetime:
    midnight = datetime.combine(_EPOCH + timedelta(days=day), time())
    return midnight if zone is None else _instant(midnight, zone)


def _instant(value: datetime, zone: tzinfo) -> datetime:
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _local(text: str, timestamp: datetime, zone: tzinfo) -> datetime:
    """The wall clock that the text shows: Spark ignores a zone in a text that is read as TIMESTAMP_NTZ."""
    return timestamp_of(text, None) if timestamp.tzinfo else timestamp


def _no_common_type(column: Column, data_type: DataType, literal: Literal) -> InvalidRequest:
    return InvalidRequest(
        f"Column {column} of type {data_type} cannot be compared with {literal} of type {literal.data_type}; cast the literal.",
        code="DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        column=str(column),
    )
