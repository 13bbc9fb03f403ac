"""UPDATE on Spark: changed rows go to new files; `tahoe.ops.rows.update` handles the old files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.base.clock import Moment
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assigned_places import Columns
from tahoe.ops.rows.defaults import Defaults, with_defaults
from tahoe.ops.rows.engine import RowOperation
from tahoe.ops.rows.row_changes import FileChange, RowsChanged, Staged, uses_vectors, without_dead_files
from tahoe.ops.rows.update import snapshot_to_update, stage_updated_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.column_values.identity import refuse_update
from tahoe.spark.commands.assignments import parse_assignments, with_assigned
from tahoe.spark.commands.conditions import has_subquery, resolve_condition
from tahoe.spark.commands.row_changes import CHOSEN, TableRows
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.commands.spark_engine import SparkEngine, write_update_data
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.stored_defaults import written_default
from tahoe.spark.names.settings import is_case_sensitive
from tahoe.spark.scan.relation import named
from tahoe.spark.write.enforce import recomputed
from tahoe.txn.transaction import Transaction


def update(
    target: CommandTarget, values: Sequence[tuple[str, str | Column]], condition: str | Column | None = None
) -> RowsChanged:
    """Assign new values to columns in the rows for which the condition is true, or in all rows without a condition.

    Args:
        values: pairs of a column, or nested field as ``a.b``, and its value: SQL text or a column expression over the old row.

    Raises:
        InvalidRequest: a condition or a value with aggregates, a non-deterministic condition, an append-only table.
        InvariantViolation: a changed row violates a constraint of the table.
        SchemaMismatch: the structure of a value differs from its column's.
        Unsupported: subqueries; a Spark Connect session; a writer feature that Tahoe lacks.
        DeltaConcurrentModificationException: a concurrent commit changed the same rows.
    """
    return run_row_command(target, "UPDATE", lambda transaction: _stage_update(transaction, target, values, condition))


def _stage_update(
    transaction: Transaction,
    target: CommandTarget,
    values: Sequence[tuple[str, str | Column]],
    condition: str | Column | None,
) -> Staged:
    spark, snapshot = target.spark, snapshot_to_update(transaction, values)
    config, started = snapshot.config, transaction.clock.now_ms()
    version = target.at(snapshot)
    resolved = resolve_condition(version, condition, "UPDATE")
    columns = Columns.of(snapshot.schema, target.alias, case_sensitive=is_case_sensitive(spark))
    defaults = Defaults(config, Moment(started, transaction.time_zone), written_default(spark, config.table))
    values = with_defaults(values, columns, defaults)
    if any(has_subquery(Jvm.of(spark), value) for _, value in values):
        transaction.read_whole_table()
    assignments = parse_assignments(version.shape(), values, columns, "UPDATE")
    refuse_update(snapshot.schema, {assignment.path[0] for assignment in assignments}, config.table)
    # Here, so that a value that no cast fits to its column is an error even if no row matches.
    new_values = with_assigned(spark, config.table, snapshot.schema, assignments, sf.col(CHOSEN))
    assigned = frozenset(assignment.path[0] for assignment in assignments)
    engine = _SparkUpdate(TableRows.of(version, transaction, config), resolved, new_values, assigned)
    return stage_updated_rows(RowOperation(transaction, snapshot, resolved.text, started), engine)


@dataclass(frozen=True, slots=True)
class _SparkUpdate(SparkEngine):
    """The `tahoe.ops.rows.engine.UpdateEngine` on Spark.

    Args:
        new_values: the table's columns after the assignments, in the table's order.
        assigned: the names of the columns with assignments to them or inside them.
        updated: receives the files with the changed rows if the change data feed needs them.
    """

    new_values: Sequence[Column]
    assigned: frozenset[str]
    updated: list[AddFile] = field(default_factory=list)

    def write_updated(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """See `tahoe.ops.rows.engine.UpdateEngine`."""
        rows = self.rows.version.rows_of(changes, changed=True)
        marked, feed = uses_vectors(self.rows.config), self.rows.config.properties.enable_change_data_feed
        if not marked and not feed:
            return self.rows.write(self._with_new_values(rows))
        # In separate files, so that the feed can read the written values: a non-deterministic expression must not be evaluated again.
        self.updated.extend(self.rows.write(self._with_new_values(rows.where(sf.col(CHOSEN)))))
        return [*self.updated, *self.rows.copy([] if marked else without_dead_files(changes))]

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return write_update_data(self.rows, changes, self.updated)

    def _with_new_values(self, rows: DataFrame) -> DataFrame:
        version, config = self.rows.version, self.rows.config
        schema = version.snapshot.schema
        extra = [sf.col(quote_identifier(name)) for name in rows.columns if schema.find(name) is None]
        updated = named(rows, version.alias).select(*self.new_values, *extra)
        generated = [column.name for column in schema if column.is_generated and column.name not in self.assigned]
        return recomputed(updated, config, {name: sf.col(CHOSEN) for name in generated}) if generated else updated
