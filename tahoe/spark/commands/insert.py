"""Rows of a DataFrame into a table: what `df.write.format("delta").save(path)` does.

    request ─► transaction ─► schema (`tahoe.ops.insert.prepare_schema`) ─► rows, fitted and checked ─► data files ─► removals ─► commit

An append reads nothing of the table. An overwrite removes all files, the files of the partitions that the data has, or the rows of a
condition. The condition of ``replaceWhere`` is the user's own SQL: Catalyst tells what it means, files that it can only match whole are
removed whole, and of the others the rows that it does not match are written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import DeltaConcurrentModificationException, InvalidRequest
from tahoe.expr.predicate import Predicate, all_of, quote_identifier, references
from tahoe.log.replay import add_files, files_table
from tahoe.ops.insert import (
    Replaced,
    WriteOptions,
    already_written,
    prepare_schema,
    stage_adds,
    stage_replaced,
    write_operation,
)
from tahoe.ops.row_changes import FileChange, bitmap, living_rows, refuse_if_append_only, remove_files, uses_vectors
from tahoe.ops.write import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import ENFORCED
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.constraints import enforced
from tahoe.spark.errors import raising
from tahoe.spark.fitting import nullable_schema
from tahoe.spark.relation import condition_of, read_snapshot
from tahoe.spark.translate import from_spark_schema
from tahoe.spark.writer import FileOptions, write_files
from tahoe.store.location import decode_path
from tahoe.table import Table
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Insert", "insert"]

_MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}


@dataclass(frozen=True, slots=True)
class Insert:
    """What is asked of a write.

    Args:
        mode: ``append``, ``overwrite``, ``error`` (the table must not be there) or ``ignore`` (if it is there, nothing is done).
        options: of the rows' way into the table; their mode is ``overwrite`` for ``overwrite`` and ``append`` for the others.
        files: of the data files.
        user_metadata: for commitInfo.
    """

    mode: str
    options: WriteOptions
    files: FileOptions = field(default_factory=FileOptions)
    user_metadata: str | None = None


def insert(table: Table, data: DataFrame, request: Insert) -> int | None:
    """Write the rows; the version that has them, or None where there was nothing to do.

    Raises:
        InvalidRequest, SchemaMismatch, Unsupported: before anything is written.
        DeltaConcurrentModificationException: another writer won; the files written are left to VACUUM.
    """
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
    operation = _staged(transaction, data, request)
    try:
        return table.commit(transaction, operation, user_metadata=request.user_metadata).version
    except DeltaConcurrentModificationException:
        # The same idempotent write, sent twice side by side: the winner has done what was asked here.
        if request.options.app is not None and already_written(table.begin(), request.options.app):
            return None
        # Two writers that find no table both create it; the loser goes by the mode on the winner's.
        if transaction.snapshot is None and request.mode != "overwrite":
            return insert(table, data, request)
        raise


def _staged(transaction: Transaction, data: DataFrame, request: Insert) -> Operation:
    options, snapshot = request.options, transaction.snapshot
    transaction.enforces = ENFORCED
    if snapshot is not None and options.mode == "overwrite" and options.data_change:
        refuse_if_append_only(snapshot.config)
    config = prepare_schema(transaction, nullable_schema(from_spark_schema(data.schema)), options)
    rows = enforced(data, config)
    replaces_some = options.replace_where is not None and snapshot is not None
    if replaces_some:
        rows = _fulfilling(rows, options.replace_where or "", config)
    adds = write_files(rows, config, transaction.store, transaction.clock, request.files)
    if replaces_some and snapshot is not None:
        operation = _replaced(transaction, snapshot, config, adds, data, request)
    else:
        operation = stage_adds(transaction, config, adds, None, options)
    return replace(operation, parameters={**operation.parameters, "mode": _MODES[request.mode]})


def _replaced(
    transaction: Transaction, snapshot: Snapshot, config: TableConfig, adds: Sequence[AddFile], data: DataFrame, request: Insert
) -> Operation:
    """Stage the new files and the removal of the rows for which ``replaceWhere`` is true."""
    options = request.options
    found = condition_of(data.sparkSession, snapshot, options.replace_where or "")
    predicate = all_of(found.predicates)
    transaction.read(predicate)
    candidates = snapshot.files_matching(predicate)
    new = [tagged(config, add) for add in adds]
    if found.exact and _on_partitions_only(predicate, config):
        replaced = Replaced(tuple(remove_files(transaction, add_files(candidates))))
    else:
        replaced = _rows_replaced(transaction, snapshot, config, new, candidates, data.sparkSession, request)
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
    transaction: Transaction,
    snapshot: Snapshot,
    config: TableConfig,
    new: Sequence[AddFile],
    candidates: pa.Table,
    spark: SparkSession,
    request: Insert,
) -> Replaced:
    """Spark finds the rows. It copies those that stay as well, unless the table has vectors for that, or must keep their ids or tell
    the change data feed: those ways are the core's."""
    text, hadoop = request.options.replace_where or "", request.files.hadoop
    by_core = (
        uses_vectors(config)
        or config.properties.enable_change_data_feed
        or bool("rowTracking" in config.features and config.properties.get("delta.enableRowTracking"))
    )
    matching = read_snapshot(spark, snapshot, files=candidates, options=hadoop).where(sf.expr(text))
    wanted = [sf.count("*"), sf.collect_list("_metadata.row_index")] if by_core else [sf.count("*")]
    found = {
        decode_path(row[0], snapshot.store.url): row for row in matching.groupBy("_metadata.file_path").agg(*wanted).collect()
    }
    met: list[tuple[AddFile, Row]] = []
    for add in add_files(candidates):
        row = found.get(decode_path(add.path, snapshot.store.url))
        if row is None:
            transaction.read_rows(add.key, bitmap(pa.array([], pa.int64())))
        else:
            met.append((add, row))
    if by_core:
        changes = [FileChange(add, living_rows(snapshot, add), bitmap(pa.array(sorted(row[2]), pa.int64()))) for add, row in met]
        return stage_replaced(transaction, snapshot, config, new, changes)
    removed = remove_files(transaction, [add for add, _ in met])
    stay = [add for add, row in met if row[1] < living_rows(snapshot, add)]
    copied: list[AddFile] = []
    if stay:
        kept = read_snapshot(spark, snapshot, files=files_table(stay), options=hadoop).where(~_is_true(text))
        written = write_files(enforced(kept, config), config, transaction.store, transaction.clock, request.files)
        copied = [tagged(config, add) for add in written]
        transaction.stage(*copied)
    return Replaced(tuple(removed), tuple(copied), 0, sum(row[1] for _, row in met))


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


def _on_partitions_only(predicate: Predicate, config: TableConfig) -> bool:
    return {path[0] for path in references(predicate)} <= set(config.partition_columns)
