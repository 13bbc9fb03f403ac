"""Time and chance that repeat, and those of the machine."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import pytest

from tahoe.base.clock import SYSTEM_CLOCK, SeededClock, known_zone, zone_of
from tahoe.base.exceptions import InvalidRequest


def test_a_seed_gives_the_same_names_and_numbers_and_another_seed_others() -> None:
    first, again, other = SeededClock(3), SeededClock(3), SeededClock(4)
    drawn = [(clock.uuid(), clock.random(), clock.now_ms()) for clock in (first, again, other)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert uuid.UUID(drawn[0][0]).version == 4 and 0 <= drawn[0][1] < 1


def test_seeded_time_advances_by_a_millisecond_per_call_and_by_sleeps() -> None:
    clock = SeededClock(start_ms=10)
    assert (clock.now_ms(), clock.now_ms()) == (11, 12)
    clock.sleep(1.5)
    assert clock.now_ms() == 1513


def test_the_systems_own_are_never_the_same() -> None:
    before = SYSTEM_CLOCK.now_ms()
    SYSTEM_CLOCK.sleep(0.002)
    assert SYSTEM_CLOCK.now_ms() > before > 1_600_000_000_000
    assert SYSTEM_CLOCK.uuid() != SYSTEM_CLOCK.uuid() and 0 <= SYSTEM_CLOCK.random() < 1


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("GMT", 0),
        ("+8", 8),
        ("+08:00", 8),
        ("-0330", -3.5),
        ("GMT+8", 8),
        ("UTC-08:00", -8),
        ("Asia/Tokyo", 9),
        ("JST", 9),
        ("PST", -8),
        ("EST", -5),
        ("+18:00", 18),
    ],
)
def test_a_zone_is_a_region_an_offset_or_a_short_name(name: str, hours: float) -> None:
    assert zone_of(name).utcoffset(datetime(2026, 1, 1)) == timedelta(hours=hours)


@pytest.mark.parametrize("name", ["+18:01", "+", "GMT8", "Europe", "Nowhere/At_All", "", "/etc/passwd", "../UTC"])
def test_another_text_is_no_zone(name: str) -> None:
    assert known_zone(name) is None
    with pytest.raises(InvalidRequest, match="TAHOE_TIME_ZONE"):
        zone_of(name)
