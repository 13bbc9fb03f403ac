"""TRUNCATE TABLE: delete all rows by writing only the log."""

from __future__ import annotations

from dataclasses import replace

from tahoe.log.files.removed_files import adds_of
from tahoe.ops.rows.delete import stage_deleted_files
from tahoe.ops.rows.row_changes import Staged, snapshot_to_delete_from
from tahoe.txn.transaction import Operation, Transaction

_METRICS = ("numRemovedFiles", "executionTimeMs")


def stage_truncate(transaction: Transaction) -> Staged:
    """Stage the removal of every file; nothing for an empty table.

    Raises:
        InvalidRequest: ``DELTA_CANNOT_MODIFY_APPEND_ONLY``.
    """
    snapshot = snapshot_to_delete_from(transaction)
    staged = stage_deleted_files(transaction, snapshot, adds_of(snapshot.files()), None, None)
    if staged.operation is None:
        return staged
    metrics = {name: staged.operation.metrics[name] for name in _METRICS}
    return replace(staged, operation=Operation("TRUNCATE", {}, metrics))
