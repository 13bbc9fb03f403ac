"""The session's parser: statements on Delta tables become commands of ours, everything else goes on as Spark parsed it.

text ─┬─ Delta's alone (`tahoe.sql.parse`) ──► command
      └─ Spark's parser ──► plan ─┬─ a statement on a Delta table ──► command
                                  └─ everything else ───────────────► as it is
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.records import copied
from tahoe.spark.jvm.stand_ins import stand_in
from tahoe.spark.statements.column_changes import COLUMN_STATEMENTS
from tahoe.spark.statements.command import Command, as_plan
from tahoe.spark.statements.not_for_delta import REFUSED_STATEMENTS
from tahoe.spark.statements.own import own_command
from tahoe.spark.statements.properties import PROPERTY_STATEMENTS
from tahoe.spark.statements.rows import ROW_STATEMENTS
from tahoe.spark.statements.shown import SHOWING_STATEMENTS
from tahoe.spark.statements.whole_table import TABLE_STATEMENTS

__all__ = ["parser"]

_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"
_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    **ROW_STATEMENTS,
    **COLUMN_STATEMENTS,
    **PROPERTY_STATEMENTS,
    **TABLE_STATEMENTS,
    **SHOWING_STATEMENTS,
    **REFUSED_STATEMENTS,
}
# A query by its first word, as nearly all texts are: what Spark makes of it is not looked at.
_QUERY = re.compile(r"\s*(?:select|from|values|table|set|use|insert)\b", re.IGNORECASE)


def parser(there: JavaObject, spark: SparkSession) -> JavaObject:
    """What stands for the session's parser.

    Args:
        there: Spark's own parser.
        spark: the session whose parser it is.
    """
    return stand_in(spark, there, _Parser(there, spark), ["parsePlan", "parsePlanWithParameters"], [_INTERFACE])


class _Parser:
    """What Python answers."""

    def __init__(self, there: JavaObject, spark: SparkSession) -> None:
        self._there, self._spark = there, spark

    def parsePlan(self, text: str) -> JavaObject:  # noqa: N802 - Spark's name
        """The plan of a statement."""
        return self._understood(text, lambda: self._there.parsePlan(text))

    def parsePlanWithParameters(self, text: str, values: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """The plan of a statement with values for its parameters."""
        return self._understood(text, lambda: self._there.parsePlanWithParameters(text, values))

    def _understood(self, text: str, parsed: Callable[[], JavaObject]) -> JavaObject:
        if _QUERY.match(text) is not None:
            return parsed()
        own = own_command(self._spark, text)
        return self._taken(parsed()) if own is None else as_plan(self._spark, own)

    def _taken(self, plan: JavaObject) -> JavaObject:
        kind = str(plan.nodeName())
        if kind == "ExplainCommand":
            return copied(plan, logicalPlan=self._taken(plan.logicalPlan()))
        statement = _STATEMENTS.get(kind)
        command = None if statement is None else statement(self._spark, plan)
        return plan if command is None else as_plan(self._spark, command)
