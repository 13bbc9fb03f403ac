"""EXECUTE IMMEDIATE of Spark 4.0, which parses its text with a parser of no session; later versions ask the session's own.

A text that is a statement on a Delta table is taken out, with its values; every other is left where it stands.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.statements.targets import NotKnownYet, analyzed, evaluated

__all__ = ["taken_out"]


def taken_out(spark: SparkSession, plan: JavaObject, understood: Callable[[str], JavaObject | None]) -> JavaObject:
    """The plan of the text's statement, with its parameters bound; `plan` itself for a text that is none on a Delta table.

    Args:
        plan: an ``ExecuteImmediateQuery``.
        understood: gives the plan of a statement on a Delta table; None for other texts.
    """
    query = plan.query()
    if str(query.getClass().getSimpleName()) not in ("Left", "Right") or plan.targetVariables().nonEmpty():
        return plan
    try:
        text = str(query.value()) if query.isLeft() else evaluated(spark, query.value())
    except NotKnownYet:
        return plan
    statement = understood(text)
    if statement is None:
        return plan
    jvm, names, values = Jvm.of(spark), [], []
    for one in items(plan.args()):
        is_named = str(one.getClass().getSimpleName()) == "Alias"
        names += [str(one.name())] if is_named else []
        values.append(analyzed(spark, one.child() if is_named else one))
    if not values:
        return statement
    if names:
        return jvm.catalyst("analysis.NameParameterizedQuery")(statement, jvm.seq(*names), jvm.seq(*values))
    return jvm.catalyst("analysis.PosParameterizedQuery")(statement, jvm.seq(*values))
