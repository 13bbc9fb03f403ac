"""The lines of the user's program that PySpark adds to errors: not looked up for the columns that Tahoe itself makes.

For each operation on a column, PySpark looks for the line that called it and passes the line to the JVM (`pyspark.errors.utils`, PySpark 4.0
to 4.3): several calls of the JVM, which take longer than most operations. For Tahoe's own columns it would find a line of Tahoe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from pyspark.errors import utils

_SWITCH = "is_debugging_enabled"


def skip_own_call_sites() -> None:
    """Have PySpark look up no lines for operations that Tahoe calls. A second call does nothing, nor does one in a PySpark without lookup."""
    original = getattr(utils, _SWITCH, None)
    if original is None or original.__module__ == __name__:
        return
    setattr(utils, _SWITCH, _users_only(original))


def _users_only(is_enabled: Callable[[], bool]) -> Callable[[], bool]:
    def is_enabled_for_caller() -> bool:
        return is_enabled() and not _is_of_tahoe(sys._getframe(1))

    return is_enabled_for_caller


def _is_of_tahoe(frame: FrameType | None) -> bool:
    """Return whether the first caller outside PySpark is Tahoe."""
    while frame is not None and _module(frame).startswith("pyspark."):
        frame = frame.f_back
    return frame is not None and _module(frame).startswith("tahoe.")


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
