"""DELETE and UPDATE in sessions of Spark Connect.

The client plans: the version, and the files that may have matching rows. Executors find the rows, and one bitmap for each file comes to the
client. Executors write new files. The client commits once; a lost race is resolved as in a classic session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from tahoe.base.clock import Moment
from tahoe.expr.tree.predicate import TRUE, quote_identifier
from tahoe.log.files.removed_files import adds_of
from tahoe.log.replay import add_files
from tahoe.ops.rows.assigned_places import Columns
from tahoe.ops.rows.conditions import whole_files
from tahoe.ops.rows.defaults import Defaults, with_defaults
from tahoe.ops.rows.delete import stage_deleted_files, stage_deleted_rows
from tahoe.ops.rows.engine import RowOperation
from tahoe.ops.rows.row_changes import (
    FileChange,
    RowsChanged,
    Staged,
    all_rows,
    snapshot_to_delete_from,
    uses_vectors,
    without_dead_files,
)
from tahoe.ops.rows.update import snapshot_to_update, stage_updated_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.column_values.identity import refuse_update
from tahoe.spark.commands.assignments import Assignment, Value, assigned
from tahoe.spark.commands.conditions import OF_ASSIGNMENTS, OF_CONDITIONS
from tahoe.spark.commands.delete import rules_of_delete
from tahoe.spark.commands.row_changes import changes_of
from tahoe.spark.commands.row_command import CommandTarget, run_row_command
from tahoe.spark.commands.spark_engine import RowsEngine, write_update_data
from tahoe.spark.connect.assigned import fit_of, parse_assignments
from tahoe.spark.connect.conditions import (
    RemoteCondition,
    check_expression,
    columns_in,
    may_read_metadata,
    resolve_condition,
    text_of,
)
from tahoe.spark.connect.remote_rows import RemoteRows, RemoteVersion
from tahoe.spark.names.settings import is_case_sensitive, settings_of
from tahoe.spark.portable.file_metadata import METADATA
from tahoe.spark.versions.connect_frames import with_known_columns
from tahoe.spark.write.fitting import Casts, assignment_casts
from tahoe.spark.write.server_defaults import written_by_server
from tahoe.sql.selects import has_subquery
from tahoe.txn.transaction import Transaction


def delete(target: CommandTarget, condition: str | Column | None = None) -> RowsChanged:
    """Delete the rows for which the condition is true, or all rows without a condition; rows for which it is NULL stay.

    Raises: the errors of `tahoe.spark.commands.delete.delete`.
    """
    return run_row_command(target, "DELETE", lambda transaction: _stage_delete(transaction, target, condition))


def _stage_delete(transaction: Transaction, target: CommandTarget, condition: str | Column | None) -> Staged:
    snapshot = snapshot_to_delete_from(transaction)
    started = transaction.clock.now_ms()
    if condition is None:
        return stage_deleted_files(transaction, snapshot, adds_of(snapshot.files()), None, None)
    version = RemoteVersion(target.spark, snapshot, target.alias)
    rules = rules_of_delete(target.spark) if has_subquery(text_of(condition)) else OF_CONDITIONS
    resolved = resolve_condition(version, condition, "DELETE", rules)
    meaning = resolved.meaning
    whole = None if meaning is None else whole_files(snapshot, meaning)
    if whole is not None and meaning is not None:
        predicate = None if meaning.predicate == TRUE else meaning.predicate
        return stage_deleted_files(transaction, snapshot, whole, predicate, resolved.text)
    rows = RemoteRows(transaction, snapshot.config, version=version)
    return stage_deleted_rows(RowOperation(transaction, snapshot, resolved.text, started), RemoteEngine(rows, resolved))


def update(
    target: CommandTarget, values: Sequence[tuple[str, str | Column]], condition: str | Column | None = None
) -> RowsChanged:
    """Assign new values to columns in the rows for which the condition is true, or in all rows without a condition.

    Args:
        values: pairs of a column, or nested field as ``a.b``, and its value: SQL text or a column expression over the old row.

    Raises: the errors of `tahoe.spark.commands.update.update`.
    """
    return run_row_command(target, "UPDATE", lambda transaction: _stage_update(transaction, target, values, condition))


def _stage_update(
    transaction: Transaction, target: CommandTarget, values: Sequence[tuple[str, str | Column]], condition: str | Column | None
) -> Staged:
    spark, snapshot = target.spark, snapshot_to_update(transaction, values)
    config, started = snapshot.config, transaction.clock.now_ms()
    version = RemoteVersion(spark, snapshot, target.alias)
    resolved = resolve_condition(version, condition, "UPDATE")
    columns = Columns.of(snapshot.schema, target.alias, case_sensitive=is_case_sensitive(spark))
    defaults = Defaults(config, Moment(started, transaction.time_zone), written_by_server(spark, config))
    values = with_defaults(values, columns, defaults)
    for text in (text_of(value) for _, value in values):
        check_expression(text, "an assignment of UPDATE", OF_ASSIGNMENTS)
        if has_subquery(text):  # which may read the table
            transaction.read_whole_table()
    casts = assignment_casts(settings_of(spark).get)
    reads_metadata = may_read_metadata(snapshot.schema, *(value for _, value in values))
    shape = version.shape(metadata=reads_metadata)
    assignments = parse_assignments(shape, values, columns, "an assignment of UPDATE", casts)
    refuse_update(snapshot.schema, {assignment.path[0] for assignment in assignments}, config.table)
    engine = RemoteUpdate(RemoteRows(transaction, config, version=version), resolved, assignments, casts, reads_metadata)
    # The server rejects a value that no cast fits, even if no row will match.
    engine = replace(engine, updated_columns=engine.with_new_values(shape).schema)
    return stage_updated_rows(RowOperation(transaction, snapshot, resolved.text, started), engine)


@dataclass(frozen=True, slots=True)
class RemoteEngine(RowsEngine[RemoteRows]):
    """The `tahoe.ops.rows.engine.Engine` of a DELETE on the executors of a server."""

    condition: RemoteCondition

    def find_rows(self) -> Sequence[FileChange]:
        """Return the selected rows of each file: reads the files that may have any, and registers the read with the transaction."""
        version, meaning = self.rows.version, self.condition.meaning
        snapshot = version.snapshot
        if meaning is None or meaning.predicate == TRUE:
            self.rows.transaction.read_whole_table()
        else:
            self.rows.transaction.read(meaning.predicate)
        whole = None if meaning is None else whole_files(snapshot, meaning)
        if whole is not None:
            return [all_rows(snapshot, add) for add in whole]
        candidates = snapshot.files() if meaning is None else snapshot.files_matching(meaning.predicate)
        if not len(candidates):
            return []
        column = self.condition.column
        columns = () if column is None else columns_in(snapshot.schema, column)
        reads_metadata = self.condition.reads_metadata
        rows = version.with_positions(candidates, ids=reads_metadata, columns=columns)
        rows = version.named(version.with_metadata(rows, add_files(candidates)) if reads_metadata else rows)
        return changes_of(snapshot, candidates, rows if column is None else rows.where(column)).changes


@dataclass(frozen=True, slots=True)
class RemoteUpdate(RemoteEngine):
    """The `tahoe.ops.rows.engine.UpdateEngine` on the executors of a server.

    Args:
        reads_metadata: whether the assignments may read the column `_metadata`.
        updated: receives the files with the changed rows, from which the change data feed reads the written values.
        updated_columns: the table's columns after the assignments; None before the server has checked these.
    """

    assignments: Sequence[Assignment]
    casts: Casts
    reads_metadata: bool = False
    updated: list[AddFile] = field(default_factory=list)
    updated_columns: StructType | None = None

    def write_updated(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """See `tahoe.ops.rows.engine.UpdateEngine`."""
        version = self.rows.version
        rows = version.changed_rows(changes, ids=True, get_new_values=True)
        rows = version.named(version.with_metadata(rows, (change.add for change in changes)) if self.reads_metadata else rows)
        self.updated.extend(self.rows.write(self.with_new_values(rows)))
        copied = [] if uses_vectors(self.rows.config) else self.copy_rows(without_dead_files(changes))
        return [*self.updated, *copied]

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return write_update_data(self.rows, changes, self.updated)

    def with_new_values(self, rows: DataFrame) -> DataFrame:
        """Return rows of the table after the assignments, without their generated columns."""
        schema = self.rows.version.snapshot.schema
        others = [column for column in rows.schema if schema.find(column.name) is None and column.name != METADATA]
        columns = [sf.col(quote_identifier(column.name)) for column in others]
        for column in schema:
            inside = [assignment.inside() for assignment in self.assignments if assignment.path[0] == column.name]
            if not inside and column.is_generated:
                continue  # computed again when the row is written
            old = Value(sf.col(quote_identifier(column.name)), column.data_type)
            fit = fit_of(self.rows.config.table, column, self.casts)
            columns.append((assigned(fit, column.data_type, old, inside) if inside else old.column).alias(column.name))
        new = rows.select(*columns)
        if self.updated_columns is None:
            return new
        return with_known_columns(new, StructType([*others, *self.updated_columns]))
