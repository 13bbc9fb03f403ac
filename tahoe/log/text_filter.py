"""Skips files by the text of their statistics, without parsing it.

A checkpoint without struct statistics has one JSON text a file. Parsing a million of them takes longer than the whole rest of a scan. But
most texts can be refuted unparsed: ``id <= 5`` is false if the text has ``"minValues":{…"id":`` followed by a number greater than 5, and
"a number greater than 5" is a regular expression over digits. A condition on bounds therefore becomes one expression, which Arrow matches
at about a gigabyte a second in its own columns.

A match proves that a condition is false; nothing else is ever concluded. If the text is unusual (an escape in a string, an exponent in a
number, a time zone, structs in structs) the expression does not match, and the file's parsed statistics decide later.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import And, Comparison, Or, Predicate
from tahoe.protocol.skipping import NAN_MAY_BE_MISSING
from tahoe.schema.mapping import explode
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructType


@dataclass(frozen=True, slots=True)
class TextFilter:
    """The patterns that refute a condition.

    Args:
        pattern: refutes the texts that it matches; None matches nothing.
        all_of: groups of filters; a text that all filters of a group refute is refuted, too.
    """

    pattern: str | None
    all_of: tuple[tuple[TextFilter, ...], ...] = ()

    def refuted(self, texts: pa.Array) -> pa.Array:
        """True where the condition is certainly FALSE for a file with these statistics; False or null elsewhere.

        Args:
            texts: `AddFile.stats`.
        """
        refuted_texts = None if self.pattern is None else pc.match_substring_regex(texts, self.pattern)
        for group in self.all_of:
            every = group[0].refuted(texts)
            for each in group[1:]:
                every = pc.and_(every, each.refuted(texts))
            refuted_texts = every if refuted_texts is None else pc.or_(refuted_texts, every)
        return pa.repeat(pa.scalar(False), len(texts)) if refuted_texts is None else refuted_texts

    @property
    def num_patterns(self) -> int:
        """The greatest number of regular expressions that are matched against a text: the cost of the filter."""
        return (self.pattern is not None) + sum(each.num_patterns for group in self.all_of for each in group)


def text_filter(condition: Predicate | None, schema: StructType) -> TextFilter | None:
    """Return the filter of a condition on statistics; None if texts cannot refute it, or only at the cost of parsing them.

    Args:
        condition: of `tahoe.protocol.skipping.stats_predicate`. One that has `NAN_MAY_BE_MISSING` is refuted for files with the tag alone.
        schema: the table's logical schema. A column of the name ``minValues`` or ``maxValues`` would make the texts ambiguous.
    """
    if condition is None or any(column.physical_name in _MEMBERS for _, column in explode(schema)):
        return None
    refutation = _refutation(condition)
    return refutation if refutation is not None and refutation.num_patterns <= _MOST_PATTERNS else None


# Each pattern is one pass over the texts; parsing them costs about four.
_MOST_PATTERNS = 3
_MEMBERS = ("minValues", "maxValues")

# JSON read token by token, so that a brace or a name inside of a text is never taken for structure.
_STRING = r'"(?:[^"\\]|\\.)*"'
_FLAT = rf'(?:[^{{}}"]|{_STRING})*'
_SKIPPED = rf'(?:[^{{}}"]|{_STRING}|\{{{_FLAT}\}})*'
_END = r"\s*[,}]"
_NEVER = r"[^\s\S]"


def _refutation(condition: Predicate) -> TextFilter | None:
    match condition:
        case And(parts):
            filters = [each for part in parts if (each := _refutation(part)) is not None]
            patterns = [each.pattern for each in filters if each.pattern is not None]
            groups = tuple(group for each in filters for group in each.all_of)
            return TextFilter("|".join(patterns) or None, groups) if filters else None
        case Or(parts):
            each_part = [_refutation(part) for part in parts if part != NAN_MAY_BE_MISSING]
            refutations = tuple(each for each in each_part if each is not None)
            return TextFilter(None, (refutations,)) if refutations and len(refutations) == len(each_part) else None
        case Comparison(op, column, literal) if column.path[0] in _MEMBERS and literal.value is not None:
            value = _opposite(op, column.path[0], literal.value, literal.data_type)
            return None if value is None else TextFilter(_located(column.path, value))
    return None


def _located(path: Sequence[str], value: str) -> str:
    """The pattern of a member of ``minValues`` or ``maxValues`` that has a value of the given pattern."""
    inner = rf"\s*:\s*\{{{_SKIPPED}".join(_name(name) for name in path)
    return rf"{inner}\s*:\s*(?:{value})"


def _name(name: str) -> str:
    # A name that JSON escapes does not match its escaped form: the texts are left to be parsed.
    return '"' + "".join(_literal(char) for char in name) + '"'


def _opposite(op: str, member: str, value: object, data_type: DataType) -> str | None:
    """The pattern of the values for which the comparison is FALSE."""
    if member == "minValues" and op in ("<", "<="):
        return _beyond(value, data_type, above=True, or_equal=op == "<")
    if member == "maxValues" and op in (">", ">="):
        return _beyond(value, data_type, above=False, or_equal=op == ">")
    return None


def _beyond(value: Any, data_type: DataType, *, above: bool, or_equal: bool) -> str | None:
    """Values above (or below) the constant, as JSON writes them."""
    match data_type:
        case PrimitiveType("long" | "integer" | "short" | "byte"):
            shift = 0 if not or_equal else -1 if above else 1
            return _integers(value + shift, above) + _END
        case PrimitiveType("string"):
            return '"' + _texts(value, above, or_equal)
        case PrimitiveType("date") if isinstance(value, date) and value.year >= 1000:
            return rf'"(?:{_fixed(value.isoformat(), above)}{"|" + value.isoformat() if or_equal else ""})"'
        case PrimitiveType("timestamp") if isinstance(value, datetime):
            return _moments(value.astimezone(UTC), above, "Z")
        case PrimitiveType("timestamp_ntz") if isinstance(value, datetime):
            return _moments(value, above, "")
        case PrimitiveType("double"):
            return _fractions(value, above, 2**50)
        case PrimitiveType("float"):
            return _fractions(value, above, 2**22)
        case DecimalType():
            return _fractions(value, above, None)
    return None


def _integers(bound: int, above: bool) -> str:
    """Integers without leading zeros that are greater (or less) than the bound."""
    size = abs(bound)
    if above:
        return f"(?:{_greater(size)})" if bound >= 0 else rf"(?:\d+|-(?:{_less(size)}))"
    return rf"(?:-\d+|{_less(size)})" if bound > 0 else f"-(?:{_greater(size)})"


def _greater(bound: int) -> str:
    """Digits of the numbers greater than a bound ≥ 0."""
    digits = str(bound)
    longer = rf"[1-9]\d{{{len(digits)},}}"
    return "|".join([longer, *_differing(digits, greater=True)])


def _less(bound: int) -> str:
    """Digits of the numbers from 0 to less than a bound > 0."""
    digits = str(bound)
    shorter = [rf"\d{{1,{len(digits) - 1}}}"] if len(digits) > 1 else []
    return "|".join([*shorter, *_differing(digits, greater=False)])


def _differing(digits: str, *, greater: bool) -> Iterator[str]:
    """As many digits, the first that differs being greater (or less); a prefix shared by all is written once a position."""
    for i, digit in enumerate(digits):
        if greater and digit < "9":
            yield rf"{digits[:i]}[{int(digit) + 1}-9]\d{{{len(digits) - i - 1}}}"
        if not greater and digit > ("1" if i == 0 and len(digits) > 1 else "0"):
            least = "1" if i == 0 and len(digits) > 1 else "0"
            yield rf"{digits[:i]}[{least}-{int(digit) - 1}]\d{{{len(digits) - i - 1}}}"


def _fixed(text: str, above: bool) -> str:
    """Texts of the same form, digits where this one has digits, that sort after (or before) it."""
    patterns = []
    for i, char in enumerate(text):
        if char.isdigit() and char != ("9" if above else "0"):
            other = f"[{int(char) + 1}-9]" if above else f"[0-{int(char) - 1}]"
            patterns.append(text[:i] + other + _form(text[i + 1 :]))
    return "|".join(patterns) or _NEVER


def _form(text: str) -> str:
    return "".join(r"\d" if char.isdigit() else char for char in text)


def _moments(moment: datetime, above: bool, zone: str) -> str | None:
    """Return a pattern of times whose whole second is after (or before) that of the constant; times in another zone do not match."""
    if moment.year < 1000:
        return None
    second = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return rf'"(?:{_fixed(second, above)})(?:\.\d+)?{zone}"'


def _fractions(value: Any, above: bool, most: int | None) -> str | None:
    """Return a pattern of numbers that are decided by their integer part; beyond `most` the digits of a float are not its exact value."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    if most is not None and abs(value) >= most:
        return None
    floor, negated_floor = math.floor(value), math.floor(-value)
    if above:
        # A number n.… is at least n; -n.… is more than -(n + 1).
        positive: str | None = _greater(floor) if floor >= 0 else r"\d+"
        negative: str | None = _less(negated_floor) if negated_floor > 0 else None
    else:
        # A number n.… is less than n + 1; -n.… is at most -n.
        positive = _less(floor) if floor > 0 else None
        negative = _greater(negated_floor) if negated_floor >= 0 else r"\d+"
    parts = [f"(?:{positive})"] if positive else []
    parts += [f"-(?:{negative})"] if negative else []
    return rf"(?:{'|'.join(parts)})(?:\.\d+)?{_END}" if parts else None


def _texts(bound: str, above: bool, or_equal: bool) -> str:
    """The rest of a JSON text after its quotation mark that sorts after (or before) the bound, by code points."""
    if len(bound) > _LONGEST_TEXT:
        bound, pattern = bound[:_LONGEST_TEXT], _NEVER
    elif above:
        pattern = r"[^\\]" if or_equal else r'[^"\\]'
    else:
        pattern = '"' if or_equal else _NEVER
    for char in reversed(bound):
        other = _characters(char, above)
        shorter = [] if above else ['"']
        same = [_literal(char) + pattern] if char not in '"\\' and char >= " " else []
        pattern = f"(?:{'|'.join([*other, *shorter, *same])})"
    return pattern


_LONGEST_TEXT = 64


def _characters(char: str, above: bool) -> list[str]:
    """One plain character that is greater (or less) than `char`."""
    point = ord(char)
    low, high = (point + 1, 0x10FFFF) if above else (0x20, point - 1)
    ranges = []
    for stop in (0x22, 0x5C):
        if low <= stop <= high:
            ranges.append((low, stop - 1))
            low = stop + 1
    ranges.append((max(low, 0x20), high))
    listed = "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in ranges if first <= last)
    return [f"[{listed}]"] if listed else []


def _literal(char: str) -> str:
    return char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):X}}}"
