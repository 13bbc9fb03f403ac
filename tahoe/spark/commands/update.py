"""UPDATE on Spark: changed rows go to new files; `tahoe.ops.rows.update` handles the old files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assigned_places import Columns
from tahoe.ops.rows.defaults import with_defaults
from tahoe.ops.rows.row_changes import FileChange, RowsChanged, Staged, snapshot_to_change, uses_vectors
from tahoe.ops.rows.update import stage_updated_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.column_values.default_values import Moment
from tahoe.protocol.column_values.identity import refuse_update
from tahoe.spark.commands.assigned_values import Assignment
from tahoe.spark.commands.assignments import parse_assignments, with_assigned
from tahoe.spark.commands.conditions import ResolvedCondition, check_condition, find_changes, has_subquery
from tahoe.spark.commands.row_changes import (
    CHOSEN,
    committed,
    copy_rows,
    of_kind,
    refuse_connect,
    rows_of,
    rows_of_new,
    rows_that_go,
    write_change_data,
    write_rows,
)
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.names.settings import is_case_sensitive
from tahoe.spark.scan.relation import EVERY_ROW, Alias, condition_of, named, shape_of
from tahoe.spark.write.enforce import recomputed, session_time_zone
from tahoe.spark.write.writer import FileOptions
from tahoe.txn.transaction import Transaction

__all__ = ["stage_update", "update"]


def update(
    spark: SparkSession,
    table: Table,
    values: Sequence[tuple[str, str | Column]],
    condition: str | Column | None = None,
    *,
    alias: Alias | None = None,
    options: Mapping[str, str] | None = None,
) -> RowsChanged:
    """Assign new values to columns in the rows for which the condition is true, or in all rows without a condition.

    Args:
        spark: a classic session.
        values: pairs of a column, or nested field as ``a.b``, and its value: SQL text or a column expression over the old row.
        alias: a name for the table.
        options: Hadoop options for the table's storage.

    Raises:
        InvalidRequest: a condition or a value with aggregates, a non-deterministic condition, an append-only table.
        InvariantViolation: a changed row violates a constraint of the table.
        SchemaMismatch: the structure of a value differs from its column's.
        Unsupported: subqueries; a Spark Connect session; a writer feature that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed the same rows.
    """
    refuse_connect(spark, "UPDATE")

    def stage(transaction: Transaction) -> Staged:
        return stage_update(transaction, spark, values, condition, alias=alias, options=options)

    with shown_jobs(spark, table.clock), told_once(spark):
        return committed(spark, table, stage)


def stage_update(
    transaction: Transaction,
    spark: SparkSession,
    values: Sequence[tuple[str, str | Column]],
    condition: str | Column | None,
    *,
    alias: Alias | None = None,
    options: Mapping[str, str] | None = None,
) -> Staged:
    """Stage the changes that `update` commits."""
    snapshot = snapshot_to_change(transaction)
    snapshot.config.refuse_if_append_only()
    if not values:
        raise InvalidRequest(
            "An UPDATE needs at least one assignment.", code="TAHOE_NOTHING_ASSIGNED", table=snapshot.config.table
        )
    started = transaction.clock.now_ms()
    meaning, text = EVERY_ROW, None
    if condition is not None:
        text = check_condition(spark, snapshot, condition, alias, "UPDATE")
        meaning = condition_of(spark, snapshot, condition, alias)
    seen = named(shape_of(spark, snapshot), alias)
    columns = Columns.of(snapshot.schema, alias, case_sensitive=is_case_sensitive(spark))
    moment, default = Moment(started, session_time_zone(spark)), written_default(spark, snapshot.config.table)
    values = with_defaults(values, snapshot.config, moment, columns, default)
    if any(has_subquery(Jvm.of(spark), value) for _, value in values):
        transaction.read_whole_table()
    assignments = parse_assignments(seen, values, columns, "UPDATE")
    refuse_update(snapshot.schema, {assignment.path[0] for assignment in assignments}, snapshot.config.table)
    resolved = ResolvedCondition(spark, snapshot, condition, meaning, alias, dict(options or {}))
    writer = _Writer(transaction, resolved, assignments)
    return stage_updated_rows(
        transaction,
        snapshot,
        find_changes(transaction, resolved),
        text,
        started,
        writer.write,
        writer.tell,
    )


class _Writer:
    """Writes the new files of an UPDATE, and its change data files."""

    def __init__(self, transaction: Transaction, resolved: ResolvedCondition, assignments: Sequence[Assignment]) -> None:
        self._transaction = transaction
        self._spark = resolved.spark
        self._snapshot = resolved.snapshot
        self._config = resolved.snapshot.config
        self._assignments = assignments
        self._alias = resolved.alias
        self._hadoop = resolved.hadoop
        self._files = FileOptions(hadoop=resolved.hadoop)
        self._changed: list[AddFile] = []

    def write(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the changed rows and, without deletion vectors, the other rows of their files."""
        rows = rows_of(self._spark, self._snapshot, changes, self._hadoop, changed=True)
        marked, feed = uses_vectors(self._config), self._config.properties.enable_change_data_feed
        if not marked and not feed:
            return write_rows(self._transaction, self._config, self._updated(rows), self._files)
        # In separate files, so that the feed can read the written values: a non-deterministic expression must not be evaluated again.
        self._changed = write_rows(self._transaction, self._config, self._updated(rows.where(sf.col(CHOSEN))), self._files)
        stay = [] if marked else [change for change in changes if not change.is_whole]
        return [*self._changed, *copy_rows(self._transaction, self._spark, self._config, stay, self._files)]

    def tell(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """Write the changed rows, before and after the update, to change data files."""
        before = rows_that_go(self._spark, self._snapshot, changes, self._hadoop)
        after = rows_of_new(self._spark, self._snapshot, self._config, self._changed, self._hadoop)
        rows = of_kind(before, "update_preimage").unionByName(of_kind(after, "update_postimage"), allowMissingColumns=True)
        return write_change_data(self._transaction, self._config, rows, self._files)

    def _updated(self, rows: DataFrame) -> DataFrame:
        schema = self._snapshot.schema
        extra = [sf.col(quote_identifier(name)) for name in rows.columns if schema.find(name) is None]
        columns = with_assigned(self._spark, self._config.table, schema, self._assignments, sf.col(CHOSEN))
        updated = named(rows, self._alias).select(*columns, *extra)
        assigned = {assignment.path[0] for assignment in self._assignments}
        generated = [
            column.name for column in schema if "delta.generationExpression" in column.metadata and column.name not in assigned
        ]
        return recomputed(updated, self._config, {name: sf.col(CHOSEN) for name in generated}) if generated else updated
