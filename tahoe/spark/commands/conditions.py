"""Conditions and values in statements on Spark: rejects functions that they may not contain, and resolves conditions on a table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from py4j.java_gateway import is_instance_of
from pyspark.sql import Column, DataFrame, SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.row_condition import RowCondition
from tahoe.spark.commands.row_changes import TableVersion
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.scan.relation import EVERY_ROW, Condition, condition_of_plan
from tahoe.spark.write.stored_expressions import BACKSLASHES, other_settings

_OF_SETTINGS = {
    BACKSLASHES: re.compile(r"\\"),
    "spark.sql.ansi.doubleQuotedIdentifiers": re.compile('"'),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": re.compile(r"\d\.?e", re.IGNORECASE),
    "spark.sql.timestampType": re.compile("timestamp", re.IGNORECASE),
}
"""Settings on which the meaning of a text depends, and what is in these texts."""
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"


@dataclass(frozen=True, slots=True)
class ResolvedCondition:
    """The rows of a version that the user's condition selects.

    Args:
        condition: None for every row.
        text: the condition as the history shows it (`shown_in_history`); None for every row.
        meaning: the condition as a predicate on files.
        columns: the table's columns in the condition.
    """

    version: TableVersion
    condition: Column | None
    text: str | None
    meaning: Condition
    columns: tuple[str, ...] = ()


_MOST_FIELDS = 25
"""Spark's default of ``spark.sql.debug.maxToStringFields``."""
BEYOND_A_ROW = "UNSUPPORTED_EXPR_FOR_OPERATOR"
"""The error class of a function that needs several rows."""


@dataclass(frozen=True, slots=True)
class ExpressionRules:
    """Rules for the functions in an expression.

    Args:
        aggregates: the error class of aggregate functions.
        chance: the error class of non-deterministic functions; None if they are allowed.
        subqueries: the allowed kinds of subqueries, by the names of Catalyst's expressions.
    """

    aggregates: str = BEYOND_A_ROW
    chance: str | None = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"
    subqueries: tuple[str, ...] = ()


OF_CONDITIONS = ExpressionRules()
OF_ASSIGNMENTS = ExpressionRules(chance=None, subqueries=("ScalarSubquery",))
OF_MERGE = ExpressionRules("DELTA_AGGREGATION_NOT_SUPPORTED", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED")


def resolve_condition(
    version: TableVersion, condition: str | Column | None, operation: str, rules: ExpressionRules = OF_CONDITIONS
) -> ResolvedCondition:
    """Return the selected rows; rejects an invalid condition before rows are read.

    Raises:
        Unsupported: a subquery (``DELTA_UNSUPPORTED_SUBQUERY``).
        InvalidRequest: aggregates (``UNSUPPORTED_EXPR_FOR_OPERATOR``) and non-deterministic functions
            (``INVALID_NON_DETERMINISTIC_EXPRESSIONS``).
        AnalysisException: PySpark's own, for an invalid expression.
    """
    if condition is None:
        return ResolvedCondition(version, None, None, EVERY_ROW)
    shape = version.shape()
    column = column_of(condition)
    text = check_expression(shape.select(column.alias("condition")), condition, f"the condition of {operation}", rules)
    execution = shape.where(column)._jdf.queryExecution()
    meaning = condition_of_plan(version.snapshot, execution.optimizedPlan())
    return ResolvedCondition(version, column, text, meaning, _references(execution.analyzed(), shape))


def _references(filtered: JavaObject, shape: DataFrame) -> tuple[str, ...]:
    """Return the columns that a filter refers to; all of them if it calls a function of SQL, which Spark evaluates below the filter."""
    if str(filtered.nodeName()) != "Filter":
        return tuple(shape.columns)
    return tuple(str(reference.name()) for reference in items(filtered.condition().references().toSeq()))


def check_expression(selected: DataFrame, term: str | Column, where: str, rules: ExpressionRules = OF_CONDITIONS) -> str:
    """Reject functions and subqueries that the rules do not allow.

    Args:
        selected: a selection of only this expression from the rows that it refers to.
        term: the expression, for the error.
        where: the part of the statement that contains it, for the error.

    Returns:
        The expression as the history shows it (`shown_in_history`).
    """
    jvm = Jvm.of(selected.sparkSession)
    plan, text = selected._jdf.queryExecution().analyzed(), text_of(term)
    code = _beyond_a_row(plan, rules)
    if code is not None:
        raise beyond_a_row(text, where, code)
    expression = plan.projectList().apply(0)
    if not set(_subqueries(jvm, expression)) <= set(rules.subqueries):
        raise subquery_in(text, where)
    if rules.chance is not None and not expression.deterministic():
        raise by_chance(text, where, rules.chance)
    return shown_in_history(jvm, expression.child())


def beyond_a_row(text: str, where: str, code: str) -> InvalidRequest:
    """The error for a function whose value depends on several rows, or that gives several rows."""
    return InvalidRequest(
        f"Aggregate, window and generator functions are not supported in {where}: {text}. Compute their values first.",
        code=code,
        expression=text,
    )


def subquery_in(text: str, where: str) -> Unsupported:
    """The error for a subquery in an expression."""
    return Unsupported(
        f"Subqueries are not supported in {where}: {text}. Compute their values first, or use MERGE.",
        code="DELTA_UNSUPPORTED_SUBQUERY",
        expression=text,
    )


def by_chance(text: str, where: str, code: str) -> InvalidRequest:
    """The error for a function that is not deterministic."""
    return InvalidRequest(
        f"Functions that are not deterministic are not supported in {where}: {text}. Which rows are meant must not depend on chance.",
        code=code,
        expression=text,
    )


def has_subquery(jvm: Jvm, expression: str | Column) -> bool:
    """Return whether an expression contains a subquery, possibly on the changed table itself."""
    return bool(jvm.expression(column_of(expression)).containsPattern(jvm.catalyst("trees.TreePattern").PLAN_EXPRESSION()))


def _subqueries(jvm: Jvm, expression: JavaObject) -> Iterator[str]:
    """Yield the kinds of the subqueries in an expression."""
    if not expression.containsPattern(jvm.catalyst("trees.TreePattern").PLAN_EXPRESSION()):
        return
    if is_instance_of(jvm.gateway, expression, _SUBQUERY):
        yield str(expression.nodeName())
    for child in items(expression.children()):
        yield from _subqueries(jvm, child)


def shown_in_history(jvm: Jvm, expression: JavaObject) -> str:
    """Return a condition as delta-spark logs it: Catalyst's text, with attribute numbers and with constants folded.

    The current time is no constant before the query runs, so such a condition is returned unfolded.
    """
    if expression.containsPattern(jvm.catalyst("trees.TreePattern").CURRENT_LIKE()):
        return str(expression.simpleString(_MOST_FIELDS))
    logical = "plans.logical"
    plan = jvm.catalyst(f"{logical}.Filter")(expression, jvm.catalyst(f"{logical}.OneRowRelation")())
    return str(jvm.catalyst("optimizer.ConstantFolding").apply(plan).condition().simpleString(_MOST_FIELDS))


def _beyond_a_row(plan: JavaObject, rules: ExpressionRules) -> str | None:
    """Return the error class of a selection that is no plain projection, otherwise None. The analyzer changes the plan for aggregates, for
    generators (adds a `Generate`) and for window functions (adds a `Window` with a projection above it).
    """
    kinds = []
    for _ in range(3):
        kinds.append(str(plan.getClass().getSimpleName()))
        if plan.children().isEmpty():
            break
        plan = plan.children().head()
    if "Generate" in kinds[:2]:
        return "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT"
    if kinds == ["Project", "Project", "Window"]:
        return BEYOND_A_ROW
    return None if kinds[0] == "Project" else rules.aggregates


def text_of(condition: str | Column) -> str:
    """Return an expression as the user wrote it, for errors; for a column expression, PySpark's SQL text."""
    if isinstance(condition, str):
        return condition
    return str(condition._jc.node().sql())  # type: ignore[operator]


def is_that_of_session(spark: SparkSession, meaning: RowCondition) -> bool:
    """Return whether the session's settings give a condition the meaning that Tahoe's parser has found."""
    text = meaning.text or ""
    settings = [name for name, part in _OF_SETTINGS.items() if part.search(text)]
    # Without ANSI, what is an error for Tahoe is NULL: a cast, an operation, the element of an array.
    if not meaning.is_for_all_rows and (meaning.beyond_predicate is not None or not meaning.columns):
        settings.append("spark.sql.ansi.enabled")
    return next(other_settings(spark, settings), None) is None
