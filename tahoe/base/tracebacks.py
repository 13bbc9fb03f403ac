"""The part of a traceback that concerns the user: the lines of their program, without those of Tahoe, PySpark and py4j.

`shortened` removes the frames from an error that leaves a public method. An error that reaches the user through Spark collects frames of
PySpark on its way, so `install_hook` shortens it when Python prints it, and `rendered` when a notebook does; the error itself keeps its
frames. The environment variable `VARIABLE` keeps whole tracebacks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

VARIABLE = "TAHOE_TRACEBACK"
_ENGINES = frozenset({"tahoe", "tahoe_startup", "pyspark_delta", "pyspark", "py4j"})
_NOTEBOOKS = frozenset({"IPython", "ipykernel"})
_LONGEST_CAUSE = 300


def is_whole() -> bool:
    """Return whether the environment requests whole tracebacks."""
    return bool(os.environ.get(VARIABLE))


def shortened(error: BaseException) -> BaseException:
    """Return an error whose traceback begins at the caller of this function, as do those of its causes.

    Users see the line of their program and the message.
    """
    if not is_whole():
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = None
            cause = cause.__cause__
    return error


def package_of(frame: FrameType) -> str:
    """Return the top-level package whose code runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_users(frame: FrameType) -> bool:
    """Return whether a frame runs neither an engine's code nor that of an installed package or of Python itself."""
    package, file = package_of(frame), frame.f_code.co_filename
    installed = "site-packages" in file or "dist-packages" in file
    return not installed and package not in _ENGINES and package not in sys.stdlib_module_names


def users_part(first: TracebackType | None) -> TracebackType | None:
    """Return a traceback of the frames before the first engine's, and of the user's own frames after it; None if there are none."""
    frames, before_engines = [], True
    for entry in _entries(first):
        package = package_of(entry.tb_frame)
        before_engines = before_engines and package not in _ENGINES
        if (before_engines and package not in _NOTEBOOKS) or is_users(entry.tb_frame):
            frames.append(entry)
    part: TracebackType | None = None
    for entry in reversed(frames):
        part = TracebackType(part, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return part


@contextmanager
def only_users_part(error: BaseException) -> Iterator[TracebackType | None]:
    """Give an error and its causes the user's part of their tracebacks within the block, which gets the error's.

    A cause that no line of the user raised is part of the chain only if its message is short and not repeated by the error's.
    """
    chain = list(_chain(error))
    before = [(each, each.__traceback__, each.__cause__, each.__context__, each.__suppress_context__) for each in chain]
    try:
        for each in chain:
            each.__traceback__ = users_part(each.__traceback__)
        for each in chain:
            if each.__cause__ is not None and not _adds_to(str(each), each.__cause__):
                each.__cause__ = None
            if each.__context__ is not None and each.__context__.__traceback__ is None:
                each.__suppress_context__ = True
        yield error.__traceback__
    finally:
        for each, frames, cause, context, suppresses in before:
            each.__traceback__, each.__cause__, each.__context__ = frames, cause, context
            each.__suppress_context__ = suppresses


def rendered(error: BaseException) -> list[str]:
    """Return the lines that a notebook shows for an error."""
    import traceback  # only for errors

    with only_users_part(error):
        return "".join(traceback.format_exception(error)).splitlines()


def install_hook(is_short: Callable[[BaseException], bool]) -> None:
    """Make Python print only the user's part of an uncaught error for which `is_short` returns True. A second call does nothing.

    The hook that was installed before prints it, and gets all other errors unchanged.
    """
    previous = sys.excepthook
    if getattr(previous, "_tahoe", False):
        return

    def hook(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
        if is_whole() or not is_short(error):
            previous(kind, error, frames)
            return
        with only_users_part(error) as part:
            previous(kind, error, part)

    hook._tahoe = True  # type: ignore[attr-defined]
    sys.excepthook = hook


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _adds_to(message: str, cause: BaseException) -> bool:
    """Return whether a cause is worth its lines: the user's code raised it, or it has a short text that the message does not repeat."""
    text = str(getattr(cause, "message", cause))
    return cause.__traceback__ is not None or (text not in message and "\n" not in text and len(text) <= _LONGEST_CAUSE)
