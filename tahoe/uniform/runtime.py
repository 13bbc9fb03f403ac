"""What conversions share, and who owns it: one object holds the queue, the calls of catalogs, what went wrong, what is remembered of
manifests, the catalogs that were reached, and the encoder that a Spark session offers.

It is passed to whoever needs it. A process has one of its own (`tahoe.process`), whose work is finished at the interpreter's exit; a test
makes as many as it likes, and two of them know nothing of each other.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers its hook first, see `finish_at_exit`
import logging
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.uniform.catalogs.catalog import Catalog
from tahoe.uniform.catalogs.configured import ConfiguredCatalogs, catalog_names
from tahoe.uniform.catalogs.pointers import CatalogCalls, Pointer
from tahoe.uniform.convert.manifest_caches import ManifestCaches
from tahoe.uniform.convert.queue import ConversionQueue
from tahoe.uniform.convert.slices import SliceEncoder

__all__ = ["EXIT_CATALOG_SECONDS", "EXIT_SECONDS", "LastError", "LastErrors", "UniformRuntime"]

logger = logging.getLogger(__name__)

EXIT_SECONDS = 600.0
"""How long the interpreter's exit waits for conversions; what is unfinished then is made up by the next process."""

EXIT_CATALOG_SECONDS = 30.0
"""How long it then waits for catalogs."""


@dataclass(frozen=True, slots=True)
class LastError:
    """What went wrong last.

    Args:
        version: the Delta version that was to be shown.
    """

    version: int
    code: str
    message: str


class LastErrors:
    """What went wrong last, by table; forgotten when a conversion succeeds."""

    def __init__(self) -> None:
        self._known: dict[str, LastError] = {}
        self._lock = Lock()

    def get(self, table: str) -> LastError | None:
        """What went wrong last with a table; None where its last conversion succeeded, or there was none."""
        with self._lock:
            return self._known.get(table)

    def put(self, table: str, error: LastError | None) -> None:
        """Note how a table's conversion ended; None for a success."""
        with self._lock:
            if error is None:
                self._known.pop(table, None)
            else:
                self._known[table] = error


class UniformRuntime:
    """The state that conversions share.

    Args:
        clock: the time by which calls of catalogs are told to hang. Conversions of a table go by the table's own (`DeltaSide`).
        exit_seconds, exit_catalog_seconds: how long the interpreter's exit waits, see `finish_at_exit`.

    Attributes:
        queue: conversions that run or wait.
        calls: of catalogs.
        errors: of the last conversions.
        caches: of manifests and manifest lists.
        catalogs: of PyIceberg's configuration.
        slices: encodes the manifests of large tables in other processes; None where this process does.
    """

    def __init__(
        self,
        clock: Clock = SYSTEM_CLOCK,
        *,
        exit_seconds: float = EXIT_SECONDS,
        exit_catalog_seconds: float = EXIT_CATALOG_SECONDS,
    ) -> None:
        self.clock = clock
        self.exit_seconds = exit_seconds
        self.exit_catalog_seconds = exit_catalog_seconds
        self.slices: SliceEncoder | None = None
        self._begin()

    def _begin(self) -> None:
        self.queue = ConversionQueue()
        self.calls = CatalogCalls(self.clock)
        self.errors = LastErrors()
        self.caches = ManifestCaches()
        self.catalogs = ConfiguredCatalogs()

    def pointer(self, table: str, catalog: Catalog, *, here: bool = False) -> Pointer:
        """A table's pointer in a catalog, see `Pointer`."""
        return Pointer(table, catalog, self.calls, here)

    def pointers(self, table: str, configuration: Mapping[str, str]) -> list[Pointer]:
        """Those in the catalogs that the table's properties name."""
        return [self.pointer(table, self.catalogs.named(name)) for name in catalog_names(configuration)]

    def drain(self, timeout: float, catalog_timeout: float, table: str | None = None) -> list[str]:
        """Wait for conversions, then for the catalogs; what is left, each told by a sentence.

        Args:
            timeout: seconds to wait for conversions, which make progress.
            catalog_timeout: seconds to wait after that for catalogs, which may never answer.
            table: wait for this table alone.
        """
        self.queue.drain(timeout, table)
        silent = self.calls.drain(catalog_timeout, table)
        return [
            *(f"the conversion of {url} to Iceberg was not finished" for url in self.queue.busy(table)),
            *(
                f"the catalog {name} of {url} has not answered and may stay behind; readers by path do not"
                for url, name in silent
            ),
        ]

    def finish_at_exit(self) -> None:
        """Have what waits finished at the interpreter's exit, but for catalogs that do not answer; and a forked child begin afresh."""
        atexit.register(self._finish_the_rest)
        # Python refuses new threads and thread pools to whoever runs at its exit, and conversions read with several threads where there is
        # much to read. The hook by which its own pools end is called before that, those that were registered last first.
        with suppress(RuntimeError):  # the interpreter is about to exit already: `_finish_the_rest` must do
            getattr(threading, "_register_atexit", atexit.register)(self._finish)
        if hasattr(os, "register_at_fork"):
            # The child has none of its parent's threads, and the parent does the parent's work. Locks may be held by those threads, and
            # connections are the parent's too: so nothing is kept but the encoder.
            os.register_at_fork(after_in_child=self._begin)

    def _finish(self) -> None:
        for left in self.drain(self.exit_seconds, self.exit_catalog_seconds):
            logger.warning("at exit %s; the next commit, or tahoe uniform sync, makes up for it", left)

    def _finish_the_rest(self) -> None:
        """What threads of the program's own have committed after `_finish`."""
        self.drain(self.exit_seconds, 0.0)
