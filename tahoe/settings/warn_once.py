"""Warnings that are issued once per process."""

from __future__ import annotations

import sys
import threading
import warnings

from tahoe.base.exceptions import TahoeWarning

_ISSUED: set[str] = set()
_LOCK = threading.Lock()


def warn_once(name: str, message: str) -> None:
    """Issue a `TahoeWarning`, unless this process has already issued one with the same `name`."""
    with _LOCK:
        if name in _ISSUED:
            return
        _ISSUED.add(name)
    warnings.warn(message, TahoeWarning, stacklevel=_callers_level())


def _callers_level() -> int:
    """Return the stack level of the nearest caller outside Tahoe, so that the warning shows that caller's line."""
    frame, level = sys._getframe(2), 2
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("tahoe.") and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def reset_warnings() -> None:
    """Forget the issued warnings, so that a test can provoke them again."""
    with _LOCK:
        _ISSUED.clear()
