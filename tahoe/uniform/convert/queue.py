"""Conversions in the background: for each table at most one runs and at most one waits, and the newest waiting one wins.

Commits made while a conversion runs are therefore converted together. A writer never waits and never sees an error: those are
logged, and the status tells them. Threads are daemons that live as long as there is work; at the interpreter's exit what waits is
finished, but for catalogs that do not answer.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers its hook first
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

from tahoe.uniform.catalogs import pointers

__all__ = ["QUEUE", "ConversionQueue", "drain"]

logger = logging.getLogger(__name__)

EXIT_SECONDS = 600.0
"""How long the interpreter's exit waits for conversions; what is unfinished then is made up by the next process."""

EXIT_CATALOG_SECONDS = 30.0
"""How long it then waits for catalogs."""

Run = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Job:
    version: int
    run: Run


class ConversionQueue:
    """What waits and what runs, by table."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: dict[str, _Job] = {}
        self._running: dict[str, int] = {}

    def submit(self, table: str, run: Run, version: int) -> None:
        """Have `run(version)` called soon, unless the same or a newer version waits already. Returns at once.

        Args:
            table: the table's URL; conversions of one table never run side by side.
        """
        with self._changed:
            waiting = self._waiting.get(table)
            if waiting is not None and waiting.version >= version:
                return
            self._waiting[table] = _Job(version, run)
            if table in self._running:
                return
            self._running[table] = version
        Thread(target=self._work, args=(table,), name=f"tahoe-uniform {table}", daemon=True).start()

    def busy(self, table: str | None = None) -> list[str]:
        """The tables of which a conversion runs or waits; of `table` alone where one is named."""
        with self._changed:
            return [found for found in self._running if table is None or found == table]

    def is_busy(self, table: str) -> bool:
        """Whether a conversion of the table runs or waits."""
        with self._changed:
            return table in self._running

    def drain(self, timeout: float | None = None, table: str | None = None) -> bool:
        """Wait until nothing runs and nothing waits; False where that took longer than `timeout` seconds.

        Args:
            table: wait for this table alone.
        """
        with self._changed:
            return self._changed.wait_for(lambda: not self.busy(table), timeout)

    def _work(self, table: str) -> None:
        while True:
            with self._changed:
                job = self._waiting.pop(table, None)
                if job is None:
                    del self._running[table]
                    self._changed.notify_all()
                    return
                self._running[table] = job.version
            try:
                job.run(job.version)
            except BaseException:  # a panic of a compiled library is no Exception
                # The writer's commit stands; the next commit's conversion makes up for this one.
                logger.exception("version %d of %s could not be converted to Iceberg", job.version, table)


QUEUE = ConversionQueue()


def drain(timeout: float, catalog_timeout: float, table: str | None = None) -> list[str]:
    """Wait for conversions, then for the catalogs; what is left, each told by a sentence.

    Args:
        timeout: seconds to wait for conversions, which make progress.
        catalog_timeout: seconds to wait after that for catalogs, which may never answer.
        table: wait for this table alone.
    """
    QUEUE.drain(timeout, table)
    silent = pointers.CALLS.drain(catalog_timeout, table)
    return [
        *(f"the conversion of {url} to Iceberg was not finished" for url in QUEUE.busy(table)),
        *(f"the catalog {name} of {url} has not answered and may stay behind; readers by path do not" for url, name in silent),
    ]


def _finish() -> None:
    for left in drain(EXIT_SECONDS, EXIT_CATALOG_SECONDS):
        logger.warning("at exit %s; the next commit, or tahoe uniform sync, makes up for it", left)


def _finish_the_rest() -> None:
    """What threads of the program's own have committed after `_finish`."""
    drain(EXIT_SECONDS, 0.0)


def _forget() -> None:
    """A forked child has none of its parent's threads, and the parent does the parent's work."""
    global QUEUE
    QUEUE = ConversionQueue()


atexit.register(_finish_the_rest)
# Python refuses new threads and thread pools to whoever runs at its exit, and conversions read with several threads where there is much to
# read. The hook by which its own pools end is called before that, those that were registered last first.
getattr(threading, "_register_atexit", atexit.register)(_finish)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
