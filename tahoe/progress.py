"""How far a long operation is: the one port that operations report to, and the bar that people see.

    operation ──progress("files read", 120, 3000)──► Progress ──┬─ silent (the default)
                                                                └─ shown(): a bar, after two seconds, for people only

An operation takes `progress: Progress = silent` and calls it as often as it likes; it neither knows nor waits for who looks.
`Table` and the command line open `shown()` around the operation.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

from tahoe.clock import SYSTEM_CLOCK, Clock

__all__ = ["Progress", "Reported", "shown", "silent", "tracked"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_MS = 2_000
"""An operation that is done by then shows nothing."""

_STEP_MS = 100  # between two drawings
_one_display = threading.Lock()


class Progress(Protocol):
    """What a long operation tells: cheap to call, from any thread, and it never raises."""

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        """Say how far `step` is.

        Args:
            step: what is counted, as a person reads it: ``"commits read"``, ``"files rewritten"``.
            done: how many so far.
            total: of how many; None where that is not known.
        """


def silent(step: str, done: int, total: int | None = None) -> None:
    """The `Progress` of those who do not look."""


class Reported:
    """A `Progress` that keeps all it was told, in order: for tests."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, int, int | None]] = []

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        """Keep the report."""
        self.reports.append((step, done, total))


def tracked(items: Iterable[T], progress: Progress, step: str, total: int | None = None) -> Iterator[T]:
    """The items, each reported when the next is asked for; `total` is the length of a collection unless it is given."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    progress(step, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        progress(step, done, total)


@contextmanager
def shown(clock: Clock = SYSTEM_CLOCK, *, console: Any = None) -> Iterator[Progress]:
    """A `Progress` that draws a bar on standard error where a person looks: on a terminal, or in a notebook.

    Nothing is drawn in the first two seconds, nothing is left when it ends, and nothing at all is drawn into pipes and files. An
    operation inside another one shares the outer one's bar by not having its own.

    Args:
        console: a `rich.console.Console` to draw on, whatever it is; for tests.
    """
    if (console is None and not _somebody_looks()) or not _one_display.acquire(blocking=False):
        yield silent
        return
    try:
        bar = _Bar(clock, console)
        try:
            yield bar
        finally:
            bar.stop()
    finally:
        _one_display.release()


class _Bar:
    """Draws with rich, which is imported only once there is something to draw.

    What was told last before the two seconds were over is drawn when they are: the next report may be far away, as with one large file.
    """

    def __init__(self, clock: Clock, console: Any) -> None:
        self._clock = clock
        self._console = console
        self._next_ms = clock.now_ms() + PATIENCE_MS
        self._stopped = False
        self._rich: Any = None
        self._tasks: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._last: tuple[str, int, int | None] | None = None
        self._patience: threading.Timer | None = None

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        now = self._clock.now_ms()
        if now < self._next_ms and not (self._tasks and done == total):
            self._last = step, done, total
            if self._patience is None and not self._stopped:
                self._wait((self._next_ms - now) / 1000)
            return
        with self._lock:
            if not self._stopped:
                self._next_ms = now + _STEP_MS
                self._try_to(partial(self._draw, step, done, total))

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._patience is not None:
                self._patience.cancel()
            if self._rich is not None:
                self._try_to(self._rich.stop)
                self._rich = None

    def _wait(self, seconds: float) -> None:
        with self._lock:
            if self._patience is None and not self._stopped:
                self._patience = threading.Timer(seconds, self._draw_last)
                self._patience.daemon = True
                self._patience.start()

    def _draw_last(self) -> None:
        with self._lock:
            if not self._stopped and not self._tasks and self._last is not None:
                self._try_to(partial(self._draw, *self._last))

    def _try_to(self, step: Callable[[], None]) -> None:
        """Draw. A terminal that is closed, or a notebook that cannot show widgets, ends the bar and not the operation."""
        try:
            step()
        except Exception:
            self._stopped = True
            logger.debug("The progress bar ends, as it cannot be drawn", exc_info=True)

    def _draw(self, step: str, done: int, total: int | None) -> None:
        if self._rich is None:
            self._rich = _rich_progress(self._console)
            self._rich.start()
        if step not in self._tasks:
            self._tasks[step] = self._rich.add_task(step, total=total)
        self._rich.update(self._tasks[step], completed=done, total=total)


def _rich_progress(console: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console if console is not None else Console(stderr=True),
        transient=True,
    )


def _somebody_looks() -> bool:
    """Whether standard error is a terminal, or this is a notebook that can show widgets."""
    if "ipykernel" in sys.modules:
        return find_spec("ipywidgets") is not None
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
