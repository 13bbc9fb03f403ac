"""Rows of a DataFrame into a table: what `df.write.format("delta").save(path)` does.

    request ─► transaction ─► schema (`tahoe.ops.rows.insert.prepare_schema`) ─► rows, fitted and checked ─► data files ─► removals ─► commit

An append reads nothing of the table. An overwrite removes all files, the files of the partitions that the data has, or the rows of a
condition. The condition of ``replaceWhere`` is the user's own SQL: Catalyst tells what it means, files that it can only match whole are
removed whole, and from the others rows go as DELETE takes them (`tahoe.spark.commands.row_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.exceptions import DeltaConcurrentModificationException, InvalidRequest
from tahoe.expr.tree.predicate import all_of, quote_identifier
from tahoe.ops.rows.insert import (
    Replaced,
    already_written,
    changes_nothing,
    prepare_schema,
    rows_in,
    stage_adds,
    stage_replaced,
    write_operation,
)
from tahoe.ops.rows.row_changes import FileChange, remove_files
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.enforced import ENFORCED
from tahoe.spark.commands.conditions import Meant, check_condition, find_changes, whole_files
from tahoe.spark.commands.row_changes import copy_rows, of_kind, rows_of_new, rows_that_go, write_change_data
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.errors import raising, told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.scan.relation import condition_of
from tahoe.spark.write.enforce import enforced, session_time_zone
from tahoe.spark.write.fitting import casts_of_inserts, nullable_schema
from tahoe.spark.write.idempotent import resetting_version
from tahoe.spark.write.writer import FileOptions, write_files
from tahoe.table import Table
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["ToldAs", "insert"]

ToldAs = Callable[[Operation, TableConfig], Operation]

_MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}


def insert(table: Table, data: DataFrame, request: Insert, told_as: ToldAs | None = None) -> int | None:
    """Write the rows; the version that has them, or None where there was nothing to do.

    Args:
        told_as: what the history shall say of it, of what it would say and of the table as it will be.

    Raises:
        InvalidRequest, SchemaMismatch, Unsupported: before anything is written.
        DeltaConcurrentModificationException: another writer won; the files written are left to VACUUM.
    """
    with resetting_version(data.sparkSession):
        return _inserted(table, data, request, told_as)


def _inserted(table: Table, data: DataFrame, request: Insert, told_as: ToldAs | None) -> int | None:
    transaction = table.begin()
    if transaction.snapshot is not None and request.mode == "error":
        raise InvalidRequest(
            f"There is a table at {table.url} already. Write with mode 'append' or 'overwrite', or to another place.",
            code="DELTA_PATH_EXISTS",
            table=table.url,
        )
    if transaction.snapshot is not None and request.mode == "ignore":
        return None
    if already_written(transaction, request.options.app):
        return None
    # The caller's own condition is tried on the table's rows; of the caller's rows, Spark goes on telling what it has to tell.
    quiet = nullcontext() if request.options.replace_where is None else told_once(data.sparkSession)
    with shown_jobs(data.sparkSession, table.clock), quiet:
        operation = _staged(transaction, data, request)
        if told_as is not None:
            operation = told_as(operation, future_config(transaction))
    if told_as is None and changes_nothing(transaction):
        return None
    try:
        return table.commit(transaction, operation, user_metadata=request.user_metadata).version
    except DeltaConcurrentModificationException:
        # The same idempotent write, sent twice side by side: the winner has done what was asked here.
        if request.options.app is not None and already_written(table.begin(), request.options.app):
            return None
        # Two writers that find no table both create it; the loser goes by the mode on the winner's.
        if transaction.snapshot is None and request.mode != "overwrite":
            return _inserted(table, data, request, told_as)
        raise


def _staged(transaction: Transaction, data: DataFrame, request: Insert) -> Operation:
    options, snapshot = request.options, transaction.snapshot
    transaction.enforces = ENFORCED
    if snapshot is not None and options.mode == "overwrite" and options.data_change:
        snapshot.config.refuse_if_append_only()
    config = prepare_schema(transaction, nullable_schema(from_spark_schema(data.schema)), options)
    completion = Completion(transaction, data.columns, session_time_zone(data.sparkSession))
    rows = enforced(data, config, completion=completion, casts=casts_of_inserts(data.sparkSession))
    if snapshot is not None and options.replace_where is not None:
        check_condition(data.sparkSession, snapshot, options.replace_where, None, "replaceWhere")
        rows = _fulfilling(rows, options.replace_where or "", config)
    adds = write_files(rows, config, transaction.store, transaction.clock, request.files, completion=completion)
    if snapshot is not None and options.replace_where is not None:
        spark, condition = data.sparkSession, options.replace_where
        meant = Meant(spark, snapshot, condition, condition_of(spark, snapshot, condition), hadoop=request.files.hadoop)
        operation = _replaced(transaction, meant, config, adds, request)
    else:
        operation = stage_adds(transaction, config, adds, None, options)
    asked = {} if request.predicate is None else {"predicate": request.predicate}
    return replace(operation, parameters={**operation.parameters, **asked, "mode": _MODES[request.mode]})


def _replaced(transaction: Transaction, meant: Meant, config: TableConfig, adds: Sequence[AddFile], request: Insert) -> Operation:
    """Stage the new files and the removal of the rows for which ``replaceWhere`` is true."""
    options = request.options
    new = [tagged(config, add) for add in adds]
    whole = whole_files(meant.snapshot, meant.asked)
    if whole is not None:
        transaction.read(all_of(meant.asked.predicates))
        replaced = Replaced(tuple(remove_files(transaction, whole)), deleted_rows=rows_in(whole))
    else:
        replaced = _rows_replaced(transaction, meant, config, new, request.files)
    transaction.stage(*new)
    if options.app is not None:
        transaction.stage_app(*options.app)
    return write_operation(
        config,
        new,
        replaced.removed,
        replaced.copied,
        options,
        created=False,
        change_files=replaced.change_files,
        deleted_rows=replaced.deleted_rows,
    )


def _rows_replaced(
    transaction: Transaction, meant: Meant, config: TableConfig, new: Sequence[AddFile], files: FileOptions
) -> Replaced:
    """As DELETE takes rows; the feed tells of the new ones too."""
    spark, snapshot, hadoop = meant.spark, meant.snapshot, meant.hadoop

    def write_feed(changes: Sequence[FileChange]) -> list[AddCDCFile]:
        gone = of_kind(rows_that_go(spark, snapshot, changes, hadoop), "delete")
        come = of_kind(rows_of_new(spark, snapshot, config, new, hadoop), "insert")
        return write_change_data(transaction, config, gone.unionByName(come, allowMissingColumns=True), files)

    changes = find_changes(transaction, meant)
    return stage_replaced(
        transaction, config, changes, lambda stay: copy_rows(transaction, spark, config, stay, files), write_feed
    )


def _fulfilling(rows: DataFrame, text: str, config: TableConfig) -> DataFrame:
    """The rows; one that does not fulfil ``replaceWhere`` makes the query that reads them fail."""
    error = InvalidRequest(
        f"A row to be written to table {config.table} does not fulfil replaceWhere '{text}'. Nothing was committed. "
        "Write only rows that fulfil it, or change the condition.",
        code="DELTA_REPLACE_WHERE_MISMATCH",
        table=config.table,
    )
    first, *others = rows.columns
    checked = sf.when(_is_true(text), sf.col(quote_identifier(first))).otherwise(raising(error)).alias(first)
    return rows.select(checked, *(sf.col(quote_identifier(name)) for name in others))


def _is_true(text: str) -> Column:
    return sf.coalesce(sf.expr(text), sf.lit(False))
