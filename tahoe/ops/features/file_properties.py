"""SET and UNSET TBLPROPERTIES for properties that need changes of files first: removing column mapping, and enabling row tracking.

    mode = none  ─► one commit that rewrites every file with the logical column names ─► the other properties
    row tracking ─► the feature ─► commits that assign ids to some thousand files each ─► the property, and ids for files added meanwhile

A crash in between leaves a valid table; setting the property again continues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tahoe.base.progress import Progress, silent
from tahoe.log.replay import add_files
from tahoe.ops.features.plain_columns import is_mapped, stage_without_mapping
from tahoe.ops.features.removals import Work
from tahoe.ops.tables.alter import stage_set_properties, stage_unset_properties
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.protocol.properties import FEATURE_PREFIX
from tahoe.protocol.row_tracking import ENABLED, has_row_tracking
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.commit import Committed
from tahoe.txn.transaction import Operation, Transaction

FILES_PER_COMMIT = 22_000
"""delta-spark's value, which limits the files of a log to 100 MB."""
_MODE = "delta.columnMapping.mode"


def set_properties(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    properties: Mapping[str, str],
    progress: Progress = silent,
    *,
    files_per_commit: int = FILES_PER_COMMIT,
) -> int:
    """Set properties of an existing table; return the version with them, which is the newest if `properties` is empty.

    Args:
        begin, commit: `Table.begin` and `Table.commit`.
        files_per_commit: the number of files that get row ids in one commit.

    Raises: the errors of `tahoe.ops.tables.alter.stage_set_properties` and `stage_without_mapping`.
    """
    work, snapshot = Work(begin, commit, progress), begin().existing()
    if not properties:
        return snapshot.version
    requested = {key.lower(): value.lower() for key, value in properties.items()}
    if requested.get(_MODE.lower()) == "none":
        _remove_mapping(work, snapshot)
    if requested.get(ENABLED.lower()) == "true" and not has_row_tracking(snapshot.config):
        _give_row_ids(work, snapshot, files_per_commit)
    return _committed(work, lambda transaction: stage_set_properties(transaction, transaction.existing(), properties))


def unset_properties(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    names: Sequence[str],
    progress: Progress = silent,
    *,
    if_exists: bool = False,
) -> int:
    """Unset properties of an existing table; return the version without them. Arguments and errors as in `set_properties`."""
    work, snapshot = Work(begin, commit, progress), begin().existing()
    if _MODE.lower() in map(str.lower, names) and (committed := _remove_mapping(work, snapshot)) is not None:
        snapshot, names = committed.snapshot, [name for name in names if name.lower() != _MODE.lower()]
    if not names:
        return snapshot.version
    return _committed(
        work, lambda transaction: stage_unset_properties(transaction, transaction.existing(), names, if_exists=if_exists)
    )


def _committed(work: Work, stage: Callable[[Transaction], Operation]) -> int:
    transaction = work.begin()
    return int(work.commit(transaction, stage(transaction)).version)


def _remove_mapping(work: Work, snapshot: Snapshot) -> Committed | None:
    """Commit the removal of column mapping. Returns None if the table has no mapping, or if Iceberg compatibility needs it: then setting the
    property raises."""
    if not is_mapped(snapshot.config) or snapshot.config.iceberg_compat_version is not None:
        return None
    return work.committed(
        lambda transaction: (
            stage_without_mapping(transaction, work.progress) if is_mapped(transaction.existing().config) else None
        )
    )


def _give_row_ids(work: Work, snapshot: Snapshot, files_per_commit: int) -> None:
    """Assign row ids in batches until the remaining files fit into one commit."""
    if _without_ids(snapshot) <= files_per_commit:
        return
    supported = {f"{FEATURE_PREFIX}{Feature.ROW_TRACKING}": "supported"}
    work.do(
        lambda transaction: (
            None
            if Feature.ROW_TRACKING in transaction.existing().config.features
            else stage_set_properties(transaction, transaction.existing(), supported)
        )
    )
    batch = 0
    while work.do(partial(_batch, number=batch, files_per_commit=files_per_commit)):
        batch += 1


def _batch(transaction: Transaction, *, number: int, files_per_commit: int) -> Operation | None:
    snapshot = transaction.existing()
    if _without_ids(snapshot) <= files_per_commit:
        return None
    adds = [add for add in add_files(snapshot.files()) if add.base_row_id is None][:files_per_commit]
    transaction.read_files(add.key for add in adds)
    transaction.enforces = ENFORCED  # adds no rows
    transaction.stage(*(replace(add, data_change=False) for add in adds))
    return Operation("ROW TRACKING BACKFILL", {"batchId": str(number)})


def _without_ids(snapshot: Snapshot) -> int:
    return int(snapshot.files()["baseRowId"].null_count)
