"""CREATE TEMPORARY VIEW … USING delta OPTIONS (path …): a view over a reader with these options.

Spark would use the portable data source, which reads every row through Python, and always the version at the time of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.statements.command import Command

__all__ = ["VIEW_STATEMENTS"]


def _view(spark: SparkSession, plan: JavaObject) -> Command | None:
    if str(plan.provider()).lower() != "delta":
        return None
    name, options = quote_identifier(str(plan.tableIdent().table())), Jvm.of(spark).dictionary(plan.options())
    if plan.userSpecifiedSchema().isDefined():
        raise InvalidRequest(
            f"The temporary view {name} is given columns, but a Delta table has those of its log. Leave them out, and give OPTIONS (path …).",
            code="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            table=name,
        )
    is_global = getattr(plan, "global")()
    kind = f"create{'OrReplace' if plan.replace() else ''}{'Global' if is_global else ''}TempView"

    def run() -> None:
        getattr(spark.read.format("delta").options(**options).load(), kind)(name)

    return Command("CREATE TEMPORARY VIEW … USING delta", run)


VIEW_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {"CreateTempViewUsing": _view}
"""Handlers by the name of the plan node."""
