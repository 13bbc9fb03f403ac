"""Intervals after ``+`` and ``-``: ``day - INTERVAL 7 DAYS``, ``INTERVAL '1' MONTH``, ``INTERVAL '2 hours 30 minutes'``.

An interval is no value of its own here. Dates are moved by `date_add` and `add_months`, timestamps by the functions
of `PLUS_INTERVAL`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tahoe.expr.parse.lexer import NUMBER, STRING, WORD, string_value
from tahoe.expr.parse.refused import refused
from tahoe.expr.parse.tokens import Tokens
from tahoe.expr.tree.common_types import DATE, INTEGER, LONG, TIMESTAMP
from tahoe.expr.tree.expression import PLUS_MICROSECONDS, PLUS_MONTHS, Expression
from tahoe.expr.tree.functions import call
from tahoe.expr.tree.predicate import Literal
from tahoe.expr.tree.signatures import cast_to
from tahoe.schema.types import PrimitiveType


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time: either months, or microseconds.

    Args:
        text: the SQL text.
        has_clock: whether a unit is shorter than a day. Spark makes a date a timestamp before it adds such an interval.
    """

    months: int
    microseconds: int
    text: str
    has_clock: bool

    def added_to(self, start: Expression, sign: int, time_zone: str) -> Expression:
        """Return the date or timestamp that is this long after `start`, or before it with the sign -1.

        Raises `InvalidRequest` for a value that is no date and no timestamp.
        """
        if start.data_type == DATE and not self.has_clock:
            function, number = ("add_months", self.months) if self.months else ("date_add", self.microseconds // _UNITS["DAY"])
            return call(function, (start, _constant(sign * number, INTEGER, self.text)), time_zone)
        if start.data_type == DATE:
            start = cast_to(start, TIMESTAMP, time_zone)
        if start.data_type not in (TIMESTAMP, PrimitiveType("timestamp_ntz")):
            raise refused(f"{start} {'+' if sign > 0 else '-'} {self.text}", "an interval can be added to a date or a timestamp")
        function, number = (PLUS_MONTHS, self.months) if self.months else (PLUS_MICROSECONDS, self.microseconds)
        return call(function, (start, _constant(sign * number, LONG, self.text)), time_zone)


def comes_interval(tokens: Tokens) -> bool:
    """Whether INTERVAL with a number and a unit, or with a text, follows the next token, a sign; a column may be called ``interval``."""
    if tokens.keys[tokens.place + 1] != "INTERVAL":
        return False
    place = tokens.place + 2
    place += tokens.keys[place] in ("-", "+")
    kind = tokens.tokens[place][0]
    return kind == STRING or (kind == NUMBER and _unit(tokens.keys[place + 1]) is not None)


def interval(tokens: Tokens) -> Interval:
    """Parse an interval, at whose first token the parser is.

    Raises `InvalidRequest` for an interval with both months and shorter units, with fractions, or with TO.
    """
    start = tokens.start()
    tokens.place += 1
    parts: list[tuple[int, str]] = []
    while tokens.keys[tokens.place] in ("-", "+") or tokens.tokens[tokens.place][0] in (NUMBER, STRING):
        if parts and not _continues(tokens):
            break
        parts += _part(tokens, start)
    if tokens.keys[tokens.place] == "TO":
        raise refused(tokens.text[start:], "write the interval with one number for each unit")
    return _of(parts, tokens.since(start))


def _continues(tokens: Tokens) -> bool:
    """Whether a further number with its unit follows: ``INTERVAL 1 DAY - 2`` is an interval minus a number."""
    place = tokens.place + (tokens.keys[tokens.place] in ("-", "+"))
    return _unit(tokens.keys[place + 1]) is not None


def _part(tokens: Tokens, start: int) -> list[tuple[int, str]]:
    sign = -1 if tokens.keys[tokens.place] == "-" else 1
    tokens.place += tokens.keys[tokens.place] in ("-", "+")
    kind, text, _ = tokens.tokens[tokens.place]
    unit = _unit(tokens.keys[tokens.place + 1]) if tokens.tokens[tokens.place + 1][0] == WORD else None
    tokens.place += 1 if unit is None else 2
    text = text if kind == NUMBER else string_value(text).strip()
    if unit is None:
        listed = _LISTED.fullmatch(text)
        units = [(int(number), _unit(word.upper())) for number, word in _NUMBER_AND_WORD.findall(text)] if listed else []
        if not units or any(word is None for _, word in units):
            raise refused(tokens.since(start), f"write an interval as whole numbers with {', '.join(_UNITS)}")
        return [(sign * number, word) for number, word in units if word is not None]
    if not _WHOLE.fullmatch(text):
        raise refused(tokens.since(start), "the numbers of an interval must be whole")
    return [(sign * int(text), unit)]


def _of(parts: list[tuple[int, str]], text: str) -> Interval:
    are_months = {unit in _MONTHS for _, unit in parts}
    if len(are_months) > 1:
        raise refused(text, "an interval has either years and months, or weeks, days and shorter units")
    if are_months == {True}:
        return Interval(sum(number * _MONTHS[unit] for number, unit in parts), 0, text, has_clock=False)
    total = sum(number * _UNITS[unit] for number, unit in parts)
    return Interval(0, total, text, has_clock=any(unit not in ("DAY", "WEEK") for _, unit in parts))


def _constant(number: int, data_type: PrimitiveType, text: str) -> Literal:
    most = (1 << (31 if data_type == INTEGER else 63)) - 1
    if abs(number) > most:
        raise refused(text, "the interval is too long")
    return Literal(number, data_type)


def _unit(key: str) -> str | None:
    """Return the unit of a word in upper case, also in its plural; None for other words."""
    return next((unit for unit in (key, key.removesuffix("S")) if unit in _UNITS), None)


_MONTHS = {"YEAR": 12, "MONTH": 1}
_SECOND = 1_000_000
_UNITS = {
    **_MONTHS,
    "WEEK": 7 * 86_400 * _SECOND,
    "DAY": 86_400 * _SECOND,
    "HOUR": 3_600 * _SECOND,
    "MINUTE": 60 * _SECOND,
    "SECOND": _SECOND,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
"""Each unit's length: of `_MONTHS` in months, of the others in microseconds."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER_AND_WORD = re.compile(r"([+-]?[0-9]{1,18})\s+([A-Za-z]+)")
_LISTED = re.compile(rf"{_NUMBER_AND_WORD.pattern}(?:\s+{_NUMBER_AND_WORD.pattern})*")
