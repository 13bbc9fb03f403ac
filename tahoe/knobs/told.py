"""Telling somebody something once a process."""

from __future__ import annotations

import sys
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
    warnings.warn(message, TahoeWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """How far above `tell_once` the code stands that is not Tahoe's, so that the warning shows its line."""
    frame, level = sys._getframe(2), 2
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("tahoe.") and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def forget_what_was_told() -> None:
    """Warn again of everything, for tests."""
    with _LOCK:
        _TOLD.clear()
