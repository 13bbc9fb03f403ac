"""The common type of two values, and the result type of an operation on them, as in Spark's ANSI mode."""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from tahoe.schema.types import ArrayType, DataType, DecimalType, MapType, PrimitiveType, StructField, StructType

BOOLEAN = PrimitiveType("boolean")
DATE = PrimitiveType("date")
DOUBLE = PrimitiveType("double")
INTEGER = PrimitiveType("integer")
LONG = PrimitiveType("long")
STRING = PrimitiveType("string")
TIMESTAMP = PrimitiveType("timestamp")
VOID = PrimitiveType("void")
ENGINE_TYPE = PrimitiveType("decided by Spark")
"""The type of an expression that only Spark evaluates; no column has it."""


def is_integral(data_type: DataType) -> bool:
    """Whether the type is byte, short, integer or long."""
    return isinstance(data_type, PrimitiveType) and data_type.name in _INTEGRAL


def is_numeric(data_type: DataType) -> bool:
    """Whether the type is an integer type, float, double or decimal."""
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in _NUMERIC)


def same_type(left: DataType, right: DataType) -> bool:
    """Whether two types are equal except for nullability and the metadata of fields."""
    return left is right or left == right or _plain(left) == _plain(right)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type in which both sides are compared, or that a CASE of both has; None where there is none."""
    if isinstance(left, PrimitiveType | DecimalType) and isinstance(right, PrimitiveType | DecimalType):
        return left if left is right else _common_scalar(left, right)
    return _common_type(left, right)


def _common_type(left: DataType, right: DataType) -> DataType | None:
    if same_type(left, right):
        return left
    if VOID in (left, right):
        return right if left == VOID else left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    for text, other in ((left, right), (right, left)):
        if text == STRING and not isinstance(other, ArrayType | MapType | StructType):
            if is_integral(other):
                return LONG
            return DOUBLE if is_numeric(other) else other
    names = {part.name for part in (left, right) if isinstance(part, PrimitiveType)}
    if len(names) == 2 and names <= {"date", "timestamp", "timestamp_ntz"}:
        return PrimitiveType("timestamp" if "timestamp" in names else "timestamp_ntz")
    return None


_common_scalar = lru_cache(maxsize=1024)(_common_type)
"""Remembered: a chain asks for the same two types as often as it has operands. (Types of structs cannot be hashed.)"""


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """The type of ``+ - * / % div`` over two numbers that `common_type` brought together; None where there is none.

    Decimals keep their own precision: they are not brought to one type first.
    """
    if isinstance(left, DecimalType) and isinstance(right, DecimalType):
        return LONG if operator == "div" else _decimal_result(operator, left, right)
    met = common_type(left, right)
    if met is None or not is_numeric(met):
        return None
    if operator == "/":
        return DOUBLE
    if operator == "div":
        return LONG if is_integral(met) else None
    return met


def decimal_of(data_type: DataType) -> DecimalType:
    """Return the decimal type for all values of an integer type."""
    if isinstance(data_type, DecimalType):
        return data_type
    return DecimalType(_DIGITS[str(data_type)], 0)


def decimal_type_of(number: Decimal) -> DecimalType:
    """Return the narrowest type for the number with its written digits."""
    _, digits, exponent = number.as_tuple()
    scale = max(-int(exponent), 0)
    return DecimalType(max(len(digits), scale, 1), scale)


_INTEGRAL = ("byte", "short", "integer", "long")
_NUMERIC = (*_INTEGRAL, "float", "double")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_MOST_DIGITS = 38
_LEAST_SCALE_KEPT = 6


def _plain(data_type: DataType) -> DataType:
    match data_type:
        case ArrayType(element):
            return ArrayType(_plain(element))
        case MapType(key, value):
            return MapType(_plain(key), _plain(value))
        case StructType(fields):
            return StructType(tuple(StructField(part.name, _plain(part.data_type)) for part in fields))
    return data_type


def _common_number(left: DataType, right: DataType) -> DataType:
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        other = right if isinstance(left, DecimalType) else left
        if not isinstance(other, DecimalType) and not is_integral(other):
            return DOUBLE
        first, second = decimal_of(left), decimal_of(right)
        scale = max(first.scale, second.scale)
        whole = max(first.precision - first.scale, second.precision - second.scale)
        return DecimalType(min(whole + scale, _MOST_DIGITS), min(scale, _MOST_DIGITS))
    wider = _NUMERIC[max(_NUMERIC.index(str(left)), _NUMERIC.index(str(right)))]
    # A 32-bit float would lose digits of a whole number.
    return DOUBLE if wider == "float" and left != right else PrimitiveType(wider)


def _decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    whole_left, whole_right = left.precision - left.scale, right.precision - right.scale
    match operator:
        case "+" | "-":
            scale = max(left.scale, right.scale)
            return _adjusted(max(whole_left, whole_right) + scale + 1, scale)
        case "*":
            return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
        case "/":
            scale = max(_LEAST_SCALE_KEPT, left.scale + right.precision + 1)
            return _adjusted(whole_left + right.scale + scale, scale)
    scale = max(left.scale, right.scale)
    return _adjusted(min(whole_left, whole_right) + scale, scale)


def _adjusted(precision: int, scale: int) -> DecimalType:
    """Limit a decimal type to 38 digits: those before the point are kept, and at least six after it if it had as many."""
    if precision <= _MOST_DIGITS:
        return DecimalType(precision, scale)
    new_scale = max(_MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE_KEPT))
    return DecimalType(_MOST_DIGITS, new_scale)
