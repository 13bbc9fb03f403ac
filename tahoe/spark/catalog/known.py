"""What the analyzer was told of a name, until it asks for the plan: `loadTable` says it, and the cache of relations is asked for it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from tahoe.snapshot.snapshot import Snapshot
from tahoe.table import Table

__all__ = ["KnownTables", "Loaded"]

_MOST = 256


@dataclass(frozen=True, slots=True)
class Loaded:
    """A version of a table that a query was told of.

    Args:
        follows: the table, where the newest version is meant; None for one that was named.
    """

    snapshot: Snapshot
    follows: Table | None


class KnownTables:
    """The newest of what was loaded, by catalog, database and name. It may be asked on another thread than the one that was told; what
    it says may be a moment old, for a plan that follows its table is made new when its query is planned (`tahoe.spark.scan.renewal`)."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[str, Loaded] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, key: str, loaded: Loaded) -> None:
        """That this is what the name means."""
        with self._lock:
            self._loaded[key] = loaded
            self._loaded.move_to_end(key)
            while len(self._loaded) > _MOST:
                self._loaded.popitem(last=False)

    def forget(self, key: str) -> None:
        """The name is no Delta table's."""
        with self._lock:
            self._loaded.pop(key, None)

    def ask(self, key: str) -> Loaded | None:
        """What was told last; None for names that are no Delta table's."""
        with self._lock:
            return self._loaded.get(key)
