"""DELETE: by whole files if the condition allows it, by deletion vectors, or by rewriting files.

`stage_delete` runs without Spark; Spark's DELETE uses `stage_deleted_files`, or `stage_deleted_rows` with its own engine.
"""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.base.json_values import compact_json
from tahoe.base.progress import Progress, silent
from tahoe.expr.condition_forms import Condition
from tahoe.expr.row_condition import row_condition
from tahoe.expr.tree.predicate import Predicate
from tahoe.log.files.removed_files import LiveFiles, adds_of
from tahoe.ops.rows.conditions import whole_files
from tahoe.ops.rows.engine import ArrowEngine, Engine, RowOperation
from tahoe.ops.rows.row_changes import (
    Staged,
    live_rows,
    mark_dead,
    remove_files,
    snapshot_to_delete_from,
    uses_vectors,
    vector_metrics,
    without_dead_files,
)
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction


def stage_delete(transaction: Transaction, where: Condition | None = None, *, progress: Progress = silent) -> Staged:
    """Stage the deletion of the rows for which `where` is true; rows for which it is NULL stay.

    Args:
        where: SQL text, or a predicate; None for all rows.
        progress: called with the numbers of files searched and of files rewritten.

    Raises:
        InvalidRequest: the condition cannot be parsed, or the table is append-only.
        NotFound: there is no table.
    """
    snapshot = snapshot_to_delete_from(transaction)
    condition = row_condition(where, snapshot.schema, transaction.time_zone, transaction.clock.now_ms())
    if condition.is_for_all_rows:
        return stage_deleted_files(transaction, snapshot, adds_of(snapshot.files()), None, condition.text)
    whole = whole_files(snapshot, condition)
    if whole is not None:
        return stage_deleted_files(transaction, snapshot, whole, condition.predicate, condition.text)
    operation = RowOperation(transaction, snapshot, condition.text, transaction.clock.now_ms())
    return stage_deleted_rows(operation, ArrowEngine(transaction, snapshot, snapshot.config, condition, progress))


def stage_deleted_files(
    transaction: Transaction, snapshot: Snapshot, adds: Sequence[AddFile], predicate: Predicate | None, text: str | None
) -> Staged:
    """Stage the deletion of whole files: only the log is written. Readers derive the change data feed from the removed files.

    Args:
        adds: the files to remove; empty if no file matches the condition. Only with the whole table `LiveFiles`.
        predicate: the condition, or a predicate that it implies; None to delete every row.
        text: the text of the condition, for the history; None without a condition.
    """
    started = transaction.clock.now_ms()
    if predicate is None:
        transaction.read_whole_table()
    else:
        transaction.read(predicate)
    if not adds:
        return Staged(None)
    deleted = size = vectors = 0
    for add in adds:  # once: they may be millions
        deleted += live_rows(snapshot, add)
        size += add.size
        vectors += add.deletion_vector is not None
    if isinstance(adds, LiveFiles):
        transaction.stage_files(adds, ())
    else:
        remove_files(transaction, adds)
    metrics = _metrics(started, started, transaction) | {
        "numRemovedFiles": len(adds),
        "numRemovedBytes": size,
        "numDeletionVectorsRemoved": vectors,
        "numDeletedRows": deleted,
    }
    return Staged(Operation("DELETE", _parameters(text), metrics), num_deleted_rows=deleted)


def stage_deleted_rows(operation: RowOperation, engine: Engine) -> Staged:
    """Stage the deletion of the engine's rows by deletion vectors, or by copying the other rows."""
    changes = engine.find_rows()
    if not changes:
        return Staged(None)
    transaction, config = operation.transaction, operation.snapshot.config
    scanned = transaction.clock.now_ms()
    deleted = sum(len(change.dead) for change in changes)
    stay = without_dead_files(changes)
    whole = [change.add for change in changes if change.is_whole]
    marked = uses_vectors(config)
    added: list[AddFile] = []
    feed_files = 0
    remove_files(transaction, whole)
    if marked:
        # Readers of the feed derive the deleted rows from the old and the new vector of a file.
        mark_dead(transaction, config, stay)
    else:
        remove_files(transaction, (change.add for change in stay))
        added = engine.copy_rows(stay)
        if config.properties.enable_change_data_feed:
            feed_files = len(engine.write_change_data(changes))
    gone = whole if marked else [change.add for change in changes]
    metrics = (
        _metrics(operation.started, scanned, transaction)
        | vector_metrics(changes, marked)
        | {
            "numAddedFiles": len(added),
            "numAddedBytes": sum(add.size for add in added),
            "numRemovedFiles": len(gone),
            "numRemovedBytes": sum(add.size for add in gone),
            "numAddedChangeFiles": feed_files,
            "numDeletedRows": deleted,
            "numCopiedRows": 0 if marked else sum(change.living - len(change.dead) for change in stay),
        }
    )
    return Staged(Operation("DELETE", _parameters(operation.condition), metrics), num_deleted_rows=deleted)


def _parameters(text: str | None) -> dict[str, str]:
    texts = [] if text is None else [text]
    return {"predicate": compact_json(texts)}


def _metrics(started: int, scanned: int, transaction: Transaction) -> dict[str, int | str]:
    """Return all metrics of DELETE: zero counts, and the times."""
    now = transaction.clock.now_ms()
    return {
        "numAddedFiles": 0,
        "numAddedBytes": 0,
        "numRemovedFiles": 0,
        "numRemovedBytes": 0,
        "numDeletionVectorsAdded": 0,
        "numDeletionVectorsRemoved": 0,
        "numDeletionVectorsUpdated": 0,
        "numAddedChangeFiles": 0,
        "numDeletedRows": 0,
        "numCopiedRows": 0,
        "executionTimeMs": now - started,
        "scanTimeMs": scanned - started,
        "rewriteTimeMs": now - scanned,
    }
