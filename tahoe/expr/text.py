"""Texts read as numbers, dates and timestamps, by the rules of Spark's casts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tahoe.exceptions import InvalidRequest

__all__ = ["boolean_of", "date_of", "number_of", "timestamp_of", "whole_number_of"]


def boolean_of(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("true", "t", "yes", "y", "1"):
        return True
    if lowered in ("false", "f", "no", "n", "0"):
        return False
    raise _malformed(text, "BOOLEAN")


def whole_number_of(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,38}", text.strip()):
        raise _malformed(text, "BIGINT")
    return int(text)


def number_of(text: str) -> float:
    stripped = text.strip().lower()
    if stripped in _SPECIAL:
        return _SPECIAL[stripped]
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?", stripped):
        raise _malformed(text, "DOUBLE")
    return float(stripped.rstrip("df"))


def date_of(text: str) -> date:
    """The day at the start of the text: ``yyyy``, ``yyyy-[m]m``, ``yyyy-[m]m-[d]d``, the last followed by anything after a blank or T."""
    found = _DATE.fullmatch(text.strip())
    if not found:
        raise _malformed(text, "DATE")
    year, month, day = found.groups()
    try:
        return date(int(year), int(month or 1), int(day or 1))
    except ValueError as error:
        raise _malformed(text, "DATE") from error


def timestamp_of(text: str, zone: tzinfo | None) -> datetime:
    """The moment that the text names.

    Args:
        zone: for texts without one of their own; the answer is in UTC. None asks for the wall clock shown, without a zone.
    """
    found = _TIMESTAMP.fullmatch(text.strip())
    if not found:
        raise _malformed(text, "TIMESTAMP")
    year, month, day, hour, minute, second, fraction, suffix = found.groups()
    try:
        shown = datetime(
            *(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0)),
            int((fraction or "")[:6].ljust(6, "0")),
        )
        if zone is None:
            return shown
        return shown.replace(tzinfo=_zone(suffix) if suffix else zone).astimezone(UTC)
    except (ValueError, OverflowError, ZoneInfoNotFoundError) as error:
        raise _malformed(text, "TIMESTAMP") from error


_SPECIAL = {
    **dict.fromkeys(("nan",), float("nan")),
    **dict.fromkeys(("infinity", "inf", "+infinity", "+inf"), float("inf")),
    **dict.fromkeys(("-infinity", "-inf"), float("-inf")),
}
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_TIMESTAMP = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?\s*([A-Za-z+-][A-Za-z0-9_/:+-]*)?)?)?)?"
)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2}):?([0-9]{2})?(?::?([0-9]{2}))?")


def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.fullmatch(name)
    if not found:
        return ZoneInfo(name)
    sign, hours, minutes, seconds = found.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if offset > timedelta(hours=18):
        raise ValueError(name)
    return timezone(-offset if sign == "-" else offset)


def _malformed(text: str, type_name: str) -> InvalidRequest:
    return InvalidRequest(
        f"The text '{text[:100]}' cannot be read as {type_name}; correct the literal.", code="CAST_INVALID_INPUT", value=text[:100]
    )
