"""Writes the rows of a DataFrame into a table in sessions of Spark Connect: executors write the files, and the client commits them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvariantViolation
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.conditions import whole_files
from tahoe.ops.rows.insert import (
    check_replaced,
    prepare_schema,
    stage_adds,
)
from tahoe.ops.rows.row_changes import FileChange
from tahoe.ops.write.writer import WriterOptions, tagged
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.spark.commands.insert import (
    MISMATCH,
    DescribeOperation,
    commit_rows,
    fulfilling,
    mismatch,
    no_rows_to_match,
    not_a_condition,
    stage_replacement,
    violation_of_replacing,
    with_parameters,
)
from tahoe.spark.commands.matched_rows import check_matching_columns, resolve_pairs
from tahoe.spark.commands.row_changes import changes_of
from tahoe.spark.commands.spark_engine import Replacement
from tahoe.spark.commands.write_options import Insert, Matching
from tahoe.spark.connect.assigned import cast_to_columns
from tahoe.spark.connect.conditions import RemoteCondition, resolve_condition
from tahoe.spark.connect.remote_changes import RemoteEngine
from tahoe.spark.connect.remote_rows import RemoteFiles, RemoteRows, RemoteVersion
from tahoe.spark.connect.requests.client_requests import reads_newest
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.names.settings import look_at_settings, settings_of, settings_read_once
from tahoe.spark.versions.connect_frames import alias_of, checkpointed
from tahoe.spark.write.enforce import in_session_zone
from tahoe.spark.write.fitting import columns_of, insert_casts
from tahoe.spark.write.idempotent import resetting_version
from tahoe.spark.write.server_defaults import with_named_defaults
from tahoe.spark.write.server_rules import with_generated
from tahoe.txn.transaction import Operation, Transaction


def insert(table: Table, data: DataFrame, request: Insert, describe: DescribeOperation | None = None) -> int | None:
    """Write the rows and return the new version, or None if there was nothing to do.

    Args:
        describe: returns the operation to log, from the default operation and the table's new configuration.

    Raises: the errors of `tahoe.spark.commands.insert.insert`.
    """
    spark = data.sparkSession
    with settings_read_once(spark), resetting_version(spark):
        look_at_settings(spark)
        return commit_rows(table, request, lambda transaction: _staged(transaction, data, request), describe)


def _staged(transaction: Transaction, data: DataFrame, request: Insert) -> Operation:
    options, snapshot, spark = request.options, transaction.snapshot, data.sparkSession
    transaction.enforces = ENFORCED
    if snapshot is not None and reads_newest(data, transaction.store.url):
        transaction.read_all_rows()
    if request.matching is not None and snapshot is None:
        raise no_rows_to_match(f"at {transaction.store.url}", transaction.store.url, request.matching)
    if snapshot is not None and options.mode == "overwrite" and options.data_change:
        snapshot.config.refuse_if_append_only()
    config = prepare_schema(transaction, columns_of(data), options)
    if options.merge_schema and not options.same_types:
        data = cast_to_columns(data, config, insert_casts(settings_of(spark).get))
    files = RemoteFiles(transaction, config, WriterOptions(request.files.max_records_per_file, request.files.compression))
    if snapshot is None or (options.replace_where is None and request.matching is None):
        operation = stage_adds(transaction, config, files.new_files(data, request.files.optimized), None, options)
    else:
        version = RemoteVersion(spark, snapshot, request.alias)
        operation = _replacing(RemoteRows(transaction, config, files.options, version=version), data, request)
    return with_parameters(operation, request)


def _replacing(rows: RemoteRows, data: DataFrame, request: Insert) -> Operation:
    """Stage the removal of the replaced rows and the new files; return the operation."""
    transaction, options, config, version = rows.transaction, request.options, rows.config, rows.version
    condition: RemoteCondition | None = None
    matches: Sequence[FileChange] = ()
    if request.matching is not None:
        data = _stored(data)
        matches = _matching_rows(transaction, version, data, request.matching)
    else:
        assert options.replace_where is not None
        try:
            condition = resolve_condition(version, options.replace_where, "replaceWhere")
        except ParseException as error:
            raise not_a_condition(options.replace_where, error) from error
        columns = config.schema.names if condition.meaning is None else condition.meaning.columns
        if check_replaced(columns, config, options):
            data = with_named_defaults(data, config, columns, in_session_zone(version.spark, transaction).moment())
            data = with_generated(data, config, columns)
            named = data if request.alias is None else data.alias(request.alias)
            data = fulfilling(named, options.replace_where, sf.raise_error(MISMATCH))
    try:
        adds = [
            tagged(config, replace(add, data_change=options.data_change)) for add in rows.new_files(data, request.files.optimized)
        ]
    except Exception as error:
        raise _of_replacing(error, request, config) from error
    engine = Replacement(rows, adds, None if condition is None else RemoteEngine(rows, condition), matches)
    meaning = None if condition is None else condition.meaning
    whole = None if meaning is None else whole_files(version.snapshot, meaning)
    met = None if meaning is None or whole is None else (meaning.predicate, whole)
    return stage_replacement(transaction, config, engine, request, met)


def _stored(data: DataFrame) -> DataFrame:
    """Return the rows, computed once, under their alias: the written rows must be the matched rows."""
    stored, alias = checkpointed(data), alias_of(data)
    return stored if alias is None else stored.alias(alias)


def _of_replacing(error: Exception, request: Insert, config: TableConfig) -> Exception:
    """Return the error with the option of the write that replaces rows, as in a classic session."""
    if MISMATCH in str(error) and not isinstance(error, AnalysisException) and request.options.replace_where is not None:
        return mismatch(config, request.options.replace_where)
    return violation_of_replacing(request, error) if isinstance(error, InvariantViolation) else error


def _matching_rows(
    transaction: Transaction, version: RemoteVersion, source: DataFrame, matching: Matching
) -> Sequence[FileChange]:
    """Return the table's rows that match a row of the source; registers the read."""
    snapshot = version.snapshot
    check_matching_columns(matching, snapshot, source)
    transaction.read_whole_table()
    files = snapshot.files()
    target = version.named(version.with_positions(files))
    equal = (target[name] == source[name] for name in map(quote_identifier, matching.columns))
    on = column_of(matching.on) if matching.on is not None else reduce(and_, equal)
    try:
        return changes_of(snapshot, files, target.join(source, on, "left_semi")).changes
    except AnalysisException:
        resolve_pairs(version.shape(), source, on, matching)
        raise
