"""Rows of a DataFrame into a table: what `df.write.format("delta").save(path)` does.

    request ─► transaction ─► schema (`tahoe.ops.insert.prepare_schema`) ─► fitted rows ─► data files ─► removals ─► commit

An append reads nothing of the table. An overwrite removes all files, the files of the partitions that the data has, or the rows of a
condition. The condition of ``replaceWhere`` is the user's own SQL: Catalyst tells what it means, files that it can only match whole are
removed whole, and of the others the rows that it does not match are written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.exceptions import DeltaConcurrentModificationException, InvalidRequest, Unsupported
from tahoe.expr.predicate import Predicate, all_of, quote_identifier, references
from tahoe.log.replay import add_files, files_table
from tahoe.ops.insert import WriteOptions, already_written, prepare_schema, stage_adds, write_operation
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.errors import raising
from tahoe.spark.fitting import fitted, nullable_schema
from tahoe.spark.jvm import Jvm
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
    config = prepare_schema(transaction, nullable_schema(from_spark_schema(data.schema)), options)
    rows = fitted(Jvm.of(data.sparkSession), data, config.schema, config.table)
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
    options, text = request.options, request.options.replace_where or ""
    spark, now = data.sparkSession, transaction.clock.now_ms()
    found = condition_of(spark, snapshot, text)
    predicate = all_of(found.predicates) if found.predicates else None
    if predicate is None:
        transaction.read_whole_table()
    else:
        transaction.read(predicate)
    candidates = snapshot.files_matching(predicate)
    if found.exact and _on_partitions_only(predicate, config):
        removed = [add.remove(now) for add in add_files(candidates)]
        copied: list[AddFile] = []
    else:
        removed, copied = _rewritten(transaction, snapshot, config, candidates, data, request)
    transaction.read_files(remove.key for remove in removed)
    transaction.stage(*removed, *adds, *copied)
    if options.app is not None:
        transaction.stage_app(*options.app)
    return write_operation(config, adds, removed, copied, options, created=False)


def _rewritten(
    transaction: Transaction, snapshot: Snapshot, config: TableConfig, candidates: pa.Table, data: DataFrame, request: Insert
) -> tuple[list[RemoveFile], list[AddFile]]:
    """Files with matching rows go; the rows of them that do not match are written to new files."""
    if config.properties.enable_change_data_feed:
        raise Unsupported(
            f"replaceWhere on data columns of table {config.table} must write the change data feed, which this version of Tahoe does "
            "not do yet. Use a condition on the partition columns only, or unset delta.enableChangeDataFeed.",
            table=config.table,
        )
    text, spark, now = request.options.replace_where or "", data.sparkSession, transaction.clock.now_ms()
    options = request.files.hadoop
    matching = read_snapshot(spark, snapshot, files=candidates, options=options).where(sf.expr(text))
    paths = [row[0] for row in matching.select("_metadata.file_path").distinct().collect()]
    names = {decode_path(path, snapshot.store.url) for path in paths}
    met = [add for add in add_files(candidates) if decode_path(add.path, snapshot.store.url) in names]
    if not met:
        return [], []
    kept = read_snapshot(spark, snapshot, files=files_table(met), options=options).where(~_is_true(text))
    rows = fitted(Jvm.of(spark), kept, config.schema, config.table)
    copied = write_files(rows, config, transaction.store, transaction.clock, request.files)
    return [add.remove(now) for add in met], copied


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


def _on_partitions_only(predicate: Predicate | None, config: TableConfig) -> bool:
    partitioned = set(config.partition_columns)
    return predicate is None or all(path[0] in partitioned for path in references(predicate))
