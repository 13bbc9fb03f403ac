"""MERGE, UPDATE and DELETE from the parser's plans: conditions and values stay Catalyst expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.spark.commands.delete import delete
from tahoe.spark.commands.merge.builder import RESULT
from tahoe.spark.commands.merge.merge import merge
from tahoe.spark.commands.merge.statement import MergeRequest
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.commands.update import update
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.row_targets import row_target_of

__all__ = ["AFFECTED", "ROW_STATEMENTS"]

AFFECTED = StructType([StructField("num_affected_rows", LongType())])
"""The result columns of DELETE and UPDATE."""


def _delete(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.table())
    if target is None:
        return None
    condition = _column(spark, plan.condition())
    if not _is_always_true(plan.condition()):
        target.check_columns(spark, [condition])

    def run() -> list[tuple[int | None]]:
        done = delete(CommandTarget(spark, target.named.table, target.qualifiers, target.options), condition)
        return [(done.num_affected_rows,)]

    return Command("DELETE", run, AFFECTED)


def _update(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.table())
    if target is None:
        return None
    condition = _column(spark, plan.condition().get()) if plan.condition().isDefined() else None
    values = tuple(_assignments(spark, plan.assignments()))
    seen = [value for value in (condition, *(value for _, value in values)) if isinstance(value, Column)]
    target.check_columns(spark, seen, [key for key, _ in values])

    def run() -> list[tuple[int | None]]:
        done = update(CommandTarget(spark, target.named.table, target.qualifiers, target.options), values, condition)
        return [(done.num_affected_rows,)]

    return Command("UPDATE", run, AFFECTED)


def _merge(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.targetTable())
    if target is None:
        return None
    target.check_all_columns(spark)
    clauses = [
        *(_clause(spark, Kind.MATCHED, one) for one in items(plan.matchedActions())),
        *(_clause(spark, Kind.NOT_MATCHED, one) for one in items(plan.notMatchedActions())),
        *(_clause(spark, Kind.NOT_MATCHED_BY_SOURCE, one) for one in items(plan.notMatchedBySourceActions())),
    ]
    on = _column(spark, plan.mergeCondition())
    evolving = bool(plan.withSchemaEvolution())
    source = plan.sourceTable()

    def run() -> list[tuple[int | None, ...]]:
        frame = Jvm.of(spark).frame(spark._jsparkSession, source, spark)
        request = MergeRequest(
            frame,
            on,
            clauses=tuple(clauses),
            schema_evolution=evolving,
            keeps_schema=bool(target.view),  # as in delta-spark
        )
        done = merge(CommandTarget(spark, target.named.table, target.qualifiers, target.options), request)
        return [done.counts]

    return Command("MERGE", run, RESULT)


ROW_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "DeleteFromTable": _delete,
    "UpdateTable": _update,
    "MergeIntoTable": _merge,
}
"""Handlers by the name of the plan node."""


# -- parts -------------------------------------------------------------------------------------------------------------------


def _clause(spark: SparkSession, kind: Kind, action: JavaObject) -> Clause[str | Column]:
    name = str(action.getClass().getSimpleName())
    condition = _column(spark, action.condition().get()) if action.condition().isDefined() else None
    if name == "DeleteAction":
        return Clause(kind, Action.DELETE, condition)
    done = Action.INSERT if name.startswith("Insert") else Action.UPDATE
    values = None if name.endswith("StarAction") else tuple(_assignments(spark, action.assignments()))
    return Clause(kind, done, condition, values)


def _assignments(spark: SparkSession, assignments: JavaObject) -> Iterator[tuple[str, str | Column]]:
    """Yield each column or nested field, as text, possibly qualified with the table's name, and its value; the word DEFAULT as text."""
    for one in items(assignments):
        yield (
            ".".join(quote_identifier(str(part)) for part in items(one.key().nameParts())),
            "DEFAULT" if _is_default(one.value()) else _column(spark, one.value()),
        )


def _is_default(value: JavaObject) -> bool:
    """Return whether the value is the word DEFAULT; Spark's parser turns it into an attribute name."""
    return str(value.getClass().getSimpleName()) == "UnresolvedAttribute" and str(value.sql()).upper() == "DEFAULT"


def _is_always_true(condition: JavaObject) -> bool:
    """Return whether it is the condition of a DELETE without WHERE."""
    return str(condition.nodeName()) == "Literal" and str(condition.sql()) == "true"


def _column(spark: SparkSession, expression: JavaObject) -> Column:
    return Jvm.of(spark).column(expression)
