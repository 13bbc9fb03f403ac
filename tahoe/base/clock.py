"""The only source of time, unique names and random numbers, so that any race can be replayed from a seed."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tahoe.base.exceptions import InvalidRequest


@dataclass(frozen=True, slots=True)
class Moment:
    """The time and time zone of a statement.

    Args:
        ms: milliseconds since the epoch.
        time_zone: in which its expressions read the wall clock of a timestamp, and texts without a time zone are timestamps.
    """

    ms: int
    time_zone: str = "UTC"


def zone_of(time_zone: str) -> tzinfo:
    """Return the zone of a name. Raises `InvalidRequest` (``TAHOE_TIME_ZONE``) for a name that is none."""
    zone = known_zone(time_zone)
    if zone is None:
        message = f"'{time_zone}' is no time zone; use a name such as 'UTC', 'Europe/Paris' or '+02:00'."
        raise InvalidRequest(message, code="TAHOE_TIME_ZONE", time_zone=time_zone)
    return zone


def known_zone(time_zone: str) -> tzinfo | None:
    """Return the zone of a name that Spark accepts: a region, an offset such as ``+02:00`` or ``GMT+2``, or a short name of Java.

    None for another name.
    """
    if time_zone in ("UTC", "Z", "GMT", "UT"):
        return UTC
    match = _OFFSET.fullmatch(time_zone)
    if match is None:
        try:
            return ZoneInfo(_SHORT_NAMES.get(time_zone, time_zone))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
    sign, hours, minutes, seconds = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    if offset > _GREATEST_OFFSET:
        return None
    return timezone(-offset if sign == "-" else offset)


_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2}):?([0-9]{2})?(?::?([0-9]{2}))?")
_GREATEST_OFFSET = timedelta(hours=18)
"""Of `java.time.ZoneOffset`."""
_SHORT_NAMES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""The regions of Java's short names (`java.time.ZoneId.SHORT_IDS`) that are no regions themselves."""


class Clock(Protocol):
    """Time, waiting, identifiers and random numbers for the rest of Tahoe."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def uuid(self) -> str:
        """A new random UUID in its 36-character text form."""

    def random(self) -> float:
        """A number in [0, 1)."""


class SystemClock:
    """The machine's own time and randomness."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, in UTC, by the machine's clock."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Block this thread for the given number of seconds."""
        time.sleep(seconds)

    def uuid(self) -> str:
        """A random UUID (version 4), in its usual spelling."""
        return str(uuid.uuid4())

    def random(self) -> float:
        """A number in [0, 1) from the process's generator."""
        import random  # 2 ms, and few processes need it

        return random.random()


class SeededClock:
    """A clock that advances only when called, with reproducible random numbers, for tests and simulation.

    Args:
        seed: the same seed produces the same names and numbers.
        start_ms: the time before the first call of `now_ms`; each call advances it by one millisecond.
    """

    def __init__(self, seed: int = 0, start_ms: int = 1_700_000_000_000) -> None:
        import random

        self._random = random.Random(seed)
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch: one more than at the last call."""
        self._now_ms += 1
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        """Advance the time by the given number of seconds, without waiting."""
        self._now_ms += round(seconds * 1000)

    def uuid(self) -> str:
        """The next UUID (version 4) of the seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        """The next number in [0, 1) of the seed."""
        return self._random.random()


SYSTEM_CLOCK = SystemClock()
