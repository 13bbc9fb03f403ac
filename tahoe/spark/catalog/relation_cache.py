"""The cache of relations of a session's catalog: for a Delta table it contains the plan of the version that the analyzer loaded.

A table that `loadTable` has returned is stored until the analyzer gets its plan from the cache.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.catalog.described_names import describing
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.scan.snapshot_plans import SnapshotPlans

_MOST_LOADED = 256


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
            while len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)

    def forget(self, key: str) -> None:
        """Record that the name is no Delta table."""
        with self._lock:
            self._loaded.pop(key, None)

    def get(self, key: str) -> LoadedTable | None:
        """Return the version recorded last; None for names that are no Delta tables."""
        with self._lock:
            return self._loaded.get(key)


def relation_cache(spark: SparkSession, original: JavaObject, interface: str, answers: object) -> JavaObject:
    """Return the proxy for Spark's own cache, which maps names to logical plans.

    Args:
        original: Spark's own cache.
        interface: Guava's ``Cache``, in the package in which this Spark version ships it.
        answers: `CacheAnswers`, or a JVM function as for `tahoe.spark.jvm.proxies.proxy`.
    """
    return proxy(spark, original, answers, ["getIfPresent"], [interface], described=describing(Jvm.of(spark), None))


class CacheAnswers:
    """The methods answered in Python.

    Args:
        original: Spark's own cache.
        spark: the session whose cache it is.
        tables: the loaded tables by name.
    """

    def __init__(self, original: JavaObject, spark: SparkSession, tables: LoadedTables) -> None:
        self._original, self._spark, self._loaded = original, spark, tables

    def getIfPresent(self, name: str, key: JavaObject) -> JavaObject | None:  # noqa: N802 - Guava's name
        """Return the plan of a Delta table; for every other name the entry of Spark's own cache.

        Args:
            name: the parts of the key, with null characters between them.
        """
        loaded = self._loaded.get(name)
        if loaded is None:
            return self._original.getIfPresent(key)
        return SnapshotPlans.of(self._spark).named_plan(self._spark, loaded.snapshot, loaded.follows)
