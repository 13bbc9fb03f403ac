"""Converts the condition forms of other libraries to predicates: lists of comparisons (DNF) and pyarrow's expressions. Pure.

``[("id", ">", 1), ("day", "in", [3, 4])]`` is true if all comparisons are true, a list of such lists if one of them is true.

A pyarrow expression exposes its parts only as text. The text is parsed, and an expression is built from the result: if it does not equal
the original expression, `InvalidRequest` is raised. Therefore no text is misread.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pc
from tahoe.base.wording import suggestion
from tahoe.expr.tree.coerce import compare, is_in
from tahoe.expr.tree.predicate import (
    FALSE,
    TRUE,
    Column,
    Comparison,
    Constant,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from tahoe.expr.tree.python_values import literal_of
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.types import DataType, PrimitiveType, StructType

Condition: TypeAlias = str | bool | Predicate | Sequence[Any] | Any
"""SQL text, a predicate, True or False, a list of comparisons, or a pyarrow expression."""

_FLOATS = (PrimitiveType("float"), PrimitiveType("double"))


def predicate_of(condition: object, schema: StructType, time_zone: str = "UTC") -> Predicate:
    """Convert a condition other than SQL text to a predicate.

    Raises:
        InvalidRequest: ``TAHOE_CONDITION``: the value is not a condition; an unknown column; values that do not fit its type.
    """
    if isinstance(condition, Predicate):
        return condition
    if isinstance(condition, bool):
        return Constant(condition)
    if isinstance(condition, list | tuple):
        return _of_lists(condition, schema, time_zone)
    if isinstance(condition, pc.Expression):
        return _of_expression(condition, schema, time_zone)
    raise _no_condition(condition)


# ---- lists of comparisons


def _of_lists(condition: Sequence[Any], schema: StructType, time_zone: str) -> Predicate:
    if _is_comparison(condition):
        return _comparison(condition, schema, time_zone)
    if not condition or all(_is_comparison(part) for part in condition):
        return all_of(_comparison(part, schema, time_zone) for part in condition)
    if all(isinstance(part, list | tuple) and part and all(map(_is_comparison, part)) for part in condition):
        return any_of(all_of(_comparison(comparison, schema, time_zone) for comparison in part) for part in condition)
    raise _no_condition(condition)


def _is_comparison(part: object) -> bool:
    return isinstance(part, list | tuple) and len(part) == 3 and isinstance(part[0], str) and isinstance(part[1], str)


def _comparison(part: Sequence[Any], schema: StructType, time_zone: str) -> Predicate:
    name, sign, value = part
    sign = {"==": "=", "<>": "!="}.get(sign.strip(), " ".join(sign.lower().split()))
    column, data_type = _column((name,), schema)
    if sign in ("in", "not in"):
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise _no_condition(part)
        return _among(column, data_type, list(value), time_zone, negated=sign == "not in")
    if sign not in _OPERATORS:
        raise _no_condition(part)
    if value is None:
        if sign not in ("=", "!="):
            raise _no_condition(part)
        return IsNull(column) if sign == "=" else IsNotNull(column)
    return compare(sign, column, data_type, literal_of(value, name), time_zone)


def _among(column: Column, data_type: DataType, values: list[Any], time_zone: str, *, negated: bool) -> Predicate:
    """Whether the column has one of the values; None in the list is NULL itself, as it is to pyarrow."""
    literals = tuple(literal_of(value, str(column)) for value in values if value is not None)
    listed = is_in(column, data_type, literals, time_zone) if literals else FALSE
    if negated:
        outside = Not(listed) if literals else TRUE
        return all_of((IsNotNull(column), outside)) if None in values else outside
    return any_of((listed, IsNull(column))) if None in values else listed


def _column(path: tuple[str, ...], schema: StructType) -> tuple[Column, DataType]:
    column = schema.resolve(path)
    if column is None and len(path) == 1 and "." in path[0]:
        path = tuple(path[0].split("."))
        column = schema.resolve(path)
    if column is None:
        raise InvalidRequest(
            f"There is no column '{'.'.join(path)}'; the columns are {', '.join(schema.names[:20])}."
            f"{suggestion('.'.join(path), schema.names)}",
            code="DELTA_COLUMN_NOT_FOUND",
            column=".".join(path),
        )
    names, at = [], schema
    for name in path:
        field = at.field(name)
        names.append(field.name)
        if isinstance(field.data_type, StructType):
            at = field.data_type
    return Column(tuple(names)), column.data_type


def _no_condition(condition: object) -> InvalidRequest:
    return InvalidRequest(
        f'{str(condition)[:200]!r} ({type(condition).__name__}) is no condition. Write SQL text such as "id > 1 AND day IN (3, 4)", or a '
        f"list of comparisons such as [('id', '>', 1), ('day', 'in', [3, 4])] with one of {', '.join(_OPERATORS)}, in, not in.",
        code="TAHOE_CONDITION",
    )


# ---- pyarrow's expressions


def _of_expression(expression: object, schema: StructType, time_zone: str) -> Predicate:
    for reading in _READINGS:
        try:
            predicate, again = _ExpressionText(str(expression), schema, time_zone, reading).whole()
        except _UnsupportedText:
            continue
        if again.equals(expression):
            return predicate
    raise InvalidRequest(
        f"The pyarrow expression {str(expression)[:200]} cannot be read. Understood are comparisons of a column with a constant, isin() with "
        "few values, is_null(), is_valid(), is_nan(), starts_with(), and &, | and ~ of these; write SQL text for others.",
        code="TAHOE_CONDITION",
        expression=str(expression)[:1000],
    )


class _UnsupportedText(Exception):
    """A part of the text has no meaning here."""


@dataclass(frozen=True, slots=True)
class _ConstantTypes:
    """The types of constants that the text does not determine.

    Args:
        whole: the type of a number without a point.
        number: the type of a number with a point.
        typed: whether constants have the types of their columns; else those that pyarrow gives to Python's values.
    """

    whole: type[int | float]
    number: type[float | Decimal]
    typed: bool = False


_READINGS = (
    _ConstantTypes(int, float),
    _ConstantTypes(float, float),
    _ConstantTypes(int, Decimal),
    _ConstantTypes(int, float, typed=True),
)
_Read: TypeAlias = tuple[Predicate, Any]
"""A predicate, and the equivalent pyarrow expression."""


class _ExpressionText:
    """Reads the text of a pyarrow expression."""

    def __init__(self, text: str, schema: StructType, time_zone: str, reading: _ConstantTypes) -> None:
        self.text, self.at = text, 0
        self.schema, self.time_zone = schema, time_zone
        self.reading, self.typed = reading, reading.typed

    def whole(self) -> _Read:
        predicate = self.condition()
        if self.at != len(self.text):
            raise _UnsupportedText
        return predicate

    def condition(self) -> _Read:
        for name in ("invert", "is_null", "is_valid", "is_nan", "is_in", "starts_with"):
            if self.take(f"{name}("):
                result: _Read = getattr(self, name)()
                self.need(")")
                return result
        for text, value in (("true", True), ("false", False)):
            if self.take(text):
                return Constant(value), pc.scalar(value)
        if self.text.startswith("((", self.at) or not self.text.startswith("(", self.at):
            return self.joined() if self.text.startswith("(", self.at) else self.boolean_column()
        start = self.at
        try:
            return self.comparison()
        except _UnsupportedText:
            self.at = start
            return self.joined()

    def joined(self) -> _Read:
        self.need("(")
        left, left_again = self.condition()
        is_and = self.take(" and ")
        if not is_and:
            self.need(" or ")
        right, right_again = self.condition()
        self.need(")")
        parts = (left, right)
        return (all_of(parts), left_again & right_again) if is_and else (any_of(parts), left_again | right_again)

    def comparison(self) -> _Read:
        self.need("(")
        column, data_type, again = self.column()
        sign = self.match(r" (==|!=|<=|>=|<|>) ")[1]
        value = self.constant(data_type)
        self.need(")")
        constant = literal_of(value, str(column))
        predicate = compare("=" if sign == "==" else sign, column, data_type, constant, self.time_zone)
        if data_type in _FLOATS and sign in (">", ">="):
            # To Arrow NaN is not greater than anything.
            predicate = all_of((predicate, Comparison("!=", column, Literal(math.nan, data_type))))
        return predicate, _SIGNS[sign](again, value)

    def boolean_column(self) -> _Read:
        column, data_type, again = self.column()
        if data_type != PrimitiveType("boolean"):
            raise _UnsupportedText
        return Comparison("=", column, Literal(True, data_type)), again

    def invert(self) -> _Read:
        predicate, again = self.condition()
        return Not(predicate), ~again

    def is_valid(self) -> _Read:
        column, _, again = self.column()
        return IsNotNull(column), again.is_valid()

    def is_nan(self) -> _Read:
        column, data_type, again = self.column()
        if data_type not in _FLOATS:
            raise _UnsupportedText
        return Comparison("=", column, Literal(math.nan, data_type)), again.is_nan()

    def is_null(self) -> _Read:
        column, data_type, again = self.column()
        nan_is_null = self.match(r", \{nan_is_null=(true|false)\}")[1] == "true"
        predicate: Predicate = IsNull(column)
        if nan_is_null and data_type in _FLOATS:
            predicate = any_of((predicate, Comparison("=", column, Literal(math.nan, data_type))))
        return predicate, again.is_null(nan_is_null=nan_is_null)

    def starts_with(self) -> _Read:
        column, data_type, again = self.column()
        pattern = json.loads(self.match(r', \{pattern=("(?:[^"\\]|\\.)*"), ignore_case=false\}')[1])
        if data_type != PrimitiveType("string"):
            raise _UnsupportedText
        return StartsWith(column, pattern), pc.starts_with(again, pattern)

    def is_in(self) -> _Read:
        column, data_type, again = self.column()
        listed = self.match(r", \{value_set=\w+(?:\[[^\]]*\])?:\[\n(.*?)\n\], null_matching_behavior=MATCH\}", re.DOTALL)[1]
        texts = [line.strip().removesuffix(",") for line in listed.split("\n")]
        # Here the text of a string is not escaped.
        values = [
            None if text == "null" else text[1:-1] if text.startswith('"') else self.value(text, data_type) for text in texts
        ]
        made = again.isin(pa.array(values, to_arrow_type(data_type)) if self.typed else values)
        predicate = _among(column, data_type, values, self.time_zone, negated=False)
        # To Arrow the answer for NULL is false, unless NULL is among the values.
        return predicate if None in values else all_of((IsNotNull(column), predicate)), made

    # ---- columns and constants

    def column(self) -> tuple[Column, DataType, Any]:
        if self.take("FieldRef.Nested("):
            names = []
            while self.take("FieldRef.Name("):
                names.append(self.match(r"([^)]*)\) ?")[1])
            self.need(")")
            column, data_type = _column(tuple(names), self.schema)
            return column, data_type, pc.field(*names)
        for field in sorted(self.schema, key=lambda field: -len(field.name)):
            if self.take(field.name):
                return Column((field.name,)), field.data_type, pc.field(field.name)
        raise _UnsupportedText

    def constant(self, data_type: DataType) -> Any:
        text = self.match(r'"(?:[^"\\]|\\.)*"|null\[[^\]]*\]|[^)]+')[0]
        value = None if text.startswith("null[") else self.value(text, data_type)
        if self.typed:
            try:
                return pa.scalar(value, to_arrow_type(data_type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, ValueError, TypeError) as error:
                raise _UnsupportedText from error
        return pa.scalar(value)

    def value(self, text: str, data_type: DataType) -> Any:
        """The constant that a text is, by the type of the column that it is compared with."""
        try:
            if text.startswith('"'):
                plain = json.loads(text)
                return bytes.fromhex(plain) if self.typed and data_type == PrimitiveType("binary") else plain
            if text in ("true", "false"):
                return text == "true"
            if re.fullmatch(r"-?\d+", text):
                return (float if self.typed and data_type in _FLOATS else self.reading.whole)(text)
            if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
                return date.fromisoformat(text)
            if re.match(r"\d{4}-\d\d-\d\d ", text):
                return datetime.fromisoformat(text)
            value = self.reading.number(text)
            if not math.isfinite(value) and math.isnan(value):
                raise _UnsupportedText  # NaN is asked for by is_nan()
            return value
        except (ValueError, InvalidOperation) as error:
            raise _UnsupportedText from error

    # ---- the text

    def take(self, word: str) -> bool:
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        if not self.take(word):
            raise _UnsupportedText

    def match(self, pattern: str, flags: int = 0) -> re.Match[str]:
        match = re.compile(pattern, flags).match(self.text, self.at)
        if match is None:
            raise _UnsupportedText
        self.at = match.end()
        return match


_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
_SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
