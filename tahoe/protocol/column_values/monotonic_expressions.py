"""Analysis of a generated column's expression over its one base column: whether it grows with it, and how it depends on time. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tahoe.expr.tree.expression import Call, Cast, Expression, Literal, Reference, walk
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

_TIMESTAMP, _STRING, _DATE = (PrimitiveType(name) for name in ("timestamp", "string", "date"))
_NTZ = PrimitiveType("timestamp_ntz")
_TIMES = (_TIMESTAMP, _NTZ, _DATE)
_WHOLE = [PrimitiveType(name) for name in ("byte", "short", "integer", "long")]
_OTHERS = tuple(PrimitiveType(name) for name in ("boolean", "float", "double", "binary"))
_FIELDS_OF_TIME = ("yyyy", "MM", "dd", "HH", "mm", "ss")


def grows(value: Expression) -> bool:
    """Whether a greater value of the base column never yields a lesser value of the expression."""
    match value:
        case Reference(data_type=data_type):
            return data_type in (*_TIMES, *_WHOLE, *_OTHERS, _STRING) or isinstance(data_type, DecimalType)
        case Cast(child=child, data_type=target, lenient=False):
            return grows(child) and _cast_grows(child.data_type, target)
        case Call(function="year", arguments=(child,)):
            return grows(child)
        case Call(function="trunc", arguments=(child, Literal())) | Call(function="date_trunc", arguments=(Literal(), child)):
            return grows(child)
        case Call(function="date_format", arguments=(child, Literal(value=str(pattern)))):
            return grows(child) and pattern_fields(pattern)[:1] == ("yyyy",)
    return is_prefix(value)


def is_prefix(value: Expression) -> bool:
    """Whether the expression is a prefix of a column's text, or all of it."""
    match value:
        case Reference():
            return value.data_type == _STRING
        case Call(function="substring", arguments=(child, Literal(value=0 | 1))):
            return is_prefix(child)
        case Call(function="substring", arguments=(child, Literal(value=0 | 1), Literal(value=int()))):
            return is_prefix(child)
        case Call(function="left", arguments=(child, Literal(value=int()))):
            return is_prefix(child)
    return False


def depends_on_zone(value: Expression) -> bool:
    """Whether the value depends on the session's time zone."""
    return any(node.data_type == _TIMESTAMP for node in walk(value))


def asks_for_days_alone(value: Expression) -> bool:
    """Whether the expression depends only on the date part of a timestamp."""
    match value:
        case Cast(child=Reference(data_type=data_type), data_type=target) if data_type == _TIMESTAMP:
            return target == _DATE
        case Cast(child=child):
            return value.data_type != _TIMESTAMP and asks_for_days_alone(child)
        case Call(arguments=arguments):
            return value.data_type != _TIMESTAMP and all(asks_for_days_alone(argument) for argument in arguments)
    return isinstance(value, Literal) and value.data_type != _TIMESTAMP


def writes_years(value: Expression) -> bool:
    """Whether the value is text that begins with a year, which sorts like the years only from 0 to 9999."""
    return any(isinstance(node, Call) and node.function == "date_format" for node in walk(value))


def pattern_fields(pattern: str) -> tuple[str, ...]:
    """Return the fields of a date pattern; none unless each is written once, from the greatest to the least without gaps.

    Each has a fixed width, so that texts of such a pattern sort like the times.
    """
    fields = tuple(field for _, field in sorted(_places(pattern)))
    rest = pattern
    for field in fields:
        rest = rest.replace(field, "", 1)
    first = _FIELDS_OF_TIME.index(fields[0]) if fields else 0
    in_order = fields == _FIELDS_OF_TIME[first : first + len(fields)]
    at_start = bool(fields) and pattern.startswith(fields[0])
    return fields if in_order and at_start and not any(letter.isalpha() or letter == "'" for letter in rest) else ()


def _places(pattern: str) -> Iterator[tuple[int, str]]:
    return ((pattern.find(field), field) for field in _FIELDS_OF_TIME if field in pattern)


def _cast_grows(source: DataType, target: DataType) -> bool:
    if source in _WHOLE and target in _WHOLE:
        return _WHOLE.index(PrimitiveType(str(source))) <= _WHOLE.index(PrimitiveType(str(target)))
    # A wall clock that a time zone skipped is a later one there, less than a day: apart from that, a formatted time grows.
    return source == target or (source in _TIMES and target == _DATE) or (source in (_DATE, _NTZ) and target in _TIMES)
