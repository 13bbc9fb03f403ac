"""The cache of relations of a session's catalog: for a Delta table it holds the plan of the version that the analyzer was told of."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.spark.catalog.known import KnownTables
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.scan.relation import read_snapshot

__all__ = ["relation_cache"]


def relation_cache(there: JavaObject, spark: SparkSession, known: KnownTables, interface: str) -> JavaObject:
    """What stands for Spark's own cache, which maps names to logical plans.

    Args:
        there: Spark's own.
        spark: the session whose cache it is.
        known: asked what a name means.
        interface: Guava's ``Cache``, in the package under which this Spark ships it.
    """
    return stand_in(spark, there, _RelationCache(there, spark, known), ["getIfPresent"], [interface])


class _RelationCache:
    """What Python answers."""

    def __init__(self, there: JavaObject, spark: SparkSession, known: KnownTables) -> None:
        self._there, self._spark, self._known, self._jvm = there, spark, known, Jvm.of(spark)

    def getIfPresent(self, key: JavaObject) -> JavaObject | None:  # noqa: N802 - Guava's name
        """The plan of a Delta table; for every other name what Spark's own cache has."""
        loaded = self._known.ask(str(key.productIterator().mkString("\0")))
        if loaded is None:
            return self._there.getIfPresent(key)
        plan = read_snapshot(self._spark, loaded.snapshot, follows=loaded.follows)._jdf.logicalPlan()
        # An alias around it, so that no way of Spark's takes the relation for a folder of Parquet files to write into.
        return self._jvm.catalyst("plans.logical.SubqueryAlias")(self._jvm.catalyst("AliasIdentifier")("delta"), plan)
