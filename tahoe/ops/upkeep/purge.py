"""REORG TABLE … APPLY (PURGE): rewrite the files with deleted rows or dropped columns without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tahoe.base.json_values import compact_json
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.condition_forms import Condition
from tahoe.ops.rows.conditions import PartitionFilter, select_partitions
from tahoe.ops.write.file_layout import expected_schema, has_dropped_columns
from tahoe.ops.write.rewrite import footers, stage_rewrite
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Operation, Transaction


def stage_purge(
    transaction: Transaction,
    where: Condition | None = None,
    progress: Progress = silent,
    *,
    shown_where: str | None = None,
    engine: PartitionFilter | None = None,
) -> Operation | None:
    """Stage the rewrite of the files with deleted rows or dropped columns.

    Args:
        where: SQL text or a predicate on partition columns; limits the rewrite to these partitions.
        progress: receives the progress over footers and rewritten files.
        shown_where: the predicate as the history shows it, by default its text.
        engine: evaluates predicates that Tahoe does not evaluate.

    Returns:
        The operation; None if no file needs a rewrite.

    Raises:
        NotFound: there is no table.
        InvalidRequest: a predicate on other columns (`DELTA_NON_PARTITION_COLUMN_REFERENCE`).
    """
    snapshot = transaction.existing()
    selected = select_partitions(snapshot, where, transaction.moment(), engine=engine)
    adds = _files_to_purge(snapshot, selected.adds, progress)
    if not adds:
        return None
    operation = stage_rewrite(transaction, snapshot, adds, progress)
    shown = [] if selected.condition is None else [shown_where or selected.condition]
    text = compact_json(shown)
    return replace(operation, parameters={**operation.parameters, "predicate": text})


def _files_to_purge(snapshot: Snapshot, adds: Sequence[AddFile], progress: Progress) -> list[AddFile]:
    """Return the files with a deletion vector, and those with columns that were dropped from the table."""
    config = snapshot.config
    marked = [add for add in adds if add.deletion_vector is not None]
    if config.column_mapping_mode == "none":
        return marked  # columns cannot be dropped
    whole = [add for add in adds if add.deletion_vector is None]
    expected, partition = expected_schema(config), [column.physical_name for column in config.partition_schema]
    read = zip(whole, tracked(footers(snapshot, whole), progress, "footers read", len(whole)), strict=True)
    return marked + [add for add, footer in read if has_dropped_columns(footer, expected, partition)]
