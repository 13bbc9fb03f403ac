"""The timestamp of a statement that runs several queries: `current_timestamp()` and similar functions have one value in all of them."""

from __future__ import annotations

from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction
from tahoe.spark.versions.current_time import current_time_functions

_FUNCTIONS = ("current_timestamp()", "now()", "current_date()", "localtimestamp()", "current_timezone()")


class StatementTime:
    """The values of Spark's current-time functions in one statement.

    Spark computes such a function once per query. A statement with several queries needs the same value in all.

    Args:
        spark: a classic session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    def frame(self, rows: DataFrame) -> DataFrame:
        """Return the same query with this statement's values."""
        plan = rows._jdf.queryExecution().analyzed()
        fixed = self.plan(plan)
        return rows if fixed is plan else self._jvm.frame(rows._jdf.sparkSession(), fixed, rows.sparkSession)

    def plan(self, plan: JavaObject) -> JavaObject:
        """Return an analyzed plan, including its subqueries, with this statement's values; the same object if it has no such function."""
        current = self._jvm.catalyst("trees.TreePattern").CURRENT_LIKE()
        if not plan.containsPattern(current):
            return plan

        def fixed(node: JavaObject) -> JavaObject | None:
            if not node.containsPattern(current):
                return None
            return node.transformExpressionsUp(PartialFunction(self._value))

        return plan.transformUpWithSubqueries(PartialFunction(fixed))

    def _value(self, expression: JavaObject) -> JavaObject | None:
        name = str(expression.nodeName())
        return self._values.get((name, _type_of(expression))) if name in self._names else None

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self._values)

    @cached_property
    def _values(self) -> dict[tuple[str, str], JavaObject]:
        """The literal of each function, by name and type. One run of Spark's own rule computes them, so that all have the same timestamp."""
        functions = [*_FUNCTIONS, *current_time_functions(self._spark)]
        selected = self._spark.range(1).selectExpr(*functions)._jdf.queryExecution().analyzed()
        literals = self._jvm.catalyst("optimizer.ComputeCurrentTime").apply(selected)
        values = {}
        for number in range(len(functions)):
            function, literal = (plan.projectList().apply(number).child() for plan in (selected, literals))
            values[str(function.nodeName()), _type_of(function)] = literal
        return values


def _type_of(expression: JavaObject) -> str:
    return str(expression.dataType().json())
