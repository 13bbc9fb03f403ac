"""Telling somebody something once a process."""

from __future__ import annotations

import threading
import warnings

from tahoe.exceptions import TahoeWarning

__all__ = ["forget_what_was_told", "tell_once"]

_TOLD: set[str] = set()
_LOCK = threading.Lock()


def tell_once(name: str, message: str) -> None:
    """Warn (`TahoeWarning`), unless there was a warning of this name before in this process."""
    with _LOCK:
        if name in _TOLD:
            return
        _TOLD.add(name)
    warnings.warn(message, TahoeWarning, stacklevel=3)


def forget_what_was_told() -> None:
    """Warn again of everything, for tests."""
    with _LOCK:
        _TOLD.clear()
