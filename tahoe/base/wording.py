"""Texts shared by messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Format a count with thousands separators and its noun: ``1 file``, ``2 files``, ``1,234 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
