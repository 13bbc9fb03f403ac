"""The session's parser: statements on Delta tables become Tahoe's commands, everything else stays as Spark parsed it.

text ─┬─ Delta's own (`tahoe.sql.parse`) ──► command
      └─ Spark's parser ──► plan ─┬─ a statement on a Delta table ──► command
                                  └─ everything else ───────────────► unchanged
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import proxy
from tahoe.spark.jvm.records import copied, items
from tahoe.spark.statements.column_changes import COLUMN_STATEMENTS
from tahoe.spark.statements.command import Command, as_plan
from tahoe.spark.statements.create_like import LIKE_STATEMENTS
from tahoe.spark.statements.create_table import CREATION_STATEMENTS
from tahoe.spark.statements.deferred import in_script, planned, taken_out, with_name
from tahoe.spark.statements.delta_statements import delta_command
from tahoe.spark.statements.describe import SHOWING_STATEMENTS
from tahoe.spark.statements.inserts import INSERT_STATEMENTS
from tahoe.spark.statements.path_travel import travels_by_path, with_catalog
from tahoe.spark.statements.registry import handler_of
from tahoe.spark.statements.rejected import REFUSED_STATEMENTS
from tahoe.spark.statements.row_statements import ROW_STATEMENTS
from tahoe.spark.statements.table_properties import PROPERTY_STATEMENTS
from tahoe.spark.statements.temporary_views import VIEW_STATEMENTS
from tahoe.spark.statements.whole_table import LOCATION_STATEMENTS, TABLE_STATEMENTS
from tahoe.spark.stream.sql_streams import reads_streams, refuse_streams, with_streams
from tahoe.spark.versions.execute_immediate import EXECUTE_IMMEDIATE

__all__ = ["parser"]

_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"
Statement = Callable[[SparkSession, JavaObject], Command | None]
_STATEMENTS: Mapping[str, Statement] = {
    **ROW_STATEMENTS,
    **COLUMN_STATEMENTS,
    **INSERT_STATEMENTS,
    **PROPERTY_STATEMENTS,
    **CREATION_STATEMENTS,
    **TABLE_STATEMENTS,
    **SHOWING_STATEMENTS,
    **REFUSED_STATEMENTS,
    **LIKE_STATEMENTS,
    **LOCATION_STATEMENTS,
    **VIEW_STATEMENTS,
}
# A query by its first word, as nearly all texts are: its plan is not examined. ``FROM t INSERT INTO …`` is a statement.
_QUERY = re.compile(r"\s*(?:(?:select|values|table|set|use)\b|from\b(?!.*\binsert\b))", re.IGNORECASE | re.DOTALL)
_INSERTS = ("InsertIntoStatement", "UnresolvedInsert", "InsertIntoDir")


def _named(statement: Statement) -> Statement:
    """Apply a statement handler to a plan with an unresolved name."""
    return lambda spark, plan: statement(spark, with_name(spark, plan))


def parser(there: JavaObject, spark: SparkSession) -> JavaObject:
    """Return the proxy for the session's parser.

    Args:
        there: Spark's own parser.
        spark: the session whose parser it is.
    """
    return proxy(spark, there, _Parser(there, spark), ["parsePlan", "parsePlanWithParameters"], [_INTERFACE])


class _Parser:
    """The methods answered in Python."""

    def __init__(self, there: JavaObject, spark: SparkSession) -> None:
        self._there, self._spark, self._jvm = there, spark, Jvm.of(spark)

    def parsePlan(self, text: str) -> JavaObject:  # noqa: N802 - Spark's name
        """Return the plan of a statement."""
        return self._understood(text, lambda: self._there.parsePlan(text))

    def parsePlanWithParameters(self, text: str, values: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """Return the plan of a statement with values for its parameters."""
        return self._understood(text, lambda: self._there.parsePlanWithParameters(text, values))

    def _understood(self, text: str, parsed: Callable[[], JavaObject]) -> JavaObject:
        if travels_by_path(text):
            first, parsed = parsed, lambda: with_catalog(self._spark, first())
        if reads_streams(text):
            plain, parsed = parsed, lambda: with_streams(self._spark, plain())
        if _QUERY.match(text) is not None:
            return parsed()
        own = delta_command(self._spark, text)
        if own is not None:
            return as_plan(self._spark, own)
        plan = parsed()
        refuse_streams(self._spark, plan, text)
        return self._taken(plan)

    def _taken(self, plan: JavaObject, *, scripted: bool = False) -> JavaObject:
        kind = str(plan.nodeName())
        if kind == "ExplainCommand":
            return copied(plan, logicalPlan=self._taken(plan.logicalPlan(), scripted=scripted))
        if kind == "CompoundBody":
            return in_script(self._jvm, plan, lambda one: self._taken(one, scripted=True))
        if kind == EXECUTE_IMMEDIATE:
            return taken_out(self._spark, plan, lambda text: self._delta_statement(text, scripted=scripted), scripted=scripted)
        if kind == "UnresolvedWith":
            return self._with(plan, scripted=scripted)
        if kind == "Union" and str(plan.children().apply(0).nodeName()) in _INSERTS:
            return self._each(plan, scripted=scripted)
        if kind == "PlanWithUnresolvedIdentifier":
            around = with_name(self._spark, plan, "any")
            kind = str(around.nodeName())
            statement = handler_of(_STATEMENTS, self._jvm, kind, around)
            return plan if statement is None else planned(self._spark, plan, kind, _named(statement), scripted=scripted)
        statement = handler_of(_STATEMENTS, self._jvm, kind, plan)
        return plan if statement is None else planned(self._spark, plan, kind, statement, scripted=scripted)

    def _with(self, plan: JavaObject, *, scripted: bool) -> JavaObject:
        """Handle ``WITH … INSERT``, UPDATE, DELETE or MERGE: insert Spark's plan of each named query into the statement."""
        child = plan.child()
        kind = str(child.nodeName())
        if kind not in ("Union", "PlanWithUnresolvedIdentifier") and handler_of(_STATEMENTS, self._jvm, kind, child) is None:
            return plan
        statement = self._jvm.catalyst("analysis.CTESubstitution").apply(plan)
        if str(statement.nodeName()) in ("UnresolvedWith", "WithCTE"):
            return plan
        taken = self._taken(statement, scripted=scripted)
        return plan if taken is statement else taken

    def _each(self, plan: JavaObject, *, scripted: bool) -> JavaObject:
        """Handle ``FROM … INSERT INTO a … INSERT INTO b …``: each INSERT separately."""
        before = list(items(plan.children()))
        after = [self._taken(one, scripted=scripted) for one in before]
        changed = any(one is not other for one, other in zip(before, after, strict=True))
        return copied(plan, children=self._jvm.seq(*after)) if changed else plan

    def _delta_statement(self, text: str, *, scripted: bool) -> JavaObject | None:
        """Return the plan of a statement on a Delta table; None for any other text."""
        own = delta_command(self._spark, text)
        if own is not None:
            return as_plan(self._spark, own)
        parsed = self._there.parsePlan(text)
        taken = self._taken(parsed, scripted=scripted)
        return None if taken is parsed else taken
