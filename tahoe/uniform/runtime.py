"""The state that conversions share: the queue, catalog calls, last errors, manifest caches, loaded catalogs, and the encoder that
a Spark session provides.

It is passed explicitly. A process has one runtime (`tahoe.api.process`), which finishes its work at interpreter exit; tests create as
many independent runtimes as they need.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - registers its hook first, see `finish_at_exit`
import logging
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from threading import Lock

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.base.progress import Progress, silent
from tahoe.uniform.catalogs.catalog import Catalog
from tahoe.uniform.catalogs.configured import ConfiguredCatalogs, catalog_names
from tahoe.uniform.catalogs.pointers import CatalogCalls, Pointer
from tahoe.uniform.convert.manifest_caches import ManifestCaches
from tahoe.uniform.convert.queue import ConversionQueue
from tahoe.uniform.convert.shards import ShardEncoder

logger = logging.getLogger(__name__)

EXIT_SECONDS = 600.0
"""How long interpreter exit waits for conversions; the next process completes unfinished ones."""

EXIT_CATALOG_SECONDS = 30.0
"""How long interpreter exit then waits for catalogs."""


@dataclass(frozen=True, slots=True)
class LastError:
    """The error of a table's last conversion.

    Args:
        version: the Delta version that was being converted.
    """

    version: int
    code: str
    message: str


class LastErrors:
    """The last error of each table, cleared when a conversion succeeds."""

    def __init__(self) -> None:
        self._errors: dict[str, LastError] = {}
        self._lock = Lock()

    def get(self, table: str) -> LastError | None:
        """Return the error of the table's last conversion; None if it succeeded or there was none."""
        with self._lock:
            return self._errors.get(table)

    def put(self, table: str, error: LastError | None) -> None:
        """Record the outcome of a table's conversion; None for success."""
        with self._lock:
            if error is None:
                self._errors.pop(table, None)
            else:
                self._errors[table] = error


class UniformRuntime:
    """The state that conversions share.

    Args:
        clock: the clock that measures how long catalog calls take. Conversions of a table use the table's own clock
            (`DeltaSide`).
        exit_seconds, exit_catalog_seconds: how long interpreter exit waits, see `finish_at_exit`.

    Attributes:
        queue: running and queued conversions.
        calls: catalog calls.
        errors: the errors of the last conversions.
        caches: caches of manifests and manifest lists.
        catalogs: the catalogs in PyIceberg's configuration.
        shards: encodes the manifests of large tables in other processes; None to encode them in this process.
        progress: provides, for a table's URL, the `Progress` of its conversion in the background.
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
        self.shards: ShardEncoder | None = None
        self.progress: Callable[[str], AbstractContextManager[Progress]] = lambda table: nullcontext(silent)
        self._begin()

    def _begin(self) -> None:
        self.queue = ConversionQueue()
        self.calls = CatalogCalls(self.clock)
        self.errors = LastErrors()
        self.caches = ManifestCaches()
        self.catalogs = ConfiguredCatalogs()

    def pointer(self, table: str, catalog: Catalog, *, here: bool = False) -> Pointer:
        """Return a table's pointer in a catalog, see `Pointer`."""
        return Pointer(table, catalog, self.calls, here)

    def pointers(self, table: str, configuration: Mapping[str, str]) -> list[Pointer]:
        """Return the pointers of the catalogs that the table's properties name."""
        return [self.pointer(table, self.catalogs.named(name)) for name in catalog_names(configuration)]

    def drain(self, timeout: float, catalog_timeout: float, table: str | None = None) -> list[str]:
        """Wait for conversions, then for catalogs; return a sentence for each that did not finish.

        Args:
            timeout: seconds to wait for conversions, which make progress.
            catalog_timeout: seconds to wait afterwards for catalogs, which may never answer.
            table: wait for this table alone.
        """
        self.queue.drain(timeout, table)
        silent = self.calls.drain(catalog_timeout, table)
        return [
            *(f"the conversion of {url} to Iceberg was not finished" for url in self.queue.busy(table)),
            *(
                f"the catalog {name} of {url} has not answered and may be out of date; readers by path are not affected"
                for url, name in silent
            ),
        ]

    def finish_at_exit(self) -> None:
        """Finish queued work at interpreter exit, except for catalogs that do not answer; reset the runtime in a forked child."""
        atexit.register(self._finish_late_commits)
        # Python refuses new threads and thread pools during exit, and conversions read large tables with several threads. The
        # hook that ends Python's own pools is called earlier, in reverse order of registration.
        with suppress(RuntimeError):  # the interpreter is already exiting: `_finish_late_commits` takes over
            getattr(threading, "_register_atexit", atexit.register)(self._finish)
        if hasattr(os, "register_at_fork"):
            # The child has none of its parent's threads, and the parent does the parent's work. Those threads may own locks, and
            # the connections are the parent's too: so the child keeps only the encoder.
            os.register_at_fork(after_in_child=self._begin)

    def _finish(self) -> None:
        for sentence in self.drain(self.exit_seconds, self.exit_catalog_seconds):
            logger.warning("at exit %s; the next commit, or tahoe uniform sync, completes it", sentence)

    def _finish_late_commits(self) -> None:
        """Finish commits that the program's own threads made after `_finish`."""
        self.drain(self.exit_seconds, 0.0)
