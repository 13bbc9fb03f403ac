"""The parameters of a statement, ``:name`` and ``?``, replaced by their values as literals.

Spark's own parser binds them in a classic session. A client of Spark Connect has no parser, and runs a part of a statement itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeAlias

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.lexer import SYMBOL
from tahoe.expr.tree.predicate import text_literal
from tahoe.sql.dialect import Cursor, Token, tokenize

Values: TypeAlias = Mapping[str, object] | Sequence[object]
"""The values of ``:name`` by name, or of each ``?`` in order."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """The value of a parameter, as a text in SQL."""

    text: str


def all_literals(values: Values) -> bool:
    """Whether each value can be written as a literal; a column expression cannot."""
    listed = values.values() if isinstance(values, Mapping) else values
    return all(literal(value) is not None for value in listed)


def with_values(text: str, values: Values) -> str:
    """Return the statement with a literal in the place of each parameter.

    Args:
        values: each must be a literal (`all_literals`).

    Raises:
        InvalidRequest: ``UNBOUND_SQL_PARAMETER``: a parameter has no value.
    """
    parts, place = list[str](), 0
    for key, start, stop in _parameters(text):
        parts += [text[place:start], _value(values, key)]
        place = stop
    return "".join([*parts, text[place:]])


def values_for(text: str, arguments: Sequence[tuple[str | None, object]]) -> Values:
    """Return the values of EXECUTE IMMEDIATE as its text takes them: each ``?`` in order, with or without a name; ``:name`` by name.

    Args:
        arguments: the values behind USING, with their names; None for a value without one.

    Raises `InvalidRequest` (``ALL_PARAMETERS_MUST_BE_NAMED``) for a text with ``:name`` and a value without a name.
    """
    if not has_names(text):
        return [value for _, value in arguments]
    nameless = [literal(value) for name, value in arguments if name is None]
    if nameless:
        raise InvalidRequest(
            f"The text of EXECUTE IMMEDIATE has parameters with names, and these values have none: {', '.join(map(str, nameless))}. "
            "Give each one a name: USING value AS name.",
            code="ALL_PARAMETERS_MUST_BE_NAMED",
        )
    return {str(name): value for name, value in arguments}


def has_names(text: str) -> bool:
    """Whether the parameters of a statement have names."""
    return any(isinstance(key, str) for key, _, _ in _parameters(text))


def _parameters(text: str) -> Iterator[tuple[str | int, int, int]]:
    """Yield the parameters of a statement: the name, or the place among the ``?``, and where its text starts and stops."""
    cursor, count = Cursor(text, tokenize(text)), 0
    while not cursor.at_end:
        previous, token = (cursor.peek(-1) if cursor.place else None), cursor.next()
        if token.is_symbol("?"):
            yield count, token.start, token.stop
            count += 1
        elif _is_named(previous, token, cursor.peek()):
            name = cursor.next()
            yield str(name.name), token.start, name.stop


def _is_named(previous: Token | None, token: Token, following: Token) -> bool:
    """Whether ``:name`` begins here; in ``v:field`` and ``v::type`` the colon is an operator."""
    if not token.is_symbol(":") or following.name is None or following.start != token.stop:
        return False
    is_adjacent = previous is not None and previous.stop == token.start
    return previous is None or not is_adjacent or (previous.kind == SYMBOL and not previous.is_symbol(")", "]", ":"))


def _value(values: Values, key: str | int) -> str:
    if isinstance(key, str) and isinstance(values, Mapping) and key in values:
        return str(literal(values[key]))
    if isinstance(key, int) and not isinstance(values, Mapping) and key < len(values):
        return str(literal(values[key]))
    shown = f":{key}" if isinstance(key, str) else f"?, number {key + 1},"
    raise InvalidRequest(
        f"The parameter {shown} has no value. Pass one in the argument `args` of spark.sql: a dict for :name, a list for ?.",
        code="UNBOUND_SQL_PARAMETER",
    )


def literal(value: object) -> str | None:
    """Return a Python value as Spark's SQL writes it, with the type that ``pyspark.sql.functions.lit`` gives it; None for other objects."""
    match value:
        case SqlText(text):
            return text
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int():
            return _integer(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"CAST('{value}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}BD" if value.is_finite() else None
        case str():
            return text_literal(value)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case datetime():
            return f"TIMESTAMP'{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case timedelta():
            return _interval(value)
        case list() | tuple():
            items = [literal(item) for item in value]
            return None if None in items else f"array({', '.join(map(str, items))})"
    return None


def _integer(value: int) -> str | None:
    if -(2**31) <= value < 2**31:
        return str(value) if value > -(2**31) else f"CAST('{value}' AS INT)"
    return f"CAST('{value}' AS BIGINT)" if -(2**63) <= value < 2**63 else None


def _interval(value: timedelta) -> str:
    sign, size = ("-", -value) if value < timedelta() else ("", value)
    hours, rest = divmod(size.seconds, 3600)
    return f"INTERVAL '{sign}{size.days} {hours:02}:{rest // 60:02}:{rest % 60:02}.{size.microseconds:06}' DAY TO SECOND"
