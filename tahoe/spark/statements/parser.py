"""The session's parser: statements on Delta tables become Tahoe's commands, everything else stays as Spark parsed it.

text ─┬─ Delta's own (`tahoe.spark.statements.registry`) ──► command
      └─ Spark's parser ──► plan ─┬─ a statement on a Delta table ──► command
                                  └─ everything else ───────────────► unchanged
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction, proxy
from tahoe.spark.jvm.records import copied, items, with_queries
from tahoe.spark.names.entries import SESSION_CATALOG
from tahoe.spark.statements.command import Command, Rows, as_plan
from tahoe.spark.statements.deferred import execute_immediate, in_script, planned, with_late_name, with_name
from tahoe.spark.statements.insert_sources import (
    INSERT,
    may_read_target_late,
    with_plans_of_sources,
    with_resolved_target,
)
from tahoe.spark.statements.registry import may_be_of_delta, parse, spark_statement
from tahoe.spark.stream.sql_streams import reads_streams, refuse_streams, with_streams
from tahoe.spark.versions.execute_immediate import EXECUTE_IMMEDIATE
from tahoe.spark.versions.members import has_field
from tahoe.sql.parameters import SqlText, Values, values_for, with_values

_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"
# A query by its first word, as nearly all texts are: its plan is not examined. ``FROM t INSERT INTO …`` is a statement.
_QUERY = re.compile(r"\s*(?:(?:select|values|table|set|use)\b|from\b(?!.*\binsert\b))", re.IGNORECASE | re.DOTALL)
_INSERTS = (INSERT, "UnresolvedInsert", "InsertIntoDir")
_READING_INSERTS = (INSERT, "OverwriteByExpression")


def parser(spark: SparkSession, original: JavaObject, answers: object) -> JavaObject:
    """Return the proxy for a session's parser.

    Args:
        original: Spark's own parser.
        answers: `ParserAnswers`, or a JVM function as for `tahoe.spark.jvm.proxies.proxy`.
    """
    return proxy(spark, original, answers, ["parsePlan", "parsePlanWithParameters"], [_INTERFACE])


class ParserAnswers:
    """The methods answered in Python.

    Args:
        original: Spark's own parser.
        spark: the session whose parser it is.
    """

    def __init__(self, original: JavaObject, spark: SparkSession) -> None:
        self._original, self._spark, self._jvm = original, spark, Jvm.of(spark)

    def parsePlan(self, text: str) -> JavaObject:  # noqa: N802 - Spark's name
        """Return the plan of a statement."""
        return self._converted(text, lambda: self._original.parsePlan(text))

    def parsePlanWithParameters(self, text: str, values: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """Return the plan of a statement with values for its parameters."""
        own = with_values(text, _texts(self._jvm, text, values)) if may_be_of_delta(text) else text
        return self._converted(text, lambda: self._original.parsePlanWithParameters(text, values), own)

    def _converted(self, text: str, parse_on_spark: Callable[[], JavaObject], own: str | None = None) -> JavaObject:
        """Return the plan of a text.

        Args:
            own: the text for the statements that only Delta has, with the values of its parameters; None for the same text.
        """
        if _TRAVEL.search(text) is not None:
            first, parse_on_spark = parse_on_spark, lambda: _with_catalog(self._spark, first())
        if reads_streams(text):
            plain, parse_on_spark = parse_on_spark, lambda: with_streams(self._spark, plain())
        if _QUERY.match(text) is not None:
            return parse_on_spark()
        plan = self._only_of_delta(text if own is None else own)
        if plan is not None:
            return plan
        plan = parse_on_spark()
        refuse_streams(self._spark, plan, text)
        return self._replaced(plan, text=text)

    def _only_of_delta(self, text: str) -> JavaObject | None:
        """Return the plan of a statement that only Delta has; None for any other text."""
        statement = parse(text)
        command = None if statement is None else statement.command(self._spark)
        return None if command is None else as_plan(self._spark, command)

    def _replaced(self, plan: JavaObject, *, scripted: bool = False, text: str | None = None) -> JavaObject:
        """Return the plan of a statement as a command; the same plan if it is not a statement on a Delta table.

        Args:
            scripted: whether it is in a script.
            text: of the plan, if it is known.
        """
        node = str(plan.nodeName())
        if node == "ExplainCommand":
            return copied(plan, logicalPlan=self._replaced(plan.logicalPlan(), scripted=scripted))
        if node == "CompoundBody":
            return in_script(self._jvm, plan, partial(self._replaced, scripted=True))
        if node == EXECUTE_IMMEDIATE:
            return execute_immediate(self._spark, plan, partial(self._delta_statement, scripted=scripted), scripted=scripted)
        if node == "UnresolvedWith":
            return self._with(plan, scripted=scripted)
        if _is_several_inserts(plan):
            return self._each(plan, scripted=scripted)
        if node == "PlanWithUnresolvedIdentifier":
            named = with_name(self._spark, plan, "any")
            statement = spark_statement(self._jvm, str(named.nodeName()), named)
            statement = None if statement is None else with_late_name(statement)
        else:
            statement = spark_statement(self._jvm, node, plan)
        replaced = plan if statement is None else planned(self._spark, plan, statement, scripted=scripted)
        if replaced is plan and node in _READING_INSERTS and may_read_target_late(self._jvm, plan, text):
            return self._with_target(plan, scripted=scripted)
        return replaced

    def _with_target(self, insert: JavaObject, *, scripted: bool) -> JavaObject:
        """Return an INSERT with its writable table; earlier statements of a script may change the table."""
        if not scripted:
            return with_resolved_target(self._spark, insert)

        def run() -> Rows:
            return self._jvm.frame(self._spark._jsparkSession, with_resolved_target(self._spark, insert), self._spark).collect()

        return as_plan(self._spark, Command("INSERT", run))

    def _with(self, plan: JavaObject, *, scripted: bool) -> JavaObject:
        """Handle ``WITH … INSERT``, UPDATE, DELETE or MERGE: insert Spark's plan of each named query into the statement."""
        child = plan.child()
        node = str(child.nodeName())
        is_several = _is_several_inserts(child)
        if not is_several and node != "PlanWithUnresolvedIdentifier" and spark_statement(self._jvm, node, child) is None:
            return plan
        statement = self._jvm.catalyst("analysis.CTESubstitution").apply(plan)
        if is_several and str(statement.nodeName()) == "WithCTE":
            inserts = [insert.withCTEDefs(statement.cteDefs()) for insert in items(statement.plan().children())]
            statement = copied(statement.plan(), children=self._jvm.seq(*inserts))
        if str(statement.nodeName()) in ("UnresolvedWith", "WithCTE"):
            return plan
        replaced = self._replaced(statement, scripted=scripted)
        return plan if replaced is statement else replaced

    def _each(self, plan: JavaObject, *, scripted: bool) -> JavaObject:
        """Handle ``FROM … INSERT INTO a … INSERT INTO b …``: each INSERT separately."""
        parsed = list(items(plan.children()))
        before = with_plans_of_sources(self._spark, parsed)
        after = [self._replaced(insert, scripted=scripted) for insert in before]
        is_changed = any(old is not new for old, new in zip(parsed, after, strict=True))
        return copied(plan, children=self._jvm.seq(*after)) if is_changed else plan

    def _delta_statement(self, text: str, *, scripted: bool) -> JavaObject | None:
        """Return the plan of a statement on a Delta table; None for any other text."""
        plan = self._only_of_delta(text)
        if plan is not None:
            return plan
        parsed = self._original.parsePlan(text)
        replaced = self._replaced(parsed, scripted=scripted)
        return None if replaced is parsed else replaced


def _is_several_inserts(plan: JavaObject) -> bool:
    """Whether a plan is that of ``FROM … INSERT INTO a … INSERT INTO b …``, and no union of queries."""
    return str(plan.nodeName()) == "Union" and str(plan.children().apply(0).nodeName()) in _INSERTS


def _texts(jvm: Jvm, text: str, parameters: JavaObject) -> Values:
    """Return the values in a ``ParameterContext`` as texts in SQL: a dict for ``:name``, a list for ``?``.

    Args:
        text: the statement with the parameters.
    """
    if has_field(parameters, "paramNames"):  # of EXECUTE IMMEDIATE; a value without a name has an empty one
        names = (str(name) or None for name in items(parameters.paramNames()))
        return values_for(
            text, [(name, SqlText(str(value.sql()))) for name, value in zip(names, items(parameters.args()), strict=True)]
        )
    values = parameters.params()
    if str(parameters.getClass().getSimpleName()).startswith("Positional"):
        return [SqlText(str(value.sql())) for value in items(values)]
    converted = jvm.java_class("scala.jdk.javaapi.CollectionConverters").asJava(values)
    return {str(name): SqlText(str(value.sql())) for name, value in converted.items()}


# -- ``delta.`/path` TIMESTAMP AS OF <expression>``: protected from a Spark rule that would look for a data source --------------------
#
# Spark resolves the expression first. Meanwhile another rule takes a two-part name for a format and a path, and fails, because original is no
# format ``delta``. It ignores three-part names, so the catalog's name is prefixed here, when the text is parsed.

_TRAVEL = re.compile(r"\bdelta\s*\.\s*`.*\b(?:timestamp|system_time)\s+as\s+of\b", re.IGNORECASE | re.DOTALL)


def _with_catalog(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """Return the plan with the session catalog's name before each path that is read as of a timestamp."""
    return plan.transformUpWithSubqueries(PartialFunction(_CatalogNames(spark).of))


class _CatalogNames:
    """Adds the catalog's name to ``RelationTimeTravel`` and ``UnresolvedWith``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    def of(self, node: JavaObject) -> JavaObject | None:
        """Return the node with the name; None for a node of another kind."""
        change = {"RelationTimeTravel": self._travel, "UnresolvedWith": self._with}.get(str(node.nodeName()))
        return None if change is None else change(node)

    def _travel(self, node: JavaObject) -> JavaObject:
        relation = node.relation()
        if str(relation.nodeName()) != "UnresolvedRelation":
            return node
        name = relation.multipartIdentifier()
        if name.size() != 2 or str(name.apply(0)).lower() != "delta":
            return node
        parts = self._jvm.seq(SESSION_CATALOG, name.apply(0), name.apply(1))
        return copied(node, relation=copied(relation, multipartIdentifier=parts))

    def _with(self, node: JavaObject) -> JavaObject:
        return with_queries(self._jvm, node, lambda query: _with_catalog(self._spark, query))
