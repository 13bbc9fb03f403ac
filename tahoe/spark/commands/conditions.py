"""The condition of a DELETE or UPDATE on Spark: what may stand in it, which files it may be true for, which rows it is true for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from py4j.java_gateway import is_instance_of
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import InvalidRequest, Unsupported
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
    "Meant",
    "Refusals",
    "Subqueries",
    "check_condition",
    "check_expression",
    "find_changes",
    "has_subquery",
    "shown_in_history",
    "text_of",
    "understood",
    "whole_files",
]

Subqueries = Collection[str]
"""Kinds of subqueries, by the names of Catalyst's expressions."""
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.SubqueryExpression"


@dataclass(frozen=True, slots=True)
class Meant:
    """Which rows of a table an operation means, as its user said it.

    Args:
        condition: SQL text, or a column expression; None for every row.
        asked: what the condition asks of files.
        alias: a name that may stand for the table.
        hadoop: options for the table's storage.
    """

    spark: SparkSession
    snapshot: Snapshot
    condition: str | Column | None
    asked: Condition
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
    """Refuse what no condition of a change of rows may hold, before a row is read.

    Args:
        subqueries: the kinds of subqueries that it may have.

    Returns:
        The condition as the history shows it (`shown_in_history`).

    Raises:
        Unsupported: a subquery (``DELTA_UNSUPPORTED_SUBQUERY``).
        InvalidRequest: aggregates (``UNSUPPORTED_EXPR_FOR_OPERATOR``) and what may answer otherwise when asked again
            (``INVALID_NON_DETERMINISTIC_EXPRESSIONS``).
        AnalysisException: PySpark's own, for what is no expression on the table's columns.
    """
    column = sf.expr(condition) if isinstance(condition, str) else condition
    selected = named(shape_of(spark, snapshot), alias).select(column.alias("condition"))
    return check_expression(Jvm.of(spark), selected, condition, f"the condition of {operation}", subqueries=subqueries)


BEYOND_A_ROW = "UNSUPPORTED_EXPR_FOR_OPERATOR"
"""The error class of a function that needs more rows than one."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """The error classes of what may not stand in an expression.

    Args:
        aggregates: of aggregate functions.
        chance: of functions that are not deterministic.
    """

    aggregates: str = BEYOND_A_ROW
    chance: str = "INVALID_NON_DETERMINISTIC_EXPRESSIONS"


_USUAL = Refusals()
OF_MERGE = Refusals("DELTA_AGGREGATION_NOT_SUPPORTED", "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED")


def check_expression(
    jvm: Jvm,
    selected: DataFrame,
    given: str | Column,
    where: str,
    *,
    may_be_chance: bool = False,
    subqueries: Subqueries = (),
    refusals: Refusals = _USUAL,
) -> str:
    """Refuse subqueries, aggregates and, unless they may be, functions that are not deterministic.

    Args:
        selected: the expression alone, selected from the rows that it sees.
        given: the expression, for the error.
        where: what it is part of, for the error.
        subqueries: the kinds of subqueries that are allowed.
        refusals: the error classes; those of UPDATE and DELETE by default.

    Returns:
        The expression as the history shows it (`shown_in_history`).
    """
    plan, text = selected._jdf.queryExecution().analyzed(), text_of(given)
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


def understood(
    spark: SparkSession, snapshot: Snapshot, condition: str | Column, alias: Alias | None, hadoop: Mapping[str, str]
) -> tuple[Meant, list[str]]:
    """What a condition means, and the columns of the table that it names. Raises PySpark's own errors for what is no condition on them."""
    execution = named(shape_of(spark, snapshot), alias).where(condition)._jdf.queryExecution()
    asked = condition_of_plan(snapshot, execution.optimizedPlan())
    columns = [str(column.name()) for column in items(execution.analyzed().condition().references().toSeq())]
    return Meant(spark, snapshot, condition, asked, alias, hadoop), columns


def has_subquery(jvm: Jvm, expression: str | Column) -> bool:
    """Whether an expression reads rows of a query, perhaps of the very table that is changed."""
    column = sf.expr(expression) if isinstance(expression, str) else expression
    return bool(jvm.expression(column).containsPattern(jvm.catalyst("trees.TreePattern").PLAN_EXPRESSION()))


def _subqueries(jvm: Jvm, expression: JavaObject) -> Iterator[str]:
    """The kinds of the subqueries in an expression."""
    if not expression.containsPattern(jvm.catalyst("trees.TreePattern").PLAN_EXPRESSION()):
        return
    if is_instance_of(jvm.gateway, expression, _SUBQUERY):
        yield str(expression.nodeName())
    for child in items(expression.children()):
        yield from _subqueries(jvm, child)


def shown_in_history(jvm: Jvm, expression: JavaObject) -> str:
    """A condition as the reference writes it into the log: Catalyst's text, with the numbers of attributes and with constants computed.

    The time of a query is no constant before the query runs, and Spark 4.0 fails to compute it: such a condition is told as it is.
    """
    if expression.containsPattern(jvm.catalyst("trees.TreePattern").CURRENT_LIKE()):
        return str(expression.simpleString(_MOST_FIELDS))
    logical = "plans.logical"
    plan = jvm.catalyst(f"{logical}.Filter")(expression, jvm.catalyst(f"{logical}.OneRowRelation")())
    return str(jvm.catalyst("optimizer.ConstantFolding").apply(plan).condition().simpleString(_MOST_FIELDS))


def _beyond_a_row(plan: JavaObject, refusals: Refusals) -> str | None:
    """The error class of a selection that is not a plain one; None for one that is. The analyzer makes others of aggregates, of generators
    (over a `Generate`), and of window functions (over another selection of a `Window`)."""
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
    """An expression as the user wrote it, for errors; of a column expression, what PySpark made of it."""
    if isinstance(condition, str):
        return condition
    return str(condition._jc.node().sql())  # type: ignore[operator]


def whole_files(snapshot: Snapshot, meaning: Condition) -> list[AddFile] | None:
    """The files all of whose rows are meant, where the partition values decide that; None where they do not."""
    if not meaning.exact:
        return None
    predicate = all_of(meaning.predicates)
    if not {path[0] for path in references(predicate)} <= set(snapshot.partition_columns):
        return None
    return add_files(snapshot.files_matching(predicate))


def find_changes(transaction: Transaction, meant: Meant) -> list[FileChange]:
    """The rows that are meant, file by file: one scan of the columns that the condition names. Notes what was looked for."""
    snapshot, predicate = meant.snapshot, all_of(meant.asked.predicates)
    transaction.read(predicate)
    whole = whole_files(snapshot, meant.asked)
    if whole is not None:
        return [all_rows(snapshot, add) for add in whole]
    candidates = snapshot.files_matching(predicate)
    if not len(candidates):
        return []
    rows = named(with_positions(meant.spark, snapshot, candidates, meant.hadoop), meant.alias)
    return changes_of(snapshot, candidates, rows if meant.condition is None else rows.where(meant.condition)).changes
