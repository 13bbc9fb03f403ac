"""Planned writes by a table's name: Spark passes less information to the writer than the plan contains.

The writer gets the plan, which shows whether columns are matched by name. A dynamic partition overwrite, which Spark plans only for writers
in the JVM, becomes an append; its writer replaces the partitions (`tahoe.spark.catalog.writable`). Optimizer rules are classes, so one is
compiled (`tahoe.spark.jvm.compiled`).
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import add_optimizer_rule
from tahoe.spark.jvm.proxies import Proxied, answered, is_proxy
from tahoe.spark.jvm.records import items

__all__ = ["PLANNED", "plan_writes"]

PLANNED = "java.util.function.Consumer"
"""The interface of a writer that receives its plan."""


def plan_writes(spark: SparkSession) -> None:
    """Add the rule to the session; copies of the session have it too. A second call does nothing."""
    add_optimizer_rule(spark, "PlannedWrites", lambda: _PlannedWrites(Jvm.of(spark)))


class _PlannedWrites(Proxied):
    """``plan → plan``."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    @answered
    def apply(self, plan: JavaObject) -> JavaObject:
        """Return the append for a Delta table; the plan itself for every other table."""
        write = plan.write()
        if write.isEmpty() or not is_proxy(write.get()):
            return plan
        write.get().accept(plan)
        if str(plan.nodeName()) != "OverwritePartitionsDynamic":
            return plan
        # An append has the fields of an overwrite, and the query that becomes the DataFrame.
        parts = items(plan.productIterator().toSeq())
        return self._jvm.catalyst("plans.logical.AppendData")(*parts, self._jvm.option(plan.query()))

    class Java:
        """The interface that the JVM may call on this object."""

        implements = ("scala.Function1",)
