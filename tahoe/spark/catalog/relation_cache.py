"""The cache of relations of a session's catalog: for a Delta table it contains the plan of the version that the analyzer loaded."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.spark.catalog.loaded_tables import LoadedTable, LoadedTables
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.scan.relation import read_snapshot


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
    return first.snapshot is second.snapshot and first.follows is second.follows


def _with_new_columns(jvm: Jvm, plan: JavaObject) -> JavaObject:
    """Return a copy of an analyzed plan of file scans, projections and filters, with columns that differ from the original's.

    Spark's own copies lose the hidden output of a projection, which provides `_metadata`. So the plan is copied node by node from the leaves:
    each scan gets new columns, each alias a new id, and references are updated. An alias surrounds it, so that Spark never takes a bare
    relation for a folder of Parquet files to write into.
    """
    return jvm.cached("PlanCopy", lambda: compiled_object(jvm, "PlanCopy")).copy(plan)
