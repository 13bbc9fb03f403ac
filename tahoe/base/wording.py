"""Texts shared by messages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime


def counted(count: int, noun: str) -> str:
    """Format a count with thousands separators and its noun: ``1 file``, ``2 files``, ``1,234 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortened(text: str, most: int) -> str:
    """Return the text, cut to so many characters with an ellipsis at its end if it is longer."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def utc_minute(time_ms: int) -> str:
    """Return a time as ``2026-01-31 12:34``, in UTC.

    Args:
        time_ms: milliseconds since 1970.
    """
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M}"


def suggestion(name: str, known: Iterable[str], least: float = 0.6) -> str:
    """Return a sentence that suggests the known name most similar to a misspelled one, with a leading space; empty if none is similar.

    Args:
        least: the least similarity, of 0 to 1.
    """
    from difflib import get_close_matches  # only for errors

    by_lower_case = {each.lower(): each for each in known}
    closest = get_close_matches(name.lower(), by_lower_case, n=1, cutoff=least)
    return f" Did you mean '{by_lower_case[closest[0]]}'?" if closest else ""
