"""Values of one type as values of another, by the rules of Spark's casts; only of constants, never of columns."""

from __future__ import annotations

import re
import struct
from datetime import UTC, date, datetime, tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from tahoe.base.clock import known_zone
from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.types import DataType, DecimalType, PrimitiveType


def cast_value(value: object, target: DataType, zone: tzinfo) -> Any:
    """`CAST(value AS target)` for a value that is not None.

    Args:
        zone: the session's time zone, for casts between timestamps and strings or dates.

    Raises:
        InvalidRequest: the value does not fit, or a filter may not contain this cast.
    """
    match target:
        case DecimalType(precision, scale) if isinstance(value, int | Decimal | str) and not isinstance(value, bool):
            return _decimal(value, precision, scale)
        case PrimitiveType("boolean") if isinstance(value, bool | str):
            return boolean_of(value) if isinstance(value, str) else value
        case PrimitiveType("string") if isinstance(value, str):
            return value
        case PrimitiveType("binary") if isinstance(value, str | bytes):
            return value.encode() if isinstance(value, str) else value
        case PrimitiveType(name) if name in _BITS and isinstance(value, int | str) and not isinstance(value, bool):
            return _whole(value, name)
        case PrimitiveType("float" | "double") if isinstance(value, str | int | float | Decimal) and not isinstance(value, bool):
            number = number_of(value) if isinstance(value, str) else float(value)
            return number if target == PrimitiveType("double") else float32(number)
        case PrimitiveType("date" | "timestamp" | "timestamp_ntz" as name) if isinstance(value, str | date):
            return _time(value, name, zone)
    raise InvalidRequest(
        f"A filter may not cast {str(value)[:100]!r} to {target}; write the literal in that type.",
        code="TAHOE_EXPRESSION_NOT_ALLOWED",
    )


def boolean_of(text: str) -> bool:
    """The boolean that Spark reads in a text. Raises `InvalidRequest` for text that is none."""
    lowered = text.strip().lower()
    if lowered in ("true", "t", "yes", "y", "1"):
        return True
    if lowered in ("false", "f", "no", "n", "0"):
        return False
    raise _malformed(text, "BOOLEAN")


def whole_number_of(text: str) -> int:
    """The whole number in a text, of up to 38 digits. Raises `InvalidRequest` for text that is none."""
    if not re.fullmatch(r"[+-]?[0-9]{1,38}", text.strip()):
        raise _malformed(text, "BIGINT")
    return int(text)


def number_of(text: str) -> float:
    """The float in a text, NaN and infinities by their names. Raises `InvalidRequest` for text that is none."""
    stripped = text.strip().lower()
    if stripped in _SPECIAL:
        return _SPECIAL[stripped]
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?", stripped):
        raise _malformed(text, "DOUBLE")
    return float(stripped.rstrip("df"))


def date_of(text: str) -> date:
    """The day at the start: ``yyyy``, ``yyyy-[m]m``, ``yyyy-[m]m-[d]d``; after the last, a blank or T and anything may follow."""
    match = _DATE.fullmatch(text.strip())
    if not match:
        raise _malformed(text, "DATE")
    year, month, day = match.groups()
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError as error:
        raise _malformed(text, "DATE") from error


def timestamp_of(text: str, zone: tzinfo | None) -> datetime:
    """Parse the text of a timestamp.

    Args:
        zone: for texts without one of their own; the answer is in UTC. None asks for the wall clock shown, without a zone.
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    if not match:
        raise _malformed(text, "TIMESTAMP")
    year, month, day, hour, minute, second, fraction, suffix = match.groups()
    try:
        local = datetime(
            *(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)),
            int((fraction or "")[:6].ljust(6, "0")),
        )
        if zone is None:
            return local
        own_zone = known_zone(suffix) if suffix else zone
        if own_zone is None:
            raise ValueError(suffix)
        return local.replace(tzinfo=own_zone).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise _malformed(text, "TIMESTAMP") from error


_SPECIAL = {
    **dict.fromkeys(("nan",), float("nan")),
    **dict.fromkeys(("infinity", "inf", "+infinity", "+inf"), float("inf")),
    **dict.fromkeys(("-infinity", "-inf"), float("-inf")),
}
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?\s*([A-Za-z+-][A-Za-z0-9_/:+-]*)?)?)?)?)?"
)
_WIDE = Context(prec=80)
_BITS = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def _whole(value: int | str, name: str) -> int:
    number = whole_number_of(value) if isinstance(value, str) else value
    if not -(1 << _BITS[name]) <= number < 1 << _BITS[name]:
        raise _overflow(number, name)
    return number


def _decimal(value: int | Decimal | str, precision: int, scale: int) -> Decimal:
    if not 0 <= scale <= precision <= 38:
        raise InvalidRequest(
            f"There is no type decimal({precision},{scale}): at most 38 digits, and no more behind the point than in all.",
            code="DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION" if precision > 38 else "TAHOE_DECIMAL_TYPE",
        )
    try:
        number = Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE)
    except InvalidOperation as error:
        raise _malformed(str(value), f"DECIMAL({precision},{scale})") from error
    if not number.is_finite() or len(number.as_tuple().digits) > precision:
        raise _overflow(number, f"decimal({precision},{scale})")
    return number


def float32(number: float) -> float:
    """Return the nearest number of the type float."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _time(value: str | date, name: str, zone: tzinfo) -> date:
    if name == "date":
        if isinstance(value, str):
            return date_of(value)
        if isinstance(value, datetime):
            return (value.astimezone(zone) if value.tzinfo else value).date()
        return value
    if isinstance(value, str):
        return timestamp_of(value, zone if name == "timestamp" else None)
    local = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if name == "timestamp_ntz":
        return local.astimezone(zone).replace(tzinfo=None) if local.tzinfo else local
    return (local if local.tzinfo else local.replace(tzinfo=zone)).astimezone(UTC)


def _overflow(number: int | Decimal, type_name: str) -> InvalidRequest:
    return InvalidRequest(f"{number} does not fit {type_name}; use a wider type.", code="CAST_OVERFLOW", value=str(number)[:100])


def _malformed(text: str, type_name: str) -> InvalidRequest:
    return InvalidRequest(
        f"The text '{text[:100]}' cannot be read as {type_name}; correct the literal.",
        code="CAST_INVALID_INPUT",
        value=text[:100],
    )
