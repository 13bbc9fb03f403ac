"""Conversions in the background: for each table at most one runs and at most one waits, and the newest waiting one wins.

Commits made while a conversion runs are therefore converted together. A writer never waits and never sees an error: those are
logged, and the status tells them. Threads are daemons that live as long as there is work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

__all__ = ["ConversionQueue"]

logger = logging.getLogger(__name__)

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
            return [url for url in self._running if table is None or url == table]

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
