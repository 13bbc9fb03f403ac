"""Writes the rows of a DataFrame into a table, as `df.write.format("delta").save(path)` does.

    request ─► transaction ─► schema (`tahoe.ops.rows.insert.prepare_schema`) ─► rows, fitted and checked ─► data files ─► removals ─► commit

An append reads nothing of the table, unless its query does (`tahoe.spark.scan.own_reads`). An overwrite removes all files, the files of
the partitions in the data, the rows that fulfill a condition, or the rows that match a row of the data
(`tahoe.spark.commands.matched_rows`). Catalyst analyzes the user's SQL condition of ``replaceWhere``: files that it matches completely are
removed; from other files rows are removed as in DELETE (`tahoe.spark.commands.row_changes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from pyspark.errors import ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import DeltaConcurrentModificationException, InvalidRequest, InvariantViolation, NotFound
from tahoe.expr.tree.predicate import Predicate, all_of, quote_identifier
from tahoe.ops.rows.insert import (
    already_written,
    changes_nothing,
    check_replaced,
    prepare_schema,
    stage_adds,
    stage_replaced,
    stage_replaced_files,
    stage_rows,
)
from tahoe.ops.write.completion import Completion
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.spark.commands.conditions import ResolvedCondition, resolve_condition
from tahoe.spark.commands.matched_rows import MatchedRows
from tahoe.spark.commands.row_changes import TableRows, TableVersion
from tahoe.spark.commands.source_rows import retry_if_lost, stored
from tahoe.spark.commands.spark_engine import Replacement, SparkEngine, whole_files
from tahoe.spark.commands.statement_time import StatementTime
from tahoe.spark.commands.write_options import Insert, Matching
from tahoe.spark.jvm.errors import quiet_errors, raising
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.scan.inputs import inputs_of
from tahoe.spark.scan.own_reads import recorded_reads
from tahoe.spark.scan.relation import named
from tahoe.spark.write.enforce import enforced, in_session_zone
from tahoe.spark.write.fitting import casts_of_inserts, columns_of
from tahoe.spark.write.idempotent import resetting_version
from tahoe.spark.write.writer import write_files
from tahoe.txn.prepare import future_config
from tahoe.txn.transaction import Operation, Transaction

DescribeOperation = Callable[[Operation, TableConfig], Operation]
Arrange = Callable[[DataFrame], DataFrame]
"""Renames the columns of a query to the table's column names."""

MISMATCH = "DELTA_REPLACE_WHERE_MISMATCH"
"""The error class of a new row that does not fulfill ``replaceWhere``."""
_MODES = {"append": "Append", "overwrite": "Overwrite", "error": "ErrorIfExists", "ignore": "Ignore"}


def insert(
    table: Table, data: DataFrame, request: Insert, describe: DescribeOperation | None = None, arrange: Arrange | None = None
) -> int | None:
    """Write the rows and return the new version, or None if there was nothing to do.

    Args:
        describe: returns the operation to log, from the default operation and the table's new configuration.
        arrange: maps the columns, if they do not match the table's by name.

    Raises:
        InvalidRequest, SchemaMismatch, Unsupported: before anything is written.
        NotFound: there is no table with rows to match (``DELTA_PATH_DOES_NOT_EXIST``).
        DeltaConcurrentModificationException: a concurrent commit conflicts; VACUUM deletes the files written here.
    """

    def stage(transaction: Transaction) -> Operation:
        # A write with a condition on the table's rows runs without Spark's own error logging; other writes keep it.
        has_condition = request.options.replace_where is not None or request.matching is not None
        quiet = quiet_errors(data.sparkSession) if has_condition else nullcontext()
        transaction.inputs = inputs_of(data)
        with job_progress(data.sparkSession, table.clock), quiet, recorded_reads(data.sparkSession, transaction):
            return _staged(transaction, data, request, arrange)

    with resetting_version(data.sparkSession):
        return retry_if_lost(lambda: commit_rows(table, request, stage, describe))


def commit_rows(
    table: Table, request: Insert, stage: Callable[[Transaction], Operation], describe: DescribeOperation | None
) -> int | None:
    """Stage rows and commit them, by the mode of the request; return the new version, or None if there was nothing to do.

    Args:
        stage: writes the files; called again if a concurrent writer created the table first.
        describe: see `insert`.
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
    operation = stage(transaction)
    if describe is not None:
        operation = describe(operation, future_config(transaction))
    if describe is None and changes_nothing(transaction):
        return None
    try:
        return table.commit(transaction, operation, user_metadata=request.user_metadata).version
    except DeltaConcurrentModificationException:
        # Two concurrent runs of the same idempotent write: the other one has already written the rows.
        if request.options.app is not None and already_written(table.begin(), request.options.app):
            return None
        # Two writers that find no table both try to create it; the second one applies its mode to the table of the first.
        if transaction.snapshot is None and request.mode != "overwrite":
            return commit_rows(table, request, stage, describe)
        raise


def _staged(transaction: Transaction, data: DataFrame, request: Insert, arrange: Arrange | None) -> Operation:
    arranged: Arrange = arrange or (lambda rows: rows)
    if request.matching is None:
        return _staged_rows(transaction, arranged(data), request, None)
    snapshot, spark = transaction.snapshot, data.sparkSession
    if snapshot is None:
        raise no_rows_to_match(f"at {transaction.store.url}", transaction.store.url, request.matching)
    # The written rows must be the matched rows.
    with stored(StatementTime(spark).frame(data)) as source:
        version = TableVersion(spark, snapshot, request.alias, request.files.hadoop)
        match = MatchedRows(version, source, request.matching)
        return _staged_rows(transaction, arranged(source.frame), request, match)


def _staged_rows(transaction: Transaction, data: DataFrame, request: Insert, match: MatchedRows | None) -> Operation:
    options, snapshot, spark = request.options, transaction.snapshot, data.sparkSession
    transaction.enforces = ENFORCED
    if snapshot is not None and options.mode == "overwrite" and options.data_change:
        snapshot.config.refuse_if_append_only()
    matched = None if match is None else match.resolved()
    config = prepare_schema(transaction, columns_of(data), options)
    completion = Completion(in_session_zone(spark, transaction), data.columns)
    rows = enforced(data, config, completion=completion, casts=casts_of_inserts(spark))
    condition = None
    if snapshot is not None and options.replace_where is not None:
        version = TableVersion(spark, snapshot, request.alias, request.files.hadoop)
        condition = _resolved(version, options.replace_where)
        if check_replaced(condition.columns, config, options):
            failure = raising(mismatch(config, options.replace_where))
            rows = fulfilling(named(rows, request.alias), options.replace_where, failure)
    changes = None if match is None or matched is None else match.find(transaction, matched)
    with _replacing(request):
        adds = write_files(rows, config, transaction, request.files, completion=completion)
    if snapshot is None or (condition is None and changes is None):
        operation = stage_adds(transaction, config, adds, None, options)
    else:
        new = [tagged(config, replace(add, data_change=options.data_change)) for add in adds]
        version = TableVersion(spark, snapshot, request.alias, request.files.hadoop)
        table = TableRows(version, transaction, config, request.files)
        engine = Replacement(table, new, None if condition is None else SparkEngine(table, condition), changes or ())
        whole = None if condition is None else whole_files(condition)
        met = None if condition is None or whole is None else (all_of(condition.meaning.predicates), whole)
        operation = stage_replacement(transaction, config, engine, request, met)
    return with_parameters(operation, request)


def stage_replacement(
    transaction: Transaction,
    config: TableConfig,
    engine: Replacement,
    request: Insert,
    whole: tuple[Predicate, Sequence[AddFile]] | None,
) -> Operation:
    """Stage the removal of the replaced rows and the new files; return the operation.

    Args:
        whole: the condition and its files, if it selects whole files; then the engine is only asked for the new files.
    """
    if whole is None:
        replaced = stage_replaced(transaction, config, engine, data_change=request.options.data_change)
    else:
        replaced = stage_replaced_files(transaction, *whole, request.options)
    return stage_rows(transaction, engine.adds, replaced, request.options, counts_rows=request.matching is not None)


def with_parameters(operation: Operation, request: Insert) -> Operation:
    """Return the operation with the parameters that describe the mode and the replaced rows in the history."""
    replaced: dict[str, object] = {} if request.predicate is None else {"predicate": request.predicate}
    if request.matching is not None:
        on, using = request.matching.on, request.matching.using
        replaced = {"replaceOnCond": on} if on is not None else {"replaceUsingCols": f"({using})"}
    return replace(operation, parameters={**operation.parameters, **replaced, "mode": _MODES[request.mode]})


def no_rows_to_match(place: str, table: str, matching: Matching) -> NotFound:
    """Return the error for a write that replaces matching rows of a missing table."""
    return NotFound(
        f"There is no Delta table {place} of which rows could match '{matching.text}'. Create it first.",
        code="DELTA_PATH_DOES_NOT_EXIST",
        table=table,
    )


def _resolved(version: TableVersion, text: str) -> ResolvedCondition:
    """Return the rows that ``replaceWhere`` selects."""
    try:
        return resolve_condition(version, text, "replaceWhere")
    except ParseException as error:
        raise not_a_condition(text, error) from error


def not_a_condition(text: str, error: ParseException) -> InvalidRequest:
    """Return the error for a ``replaceWhere`` that Spark's parser rejects."""
    return InvalidRequest(
        f"replaceWhere '{text}' is not a condition: {str(error).strip().partition(' SQLSTATE')[0]}",
        code="DELTA_FAILED_RECOGNIZE_PREDICATE",
    )


@contextmanager
def _replacing(request: Insert) -> Iterator[None]:
    """Turn the violation of a table constraint into an error that names the replacing option, as in delta-spark."""
    try:
        yield
    except InvariantViolation as error:
        if request.matching is None and request.options.replace_where is None:
            raise
        raise violation_of_replacing(request, error) from error


def violation_of_replacing(request: Insert, error: InvariantViolation) -> InvariantViolation:
    """Return the error of a write that replaces rows, with the replacing option."""
    if request.matching is None:
        option, code = request.options.replace_where, MISMATCH
    else:
        option, code = request.matching.text, "DELTA_REPLACE_ON_OR_USING_TABLE_CONSTRAINT_VIOLATION"
    return InvariantViolation(f"Of a write that replaces '{option}': {error.message}", code=code, **error.facts)


def mismatch(config: TableConfig, text: str) -> InvalidRequest:
    """Return the error for a new row that does not fulfill ``replaceWhere``."""
    return InvalidRequest(
        f"A row to be written to table {config.table} does not satisfy replaceWhere '{text}'. Nothing was committed. "
        "Write only rows that satisfy it, or change the condition.",
        code=MISMATCH,
        table=config.table,
    )


def fulfilling(rows: DataFrame, text: str, failure: Column) -> DataFrame:
    """Return the rows; a row that does not fulfill ``replaceWhere`` evaluates `failure`.

    Args:
        rows: under the alias that the condition uses.
    """
    first, *rest = rows.columns
    fulfills = sf.coalesce(column_of(text), sf.lit(False))
    checked = sf.when(fulfills, sf.col(quote_identifier(first))).otherwise(failure).alias(first)
    return rows.select(checked, *(sf.col(quote_identifier(name)) for name in rest))
