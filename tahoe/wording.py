"""How messages count."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """The count with its thousands apart and its noun: ``1 file``, ``2 files``, ``1,234 rows``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
