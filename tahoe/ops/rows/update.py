"""UPDATE: write changed rows to new files, and delete their old versions by deletion vectors or by rewriting files.

`stage_update` runs without Spark; Spark's UPDATE uses `stage_updated_rows` with its own engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.json_values import compact_json
from tahoe.base.lazy import pc
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.condition_forms import Condition
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.python_values import SqlValues, sql_texts
from tahoe.ops.rows.assigned_places import Columns, assigned_places
from tahoe.ops.rows.assignments import Assignment, assigned, parse_assignments
from tahoe.ops.rows.changed_columns import ChangedColumns
from tahoe.ops.rows.defaults import Defaults, with_defaults
from tahoe.ops.rows.engine import ArrowEngine, RowOperation, UpdateEngine
from tahoe.ops.rows.row_changes import (
    FileChange,
    Staged,
    file_with_positions,
    is_in,
    mark_dead,
    remove_files,
    snapshot_to_delete_from,
    uses_vectors,
    vector_metrics,
    without_dead_files,
    write_change_data,
    write_rows,
)
from tahoe.ops.write.row_ids import RowIds
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.column_values.identity import refuse_update
from tahoe.protocol.config import TableConfig
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.arrow_values import empty_table
from tahoe.snapshot.changes import with_change_type
from tahoe.snapshot.read_errors import naming, naming_table
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction


def stage_update(
    transaction: Transaction,
    values: SqlValues,
    where: Condition | None = None,
    *,
    progress: Progress = silent,
) -> Staged:
    """Stage new values for the rows for which `where` is true; the other rows stay unchanged.

    Args:
        values: column, or nested field as ``a.b`` → SQL expression over the old row, or a Python value.
        where: SQL text, or a predicate; None for all rows.
        progress: called with the numbers of files searched and of files rewritten.

    Raises:
        InvalidRequest: an expression cannot be parsed, a value cannot be computed or stored, or the table is append-only.
        NotFound: there is no table.
    """
    snapshot = snapshot_to_update(transaction, values)
    config = snapshot.config
    moment = transaction.moment()
    condition = row_condition(where, config.schema, moment.time_zone, moment.ms)
    columns = Columns.of(config.schema)
    texts = with_defaults(tuple(sql_texts(values).items()), columns, Defaults(config, moment))
    places = assigned_places((key for key, _ in texts), [columns])
    assignments = parse_assignments(places, (text for _, text in texts), config.schema, moment)
    refuse_update(config.schema, {assignment.path[0] for assignment in assignments}, config.table)
    _check_casts(config, assignments)
    engine = _ArrowUpdate(transaction, snapshot, config, condition, progress, assignments)
    return stage_updated_rows(RowOperation(transaction, snapshot, condition.text, moment.ms), engine)


def _check_casts(config: TableConfig, assignments: Sequence[Assignment]) -> None:
    """Raise for a value that no cast fits to its column, even if no row will match."""
    no_rows = empty_table(to_arrow_schema(config.schema))
    with naming_table(config.table):
        assigned(no_rows, config.schema, assignments, no_rows)


@dataclass(frozen=True, slots=True)
class _ArrowUpdate(ArrowEngine):
    """The `UpdateEngine` in this process, without Spark."""

    assignments: Sequence[Assignment]

    def write_updated(self, changes: Sequence[FileChange]) -> list[AddFile]:
        snapshot, added = self.snapshot_of(changes), list[AddFile]()
        if not uses_vectors(self.config):
            by_path = ChangedColumns(snapshot, self.assignments).rewritten(changes, self.transaction.clock, self.progress)
            added, changes = list(by_path.values()), [change for change in changes if change.add.path not in by_path]
            self.transaction.stage(*added)
        rows = _new_rows if uses_vectors(self.config) else _whole_new_files
        if added and not changes:
            return added
        rewritten = tracked(changes, self.progress, "files rewritten")
        return added + write_rows(self.transaction, self.config, rows(snapshot, rewritten, self.assignments))

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        return write_change_data(self.transaction, self.config, _feed(self.snapshot_of(changes), changes, self.assignments))


def snapshot_to_update(transaction: Transaction, values: Sized) -> Snapshot:
    """Return the snapshot of `snapshot_to_delete_from`. Raises `InvalidRequest`, too: there is no assignment."""
    snapshot = snapshot_to_delete_from(transaction)
    if not values:
        table = snapshot.config.table
        raise InvalidRequest("An UPDATE needs at least one assignment.", code="TAHOE_NOTHING_ASSIGNED", table=table)
    return snapshot


def stage_updated_rows(operation: RowOperation, engine: UpdateEngine) -> Staged:
    """Stage the update of the engine's rows, whose new values are in new files."""
    changes = engine.find_rows()
    if not changes:
        return Staged(None)
    transaction, config = operation.transaction, operation.snapshot.config
    scanned = transaction.clock.now_ms()
    marked = uses_vectors(config)
    stay = without_dead_files(changes)
    gone = [change.add for change in changes if change.is_whole or not marked]
    remove_files(transaction, gone)
    added = engine.write_updated(changes)
    feed = engine.write_change_data(changes) if config.properties.enable_change_data_feed else []
    if marked:
        mark_dead(transaction, config, stay)
    updated = sum(len(change.dead) for change in changes)
    ended = transaction.clock.now_ms()
    metrics: dict[str, int | str] = {
        "numAddedFiles": len(added),
        "numAddedBytes": sum(add.size for add in added),
        "numRemovedFiles": len(gone),
        "numRemovedBytes": sum(add.size for add in gone),
        **vector_metrics(changes, marked),
        "numDeletionVectorsUpdated": 0,
        "numAddedChangeFiles": len(feed),
        "numUpdatedRows": updated,
        "numCopiedRows": 0 if marked else sum(change.living - len(change.dead) for change in changes),
        "executionTimeMs": ended - operation.started,
        "scanTimeMs": scanned - operation.started,
        "rewriteTimeMs": ended - scanned,
    }
    texts = [] if operation.condition is None else [operation.condition]
    parameters = {"predicate": compact_json(texts)}
    return Staged(Operation("UPDATE", parameters, metrics), num_updated_rows=updated)


def _new_rows(snapshot: Snapshot, changes: Iterable[FileChange], assignments: Sequence[Assignment]) -> Iterator[pa.Table]:
    """Yield the changed rows with their new values, file by file."""
    for change in changes:
        rows, positions = file_with_positions(snapshot, change.add)
        chosen = is_in(positions, change.dead)
        after = _assigned(snapshot, change, rows.filter(chosen), assignments)
        yield RowIds.of(snapshot, change.add).onto(after, chosen, changed=True)


def _assigned(snapshot: Snapshot, change: FileChange, before: pa.Table, assignments: Sequence[Assignment]) -> pa.Table:
    with naming(snapshot.store.url, snapshot.version, change.add.path):
        return assigned(before, snapshot.schema, assignments, before)


def _whole_new_files(snapshot: Snapshot, changes: Iterable[FileChange], assignments: Sequence[Assignment]) -> Iterator[pa.Table]:
    """Yield all rows with the new values in their old order, file by file."""
    for change in changes:
        rows, positions = file_with_positions(snapshot, change.add)
        dead = is_in(positions, change.dead)
        after = _assigned(snapshot, change, rows.filter(dead), assignments)
        stay = rows.filter(pc.invert(dead)).cast(after.schema)
        ids = RowIds.of(snapshot, change.add)
        stay, after = ids.onto(stay, pc.invert(dead), changed=False), ids.onto(after, dead, changed=True)
        order = pc.sort_indices(pa.concat_arrays([positions.filter(pc.invert(dead)), positions.filter(dead)]))
        yield pa.concat_tables([stay, after]).take(order)


def _feed(snapshot: Snapshot, changes: Sequence[FileChange], assignments: Sequence[Assignment]) -> Iterator[pa.Table]:
    """Yield the changed rows with their old and their new values, file by file."""
    for change in changes:
        rows, positions = file_with_positions(snapshot, change.add)
        before = rows.filter(is_in(positions, change.dead))
        yield with_change_type(before, "update_preimage")
        yield with_change_type(_assigned(snapshot, change, before, assignments), "update_postimage")
