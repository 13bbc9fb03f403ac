"""DELETE on Spark: Spark evaluates the user's condition and finds the rows; `tahoe.ops.rows.delete` computes the file changes."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, SparkSession

from tahoe.api.table import Table
from tahoe.expr.tree.predicate import TRUE, all_of
from tahoe.log.replay import add_files
from tahoe.ops.rows.delete import stage_deleted_files, stage_deleted_rows
from tahoe.ops.rows.row_changes import RowsChanged, Staged, snapshot_to_change
from tahoe.spark.commands.conditions import ResolvedCondition, check_condition, find_changes, has_subquery, whole_files
from tahoe.spark.commands.row_changes import (
    committed,
    copy_rows,
    of_kind,
    refuse_connect,
    rows_that_go,
    write_change_data,
)
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.names.settings import is_on
from tahoe.spark.scan.relation import Alias, condition_of
from tahoe.spark.write.writer import FileOptions
from tahoe.txn.transaction import Transaction

__all__ = ["delete", "stage_delete"]

_ALLOWS_EXISTS = "spark.databricks.delta.delete.allowExistsSubquery"


def delete(
    spark: SparkSession,
    table: Table,
    condition: str | Column | None = None,
    *,
    alias: Alias | None = None,
    options: Mapping[str, str] | None = None,
) -> RowsChanged:
    """Delete the rows for which the condition is true, or all rows without a condition; rows for which it is NULL stay.

    Args:
        spark: a classic session.
        alias: a name for the table in the condition.
        options: Hadoop options for the table's storage.

    Raises:
        InvalidRequest: a condition with aggregates or non-deterministic functions; an append-only table.
        Unsupported: a condition with a subquery, except EXISTS if the session allows it; a Spark Connect session; a writer feature
            that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed the same rows.
    """
    refuse_connect(spark, "DELETE")

    def stage(transaction: Transaction) -> Staged:
        return stage_delete(transaction, spark, condition, alias=alias, options=options)

    with shown_jobs(spark, table.clock), told_once(spark):
        return committed(spark, table, stage)


def stage_delete(
    transaction: Transaction,
    spark: SparkSession,
    condition: str | Column | None,
    *,
    alias: Alias | None = None,
    options: Mapping[str, str] | None = None,
) -> Staged:
    """Stage the changes that `delete` commits."""
    # The remaining rows were in the table before.
    snapshot = snapshot_to_change(transaction)
    config, hadoop = snapshot.config, dict(options or {})
    config.refuse_if_append_only()
    started = transaction.clock.now_ms()
    if condition is None:
        return stage_deleted_files(transaction, snapshot, add_files(snapshot.files()), None, None)
    subqueries = ("Exists",) if is_on(spark, _ALLOWS_EXISTS) else ()
    text = check_condition(spark, snapshot, condition, alias, "DELETE", subqueries=subqueries)
    if has_subquery(Jvm.of(spark), condition):
        transaction.read_whole_table()
    meaning = condition_of(spark, snapshot, condition, alias)
    whole = whole_files(snapshot, meaning)
    if whole is not None:
        predicate = all_of(meaning.predicates)
        return stage_deleted_files(transaction, snapshot, whole, None if predicate == TRUE else predicate, text)
    files = FileOptions(hadoop=hadoop)
    return stage_deleted_rows(
        transaction,
        snapshot,
        find_changes(transaction, ResolvedCondition(spark, snapshot, condition, meaning, alias, hadoop)),
        text,
        started,
        lambda changes: copy_rows(transaction, spark, config, changes, files),
        lambda changes: write_change_data(
            transaction, config, of_kind(rows_that_go(spark, snapshot, changes, hadoop), "delete"), files
        ),
    )
