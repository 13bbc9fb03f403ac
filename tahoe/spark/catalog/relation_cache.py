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
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.scan.relation import read_snapshot

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


def relation_cache(original: JavaObject, spark: SparkSession, tables: LoadedTables, interface: str) -> JavaObject:
    """Return the proxy for Spark's own cache, which maps names to logical plans.

    Args:
        original: Spark's own cache.
        spark: the session whose cache it is.
        tables: the loaded tables by name.
        interface: Guava's ``Cache``, in the package in which this Spark version ships it.
    """
    return proxy(spark, original, _RelationCache(original, spark, tables), ["getIfPresent"], [interface])


_MOST_PLANS = 64
_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
"""The settings that a plan depends on, besides its table."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan for a version of a table."""

    loaded: LoadedTable
    settings: tuple[str, ...]
    plan: JavaObject


class _RelationCache:
    """The methods answered in Python."""

    def __init__(self, original: JavaObject, spark: SparkSession, tables: LoadedTables) -> None:
        self._original, self._spark, self._loaded, self._jvm = original, spark, tables, Jvm.of(spark)
        self._plans: dict[str, _Plan] = {}

    def getIfPresent(self, key: JavaObject) -> JavaObject | None:  # noqa: N802 - Guava's name
        """Return the plan of a Delta table; for every other name the entry of Spark's own cache.

        A plan is created once per version. Each query gets a copy with its own columns, as in delta-spark, so that two frames of one table
        can be joined by `one["id"] == other["id"]`.
        """
        name = str(key.productIterator().mkString("\0"))
        loaded = self._loaded.get(name)
        if loaded is None:
            self._plans.pop(name, None)
            return self._original.getIfPresent(key)
        return _with_new_columns(self._jvm, self._plan(name, loaded))

    def _plan(self, name: str, loaded: LoadedTable) -> JavaObject:
        settings = tuple(str(self._spark.conf.get(setting)) for setting in _SETTINGS)
        cached = self._plans.get(name)
        if cached is not None and cached.settings == settings and _is_same(cached.loaded, loaded):
            return cached.plan
        plan = read_snapshot(self._spark, loaded.snapshot, follows=loaded.follows)._jdf.logicalPlan()
        while len(self._plans) >= _MOST_PLANS:
            self._plans.pop(next(iter(self._plans)), None)
        self._plans[name] = _Plan(loaded, settings, plan)
        return plan


def _is_same(first: LoadedTable, second: LoadedTable) -> bool:
    """Whether a plan of one is also one of the other. Each query has a handle of its own, and all handles of a table share its snapshots."""
    return first.snapshot is second.snapshot and (first.follows is None) == (second.follows is None)


def _with_new_columns(jvm: Jvm, plan: JavaObject) -> JavaObject:
    """Return a copy of an analyzed plan of file scans, projections and filters, with columns that differ from the original's.

    Spark's own copies lose the hidden output of a projection, which provides `_metadata`. So the plan is copied node by node from the leaves:
    each scan gets new columns, each alias a new id, and references are updated. An alias surrounds it, so that Spark never takes a bare
    relation for a folder of Parquet files to write into.
    """
    return jvm.cached("PlanCopy", lambda: compiled_object(jvm, "PlanCopy")).copy(plan)
