"""DELETE on Spark: Spark evaluates the user's condition and finds the rows; `tahoe.ops.rows.delete` computes the file changes."""

from __future__ import annotations

from pyspark.sql import Column, SparkSession

from tahoe.expr.tree.predicate import TRUE, all_of
from tahoe.log.files.removed_files import adds_of
from tahoe.ops.rows.delete import stage_deleted_files, stage_deleted_rows
from tahoe.ops.rows.engine import RowOperation
from tahoe.ops.rows.row_changes import RowsChanged, Staged, snapshot_to_delete_from
from tahoe.spark.commands.conditions import ExpressionRules, has_subquery, resolve_condition
from tahoe.spark.commands.row_changes import TableRows
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.commands.spark_engine import SparkEngine, whole_files
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.names.settings import is_on
from tahoe.txn.transaction import Transaction

_ALLOWS_EXISTS = "spark.databricks.delta.delete.allowExistsSubquery"


def delete(target: CommandTarget, condition: str | Column | None = None) -> RowsChanged:
    """Delete the rows for which the condition is true, or all rows without a condition; rows for which it is NULL stay.

    Raises:
        InvalidRequest: a condition with aggregates or non-deterministic functions; an append-only table.
        Unsupported: a condition with a subquery, except EXISTS if the session allows it; a Spark Connect session; a writer feature
            that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed the same rows.
    """
    return run_row_command(target, "DELETE", lambda transaction: stage_delete(transaction, target, condition))


def rules_of_delete(spark: SparkSession) -> ExpressionRules:
    """Return the rules for the condition: subqueries are refused, except EXISTS if the session allows it."""
    return ExpressionRules(subqueries=("Exists",) if is_on(spark, _ALLOWS_EXISTS) else ())


def stage_delete(transaction: Transaction, target: CommandTarget, condition: str | Column | None) -> Staged:
    """Stage the changes that `delete` commits."""
    snapshot = snapshot_to_delete_from(transaction)
    started = transaction.clock.now_ms()
    if condition is None:
        return stage_deleted_files(transaction, snapshot, adds_of(snapshot.files()), None, None)
    version = target.at(snapshot)
    resolved = resolve_condition(version, condition, "DELETE", rules_of_delete(target.spark))
    if has_subquery(Jvm.of(target.spark), condition):
        transaction.read_whole_table()
    whole = whole_files(resolved)
    if whole is not None:
        predicate = all_of(resolved.meaning.predicates)
        return stage_deleted_files(transaction, snapshot, whole, None if predicate == TRUE else predicate, resolved.text)
    rows = TableRows.of(version, transaction, snapshot.config)
    return stage_deleted_rows(RowOperation(transaction, snapshot, resolved.text, started), SparkEngine(rows, resolved))
