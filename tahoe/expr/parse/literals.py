"""The constants and the types of SQL text: numbers with their suffixes, typed literals such as ``DATE '…'``, and the types in CAST."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo
from decimal import Decimal

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.refused import refused, short
from tahoe.expr.tree.common_types import INTEGER, LONG, decimal_type_of
from tahoe.expr.tree.constant_cast import cast_value
from tahoe.expr.tree.predicate import Literal
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

NUMBER_PATTERN = r"""
    (?P<number>(?: (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?:[dDfF]|[bB][dD])?
                 | \d+[eE][+-]?\d+(?:[dDfF]|[bB][dD])?
                 | \d+(?:[lLsSyYdDfF]|[bB][dD])? ) (?!\w))"""
"""As Spark's lexer has them; digits with other letters after them are a word."""

TYPED_TEXTS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
"""Types that can precede a string to form a typed literal."""


def number(text: str, zone: tzinfo) -> Literal:
    """The constant of a number, its sign before it: INT, LONG or, beyond that, DECIMAL; with a suffix or an exponent as that says.

    Raises:
        InvalidRequest: the number does not fit its type, or has more than 38 digits.
    """
    match = _PARTS.fullmatch(text)
    assert match is not None, text
    digits, exponent, suffix = match.group(1), match.group(2), match.group(3).upper()
    if suffix in _SUFFIXES:
        target = PrimitiveType(_SUFFIXES[suffix])
        return Literal(cast_value(digits + (exponent or ""), target, zone), target)
    if exponent and suffix != "BD":
        return _double(text)
    if "." not in digits and suffix != "BD" and len(digits) <= _DIGITS_OF_A_LONG:
        whole = int(digits)
        if -(1 << 63) <= whole < 1 << 63:
            return Literal(whole, INTEGER if -(1 << 31) <= whole < 1 << 31 else LONG)
    return _decimal(digits, int((exponent or "e0")[1:][:_MOST_DIGITS_OF_AN_EXPONENT]))


def hexadecimal(digits: str, text: str) -> Literal:
    """Return the bytes of a literal such as ``X'1F'``.

    Args:
        digits: the text between the quotes.
        text: the whole constant, for the error.
    """
    try:
        return Literal(bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")), PrimitiveType("binary"))
    except ValueError as error:
        raise refused(text, "X'…' needs hexadecimal digits") from error


def typed_text(kind: str, value: str, zone: tzinfo) -> Literal:
    """The constant of ``DATE '…'`` and the like.

    Args:
        kind: one of `TYPED_TEXTS`.
        zone: of the session, for timestamps without one.
    """
    target = PrimitiveType(_TYPES[kind])
    return Literal(cast_value(value, target, zone), target)


def type_named(name: str, sizes: Sequence[int], text: str) -> DataType:
    """Return the target type of a CAST.

    Args:
        name: in any case.
        sizes: the numbers in parentheses after it.
        text: the whole cast, for the error.
    """
    upper = name.upper()
    if upper in _DECIMALS and len(sizes) <= 2:
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        if not 0 <= scale <= precision <= _MOST_DIGITS or not precision:
            raise refused(
                text, f"a decimal has 1 to {_MOST_DIGITS} digits, of which its scale says how many are behind the point"
            )
        return DecimalType(precision, scale)
    if upper not in _TYPES or (sizes and upper != "VARCHAR"):
        raise refused(text, "the type of the cast is not on the list")
    return PrimitiveType(_TYPES[upper])


_PARTS = re.compile(r"(-?[\d.]+)([eE][+-]?\d+)?((?:[lLsSyYdDfF]|[bB][dD])?)")
_SUFFIXES = {"L": "long", "S": "short", "Y": "byte", "D": "double", "F": "float"}
_DIGITS_OF_A_LONG = 25
_MOST_DIGITS = 38
_MOST_DIGITS_OF_AN_EXPONENT = 6
_DECIMALS = ("DECIMAL", "DEC", "NUMERIC")
_TYPES = {
    "TINYINT": "byte",
    "BYTE": "byte",
    "SMALLINT": "short",
    "SHORT": "short",
    "INT": "integer",
    "INTEGER": "integer",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "STRING": "string",
    "VARCHAR": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "timestamp",
    "TIMESTAMP_NTZ": "timestamp_ntz",
}


def _double(text: str) -> Literal:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise InvalidRequest(
            f"The number {short(text)} is out of the range of DOUBLE.", code="INVALID_NUMERIC_LITERAL_RANGE", number=text[:100]
        )
    return Literal(value, PrimitiveType("double"))


def _decimal(digits: str, exponent: int) -> Literal:
    """Return the exact number; its length is checked before it is computed, so that no exponent allocates a gigabyte of zeros."""
    significant = digits.lstrip("-0").replace(".", "").lstrip("0")
    scale = len(digits.partition(".")[2]) - exponent
    if len(significant) - min(scale, 0) > _MOST_DIGITS or scale > _MOST_DIGITS:
        raise InvalidRequest(
            f"The number {digits[:60]} has more than {_MOST_DIGITS} digits.", code="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION"
        )
    value = Decimal(f"{digits}e{exponent}")
    value = value if scale >= 0 else Decimal(int(value))
    return Literal(value, decimal_type_of(value))
