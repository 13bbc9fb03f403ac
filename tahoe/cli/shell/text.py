"""Formatting of numbers, times and names for people."""

from __future__ import annotations

from datetime import UTC, datetime


def size(count: int | None) -> str:
    """Format bytes in IEC units: ``512 B``, ``1.5 KiB``, ``23 MiB``."""
    if count is None:
        return ""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        if value < 1023.5 or unit == "PiB":
            break
    return f"{value:.1f} {unit}" if value < 99.95 else f"{value:.0f} {unit}"


def amount(count: int | str | None) -> str:
    """Format a whole number with thousands separators; other text is unchanged."""
    if count is None:
        return ""
    return f"{int(count):,}" if str(count).lstrip("-").isdigit() else str(count)


def ago(then_ms: int, now_ms: int) -> str:
    """Format the time since, in one unit: ``just now``, ``5 minutes ago``; ``in 2 hours`` if a clock is ahead.

    Args:
        then_ms, now_ms: milliseconds since the epoch.
    """
    seconds = abs(now_ms - then_ms) // 1000
    if seconds < 5:
        return "just now"
    for unit, length in _UNITS:
        if seconds >= length:
            count = seconds // length
            span = f"{count} {unit}{'s' if count > 1 else ''}"
            break
    return f"{span} ago" if then_ms <= now_ms else f"in {span}"


def moment(time: datetime) -> str:
    """Format a time to the second, in UTC: ``2026-08-22 09:30:00Z``."""
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def visible(text: str) -> str:
    """Escape control characters, and replace line breaks by spaces: a name in a table must not control the terminal."""
    return "".join(c if c.isprintable() else " " if c == "\n" else c.encode("unicode_escape").decode() for c in text)


_UNITS = (
    ("year", 31_536_000),
    ("month", 2_592_000),
    ("week", 604_800),
    ("day", 86_400),
    ("hour", 3600),
    ("minute", 60),
    ("second", 1),
)
