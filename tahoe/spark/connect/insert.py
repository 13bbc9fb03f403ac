"""Writes the rows of a DataFrame into a table in sessions of Spark Connect: executors write the files, and the client commits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, InvariantViolation
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.conditions import whole_files
from tahoe.ops.rows.insert import (
    OverwriteActions,
    check_replaced,
    prepare_schema,
    rows_in,
    stage_adds,
    stage_replaced,
    write_operation,
)
from tahoe.ops.rows.row_changes import FileChange, remove_files
from tahoe.ops.write.writer import WriterOptions, tagged
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.spark.commands.insert import DescribeOperation, commit_rows, no_rows_to_match, with_parameters
from tahoe.spark.commands.row_changes import changes_of, of_kind
from tahoe.spark.commands.write_options import Insert, Matching
from tahoe.spark.connect.conditions import RemoteCondition, resolve_condition
from tahoe.spark.connect.remote_changes import RemoteEngine
from tahoe.spark.connect.remote_rows import RemoteFiles, RemoteVersion
from tahoe.spark.write.fitting import columns_of
from tahoe.spark.write.idempotent import resetting_version
from tahoe.txn.transaction import Operation, Transaction

_MISMATCH = "DELTA_REPLACE_WHERE_MISMATCH"


def insert(table: Table, data: DataFrame, request: Insert, describe: DescribeOperation | None = None) -> int | None:
    """Write the rows and return the new version, or None if there was nothing to do.

    Args:
        describe: returns the operation to log, from the default operation and the table's new configuration.

    Raises: the errors of `tahoe.spark.commands.insert.insert`.
    """
    with resetting_version(data.sparkSession):
        return commit_rows(table, request, lambda transaction: _staged(transaction, data, request), describe)


def _staged(transaction: Transaction, data: DataFrame, request: Insert) -> Operation:
    options, snapshot, spark = request.options, transaction.snapshot, data.sparkSession
    transaction.enforces = ENFORCED
    if request.matching is not None and snapshot is None:
        raise no_rows_to_match(f"at {transaction.store.url}", transaction.store.url, request.matching)
    if snapshot is not None and options.mode == "overwrite" and options.data_change:
        snapshot.config.refuse_if_append_only()
    config = prepare_schema(transaction, columns_of(data), options)
    files = RemoteFiles(transaction, config, WriterOptions(request.files.max_records_per_file, request.files.compression))
    if snapshot is None or (options.replace_where is None and request.matching is None):
        operation = stage_adds(transaction, config, files.new_files(data), None, options)
    else:
        operation = _replacing(files, RemoteVersion(spark, snapshot, request.alias), data, request)
    return with_parameters(operation, request)


def _replacing(files: RemoteFiles, version: RemoteVersion, data: DataFrame, request: Insert) -> Operation:
    """Stage the removal of the replaced rows and the new files; return the operation."""
    transaction, options, config = files.transaction, request.options, files.config
    condition: RemoteCondition | None = None
    matches: Sequence[FileChange] = ()
    if request.matching is not None:
        data = _stored(data)
        matches = _matching_rows(transaction, version, data, request.matching)
    else:
        assert options.replace_where is not None
        condition = resolve_condition(version, options.replace_where, "replaceWhere")
        columns = config.schema.names if condition.meaning is None else condition.meaning.columns
        if check_replaced(columns, config, options):
            data = _fulfilling(data, options.replace_where, request.alias)
    try:
        adds = [tagged(config, replace(add, data_change=options.data_change)) for add in files.new_files(data)]
    except Exception as error:
        raise _of_replacing(error, request, config) from error
    engine = _Replacement(version, files, adds, condition, matches)
    meaning = None if condition is None else condition.meaning
    whole = None if meaning is None else whole_files(version.snapshot, meaning)
    if whole is None or meaning is None:
        replaced = stage_replaced(transaction, config, engine, data_change=options.data_change)
    else:
        transaction.read(meaning.predicate)
        removed = remove_files(transaction, whole, data_change=options.data_change)
        replaced = OverwriteActions(tuple(removed), deleted_rows=rows_in(whole))
    transaction.stage(*adds)
    if options.app is not None:
        transaction.stage_app(*options.app)
    return write_operation(adds, replaced, options, created=False, counts_rows=request.matching is not None)


def _stored(data: DataFrame) -> DataFrame:
    """Return the rows, computed once, under their alias: the written rows must be the matched rows."""
    plan: Any = data._plan
    stored = data.localCheckpoint()
    return stored.alias(plan._alias) if type(plan).__name__ == "SubqueryAlias" else stored


def _of_replacing(error: Exception, request: Insert, config: TableConfig) -> Exception:
    """Return the error with the option of the write that replaces rows, as in a classic session."""
    options = request.options
    if _MISMATCH in str(error) and options.replace_where is not None:
        return InvalidRequest(
            f"A row to be written to table {config.table} does not satisfy replaceWhere '{options.replace_where}'. Nothing was committed. "
            "Write only rows that satisfy it, or change the condition.",
            code=_MISMATCH,
            table=config.table,
        )
    if not isinstance(error, InvariantViolation):
        return error
    matching = request.matching
    text, code = (
        (options.replace_where, _MISMATCH)
        if matching is None
        else (matching.text, "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION")
    )
    return InvariantViolation(f"Of a write that replaces '{text}': {error.message}", code=code, **error.facts)


def _matching_rows(
    transaction: Transaction, version: RemoteVersion, source: DataFrame, matching: Matching
) -> Sequence[FileChange]:
    """Return the table's rows that match a row of the source; registers the read."""
    snapshot = version.snapshot
    for name in matching.columns:
        for side, names in (("table", snapshot.schema.names), ("source", source.columns)):
            if name.lower() not in {column.lower() for column in names}:
                raise InvalidRequest(
                    f"replaceUsing '{matching.using}' names '{name}', which is no column of the {side} of the write to "
                    f"{snapshot.store.url}; its columns are {', '.join(sorted(names))}.",
                    code="UNRESOLVED_INSERT_REPLACE_USING_COLUMN",
                    column=name,
                )
    transaction.read_whole_table()
    files = snapshot.files()
    target = version.named(version.with_positions(files))
    equal = (target[name] == source[name] for name in map(quote_identifier, matching.columns))
    on = sf.expr(matching.on) if matching.on is not None else reduce(and_, equal)
    return changes_of(snapshot, files, target.join(source, on, "left_semi")).changes


def _fulfilling(rows: DataFrame, text: str, alias: str | None) -> DataFrame:
    """Return the rows; the query fails on a row that does not fulfill ``replaceWhere``."""
    first, *rest = rows.columns
    named = rows if alias is None else rows.alias(alias)
    fulfills: Column = sf.coalesce(sf.expr(text), sf.lit(False))
    checked = sf.when(fulfills, sf.col(quote_identifier(first))).otherwise(sf.raise_error(_MISMATCH)).alias(first)
    return named.select(checked, *(sf.col(quote_identifier(name)) for name in rest))


@dataclass(frozen=True, slots=True)
class _Replacement:
    """The `tahoe.ops.rows.engine.Engine` of an overwrite of some rows.

    Args:
        adds: the new files, about to be staged.
        condition: selects the replaced rows; None if `matches` are these rows.
    """

    version: RemoteVersion
    files: RemoteFiles
    adds: Sequence[AddFile]
    condition: RemoteCondition | None
    matches: Sequence[FileChange]

    def find_rows(self) -> Sequence[FileChange]:
        """Return the replaced rows."""
        if self.condition is None:
            return self.matches
        return RemoteEngine(self.version, self.files, self.condition).find_rows()

    def copy_rows(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the remaining rows of these files."""
        return self.files.write(self.version.remaining_rows(changes), copied=True) if changes else []

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """Write the replaced rows and the new rows."""
        deleted = of_kind(self.version.changed_rows(changes), "delete")
        inserted = of_kind(self.version.written(self.adds, self.files.config), "insert")
        return self.files.write_change_data(deleted.unionByName(inserted, allowMissingColumns=True))
