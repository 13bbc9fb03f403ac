"""The background queue of conversions: per table at most one runs and one waits, and the newest waiting one wins.

Commits made while a conversion runs are therefore converted together. A writer never waits and never sees an error: errors are logged
and reported by the status. Threads are daemons and end with the work.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from threading import Condition, Thread

from tahoe.base.log_fields import about

logger = logging.getLogger(__name__)

Run = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Job:
    version: int
    run: Run
    context: Context


class ConversionQueue:
    """Running and waiting conversions, by table."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._waiting: dict[str, _Job] = {}
        self._running: dict[str, int] = {}

    def submit(self, table: str, run: Run, version: int) -> None:
        """Queue `run(version)` unless the same or a newer version is already queued or being converted. Returns at once.

        Args:
            table: the table's URL; conversions of one table never run side by side.
        """
        with self._changed:
            waiting = self._waiting.get(table)
            if self._running.get(table, -1) >= version or (waiting is not None and waiting.version >= version):
                return
            self._waiting[table] = _Job(version, run, copy_context())
            if table in self._running:
                return
            self._running[table] = version
        Thread(target=self._work, args=(table,), name=f"tahoe-uniform {table}", daemon=True).start()

    def busy(self, table: str | None = None) -> list[str]:
        """Return the tables with a running or waiting conversion; only `table` if it is set."""
        with self._changed:
            return [url for url in self._running if table is None or url == table]

    def is_busy(self, table: str) -> bool:
        """Whether a conversion of the table runs or waits."""
        with self._changed:
            return table in self._running

    def drain(self, timeout: float | None = None, table: str | None = None) -> bool:
        """Wait until nothing runs or waits; return False if that takes longer than `timeout` seconds.

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
                # In the caller's context, so that a trace shows the conversion below the operation that committed.
                job.context.run(job.run, job.version)
            except BaseException:  # a panic in a compiled library is not an Exception
                # The writer's commit is unaffected; the next commit's conversion includes it.
                record = about(table, job.version)
                logger.exception("version %d of %s could not be converted to Iceberg", job.version, table, extra=record)
