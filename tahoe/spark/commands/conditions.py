"""The condition of a DELETE or UPDATE on Spark: checks it, finds the files that it may be true for, and the rows that fulfill it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from py4j.java_gateway import is_instance_of
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.predicate import all_of, references
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import FileChange, all_rows
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.row_changes import changes_of, with_positions
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.scan.relation import Alias, Condition, condition_of_plan, named, shape_of
from tahoe.txn.transaction import Transaction

__all__ = [
    "BEYOND_A_ROW",
    "OF_MERGE",
    "ResolvedCondition",
    "Refusals",
    "Subqueries",
    "check_condition",
    "check_expression",
    "find_changes",
    "has_subquery",
    "shown_in_history",
    "text_of",
    "resolved_condition",
    "whole_files",
]

Subqueries = Collection[str]
"""Kinds of subqueries, by the names of Catalyst's expressions."""
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"


@dataclass(frozen=True, slots=True)
class ResolvedCondition:
    """The rows that an operation changes, selected by the user's condition.

    Args:
        condition: SQL text, or a column expression; None for every row.
        meaning: the condition as a predicate on files.
        alias: a name for the table in the condition.
        hadoop: options for the table's storage.
    """

    spark: SparkSession
    snapshot: Snapshot
    condition: str | Column | None
    meaning: Condition
    alias: Alias | None = None
    hadoop: Mapping[str, str] = field(default_factory=dict)


_MOST_FIELDS = 25
"""Spark's default of ``spark.sql.debug.maxToStringFields``."""


def check_condition(
    spark: SparkSession,
    snapshot: Snapshot,
    condition: str | Column,
    alias: Alias | None,
    operation: str,
    *,
    subqueries: Subqueries = (),
) -> str:
    """Reject an invalid condition before reading rows.

    Args:
        subqueries: the allowed kinds of subqueries.

    Returns:
        The condition as the history shows it (`shown_in_history`).

    Raises:
        Unsupported: a subquery (``DELTA_UNSUPPORTED_SUBQUERY``).
        InvalidRequest: aggregates (``UNSUPPORTED_EXPR_FOR_OPERATOR``) and non-deterministic functions
            (``INVALID_NON_DETERMINISTIC_EXPRESSIONS``).
        AnalysisException: PySpark's own, for an invalid expression.
    """
    column = sf.expr(condition) if isinstance(condition, str) else condition
    selected = named(shape_of(spark, snapshot), alias).select(column.alias("condition"))
    return check_expression(Jvm.of(spark), selected, condition, f"the condition of {operation}", subqueries=subqueries)


BEYOND_A_ROW = "UNSUPPORTED_EXPR_FOR_OPERATOR"
"""The error class of a function that needs several rows."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The error classes of functions that an expression may not contain.

    Args:
        aggregates: of aggregate functions.
        chance: of non-deterministic functions.
    """

    aggregates: str = BEYOND_A_ROW
    chance: str = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"


_USUAL = Refusals()
OF_MERGE = Refusals("DELTA_AGGREGATION_NOT_SUPPORTED", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED")


def check_expression(
    jvm: Jvm,
    selected: DataFrame,
    term: str | Column,
    where: str,
    *,
    may_be_chance: bool = False,
    subqueries: Subqueries = (),
    refusals: Refusals = _USUAL,
) -> str:
    """Reject subqueries, aggregates and, unless `may_be_chance`, non-deterministic functions.

    Args:
        selected: a selection of only this expression from the rows that it refers to.
        term: the expression, for the error.
        where: the part of the statement that contains it, for the error.
        subqueries: the allowed kinds of subqueries.
        refusals: the error classes; by default those of UPDATE and DELETE.

    Returns:
        The expression as the history shows it (`shown_in_history`).
    """
    plan, text = selected._jdf.queryExecution().analyzed(), text_of(term)
    code = _beyond_a_row(plan, refusals)
    if code is not None:
        raise InvalidRequest(
            f"Aggregate, window and generator functions are not supported in {where}: {text}. Compute their values first.",
            code=code,
            expression=text,
        )
    expression = plan.projectList().apply(0)
    if not set(_subqueries(jvm, expression)) <= set(subqueries):
        raise Unsupported(
            f"Subqueries are not supported in {where}: {text}. Compute their values first, or use MERGE.",
            code="DELTA_UNSUPPORTED_SUBQUERY",
            expression=text,
        )
    if not may_be_chance and not expression.deterministic():
        raise InvalidRequest(
            f"Functions that are not deterministic are not supported in {where}: {text}. Which rows are meant must not depend on chance.",
            code=refusals.chance,
            expression=text,
        )
    return shown_in_history(jvm, expression.child())


def resolved_condition(
    spark: SparkSession, snapshot: Snapshot, condition: str | Column, alias: Alias | None, hadoop: Mapping[str, str]
) -> tuple[ResolvedCondition, list[str]]:
    """Return the rows that a condition selects and the table columns in it. Raises PySpark's own errors for an invalid condition."""
    execution = named(shape_of(spark, snapshot), alias).where(condition)._jdf.queryExecution()
    meaning = condition_of_plan(snapshot, execution.optimizedPlan())
    columns = [str(column.name()) for column in items(execution.analyzed().condition().references().toSeq())]
    return ResolvedCondition(spark, snapshot, condition, meaning, alias, hadoop), columns


def has_subquery(jvm: Jvm, expression: str | Column) -> bool:
    """Return whether an expression contains a subquery, possibly on the changed table itself."""
    column = sf.expr(expression) if isinstance(expression, str) else expression
    return bool(jvm.expression(column).containsPattern(jvm.catalyst("trees.TreePattern").PLAN_EXPRESSION()))


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

    The current time is no constant before the query runs, and Spark 4.0 fails to fold it: such a condition is returned unfolded.
    """
    if expression.containsPattern(jvm.catalyst("trees.TreePattern").CURRENT_LIKE()):
        return str(expression.simpleString(_MOST_FIELDS))
    logical = "plans.logical"
    plan = jvm.catalyst(f"{logical}.Filter")(expression, jvm.catalyst(f"{logical}.OneRowRelation")())
    return str(jvm.catalyst("optimizer.ConstantFolding").apply(plan).condition().simpleString(_MOST_FIELDS))


def _beyond_a_row(plan: JavaObject, refusals: Refusals) -> str | None:
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
    return None if kinds[0] == "Project" else refusals.aggregates


def text_of(condition: str | Column) -> str:
    """Return an expression as the user wrote it, for errors; for a column expression, PySpark's SQL text."""
    if isinstance(condition, str):
        return condition
    return str(condition._jc.node().sql())  # type: ignore[operator]


def whole_files(snapshot: Snapshot, meaning: Condition) -> list[AddFile] | None:
    """Return the files whose rows are all selected, if the partition values decide that, otherwise None."""
    if not meaning.exact:
        return None
    predicate = all_of(meaning.predicates)
    if not {path[0] for path in references(predicate)} <= set(snapshot.partition_columns):
        return None
    return add_files(snapshot.files_matching(predicate))


def find_changes(transaction: Transaction, resolved: ResolvedCondition) -> list[FileChange]:
    """Return the selected rows of each file: scans the columns in the condition once, and registers the read predicate."""
    snapshot, predicate = resolved.snapshot, all_of(resolved.meaning.predicates)
    transaction.read(predicate)
    whole = whole_files(snapshot, resolved.meaning)
    if whole is not None:
        return [all_rows(snapshot, add) for add in whole]
    candidates = snapshot.files_matching(predicate)
    if not len(candidates):
        return []
    rows = named(with_positions(resolved.spark, snapshot, candidates, resolved.hadoop), resolved.alias)
    return changes_of(snapshot, candidates, rows if resolved.condition is None else rows.where(resolved.condition)).changes
