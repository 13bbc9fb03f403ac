"""The tables that `loadTable` has returned, stored until the analyzer gets their plans from the cache of relations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from tahoe.api.table import Table
from tahoe.snapshot.snapshot import Snapshot

_MOST = 256


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A version of a table that a query has loaded.

    Args:
        follows: the table, if the query asked for the newest version; None for a specific version.
    """

    snapshot: Snapshot
    follows: Table | None


class LoadedTables:
    """The most recently loaded tables, by catalog, database and name.

    They may be read on another thread than the one that loaded them. They may be slightly outdated, because a plan that follows its table
    is renewed when its query is planned (`tahoe.spark.scan.renewal`).
    """

    def __init__(self) -> None:
        self._loaded: OrderedDict[str, LoadedTable] = OrderedDict()
        self._lock = threading.Lock()

    def record(self, key: str, loaded: LoadedTable) -> None:
        """Record the version for a name."""
        with self._lock:
            self._loaded[key] = loaded
            self._loaded.move_to_end(key)
            while len(self._loaded) > _MOST:
                self._loaded.popitem(last=False)

    def forget(self, key: str) -> None:
        """Record that the name is no Delta table."""
        with self._lock:
            self._loaded.pop(key, None)

    def get(self, key: str) -> LoadedTable | None:
        """Return the version recorded last; None for names that are no Delta tables."""
        with self._lock:
            return self._loaded.get(key)
