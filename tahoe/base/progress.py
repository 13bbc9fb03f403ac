"""Progress of long operations: the port to which operations report, and the progress bar.

    operation ──progress("files read", 120, 3000)──► Progress ──┬─ silent (the default)
                                                                └─ shown(): a bar, after one second, for interactive users only

An operation takes `progress: Progress = silent` and calls it as often as necessary; it neither knows the observer nor waits for it.
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

from tahoe.base.clock import SYSTEM_CLOCK, Clock

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE_MS = 1_000
"""An operation that ends earlier shows nothing."""

_STEP_MS = 100  # between two drawings
_LISTED = 1_000
_FILES_LISTED = "files listed"
_one_display = threading.Lock()


class Progress(Protocol):
    """Receives the reports of a long operation: cheap to call, from any thread, and never raises."""

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        """Report the progress of a step.

        Args:
            step: the counted items, in words: ``"commits read"``, ``"files rewritten"``.
            done: the number of completed items.
            total: the total number of items; None if unknown.
        """


class _HasRows(Protocol):
    @property
    def num_rows(self) -> int: ...


Batch = TypeVar("Batch", bound=_HasRows)


def silent(step: str, done: int, total: int | None = None) -> None:
    """The `Progress` that ignores all reports."""


class Reported:
    """A `Progress` that records all reports in order, for tests."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, int, int | None]] = []

    def __call__(self, step: str, done: int, total: int | None = None) -> None:
        """Record the report."""
        self.reports.append((step, done, total))


def tracked(items: Iterable[T], progress: Progress, step: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and report each when the next is requested; the default of `total` is the length of a collection."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    progress(step, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        progress(step, done, total)


def tracked_rows(batches: Iterable[Batch], progress: Progress, step: str) -> Iterator[Batch]:
    """Yield the batches and report the number of their rows so far when the next is requested."""
    done = 0
    for batch in batches:
        yield batch
        done += batch.num_rows
        progress(step, done)


def tracked_listing(entries: Iterable[T], progress: Progress) -> Iterator[T]:
    """Yield the entries of a listing, whose number is unknown; report after each thousand and at the end."""
    count = 0
    for count, entry in enumerate(entries, start=1):
        yield entry
        if not count % _LISTED:
            progress(_FILES_LISTED, count)
    progress(_FILES_LISTED, count)


@contextmanager
def shown(clock: Clock = SYSTEM_CLOCK, *, console: object = None) -> Iterator[Progress]:
    """Provide a `Progress` that draws a bar on standard error, if that is a terminal, or in a notebook.

    Nothing is drawn in the first second, the bar is removed at the end, and pipes and files get no output. A nested operation has no
    bar of its own.

    Args:
        console: a `rich.console.Console` to draw on unconditionally; for tests.
    """
    if (console is None and not _is_interactive()) or not _one_display.acquire(blocking=False):
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
    """Draws with rich, which is imported only when there is something to draw.

    After one second the last report so far is drawn: the next one may be far away, for example with one large file.
    """

    def __init__(self, clock: Clock, console: object) -> None:
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
        """Draw. A closed terminal, or a notebook that cannot show widgets, ends the bar and not the operation."""
        try:
            step()
        except Exception:
            self._stopped = True
            logger.debug("The progress bar is disabled because it cannot be drawn", exc_info=True)

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


def _is_interactive() -> bool:
    """Whether standard error is a terminal, or this is a notebook that can show widgets."""
    if "ipykernel" in sys.modules:
        return find_spec("ipywidgets") is not None
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()
