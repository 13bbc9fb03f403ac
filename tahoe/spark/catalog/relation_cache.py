"""The cache of relations of a session's catalog: for a Delta table it contains the plan of the version that the analyzer loaded."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.spark.catalog.known import KnownTables, Loaded
from tahoe.spark.catalog.plan_copy import with_new_columns
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.scan.relation import read_snapshot

__all__ = ["relation_cache"]


def relation_cache(there: JavaObject, spark: SparkSession, known: KnownTables, interface: str) -> JavaObject:
    """Return the proxy for Spark's own cache, which maps names to logical plans.

    Args:
        there: Spark's own cache.
        spark: the session whose cache it is.
        known: the loaded tables by name.
        interface: Guava's ``Cache``, in the package in which this Spark version ships it.
    """
    return stand_in(spark, there, _RelationCache(there, spark, known), ["getIfPresent"], [interface])


_MOST_PLANS = 64
_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
"""The settings that a plan depends on, besides its table."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The plan for a version of a table."""

    loaded: Loaded
    settings: tuple[str, ...]
    plan: JavaObject


class _RelationCache:
    """The methods answered in Python."""

    def __init__(self, there: JavaObject, spark: SparkSession, known: KnownTables) -> None:
        self._there, self._spark, self._known, self._jvm = there, spark, known, Jvm.of(spark)
        self._plans: dict[str, _Plan] = {}

    def getIfPresent(self, key: JavaObject) -> JavaObject | None:  # noqa: N802 - Guava's name
        """Return the plan of a Delta table; for every other name the entry of Spark's own cache.

        A plan is created once per version. Each query gets a copy with its own columns, as in delta-spark, so that two frames of one table
        can be joined by `one["id"] == other["id"]`.
        """
        name = str(key.productIterator().mkString("\0"))
        loaded = self._known.ask(name)
        if loaded is None:
            self._plans.pop(name, None)
            return self._there.getIfPresent(key)
        return with_new_columns(self._jvm, self._plan(name, loaded))

    def _plan(self, name: str, loaded: Loaded) -> JavaObject:
        settings = tuple(str(self._spark.conf.get(one)) for one in _SETTINGS)
        known = self._plans.get(name)
        if known is not None and known.settings == settings and _is_same(known.loaded, loaded):
            return known.plan
        plan = read_snapshot(self._spark, loaded.snapshot, follows=loaded.follows)._jdf.logicalPlan()
        while len(self._plans) >= _MOST_PLANS:
            self._plans.pop(next(iter(self._plans)), None)
        self._plans[name] = _Plan(loaded, settings, plan)
        return plan


def _is_same(one: Loaded, other: Loaded) -> bool:
    return one.snapshot is other.snapshot and one.follows is other.follows
