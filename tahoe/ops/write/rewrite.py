"""Rewriting data files with the same rows, as REORG and OPTIMIZE do. Nothing is committed here.

    files ─ their live rows, with their ids ─► a new file of the table's current layout ─► remove + add, dataChange = false

Rows are processed in batches. Change data feeds and streams are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import StorageFailure
from tahoe.base.lazy import pq
from tahoe.base.progress import Progress, silent, tracked
from tahoe.ops.write.file_stream import new_name, write_stream
from tahoe.ops.write.kept_shredding import with_variants_as_stored
from tahoe.ops.write.row_ids import config_with_row_ids, without_id_statistics
from tahoe.ops.write.writer import tagged
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import as_clustered_as
from tahoe.protocol.features import ENFORCED, Feature
from tahoe.snapshot.scan import Scan, ScannedVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.transaction import Operation, Transaction

__all__ = [
    "as_stored",
    "footers",
    "reorg_operation",
    "rewrite_metrics",
    "rewritten",
    "stage_replacement",
    "stage_rewrite",
    "written_anew",
]

_FOOTERS_AT_ONCE = 16


def rewritten(version: ScannedVersion, adds: Sequence[AddFile], clock: Clock, name: str, *, ahead: bool = True) -> AddFile | None:
    """Write the live rows of files as one new file, in the order of the files, with their ids if the table tracks rows.

    Args:
        adds: live files of one partition.
        name: from `tahoe.ops.write.file_stream.new_name`.
        ahead: whether files are prefetched in parallel, which is useless if several rewrites run in parallel.

    Returns:
        The action that adds it; None if the files have no live row. Nothing is committed, and constraints are not checked, because the
        rows were in the table before.

    Raises:
        StorageFailure: from the store; written data is deleted as far as storage allows.
    """
    try:
        stored = as_stored(version, adds)
        with closing(Scan(stored).read_to_move(adds, ahead=ahead)) as rows:
            return written_anew(version, rows, clock, name, adds[0].partition_values, stored)
    except BaseException:
        with suppress(StorageFailure):
            version.store.delete(name)
        raise


def written_anew(
    version: ScannedVersion,
    rows: Iterable[pa.RecordBatch],
    clock: Clock,
    name: str,
    partition_values: Mapping[str, str | None],
    stored: ScannedVersion | None = None,
) -> AddFile | None:
    """Write rows from `Scan.read_to_move`, in any order, as `rewritten` does; after an error the caller deletes the partial file.

    Args:
        stored: from `as_stored`, if the rows were read with it.
    """
    config = version.config
    layout = None if stored is None else config_with_row_ids(stored.config)
    written = write_stream(config_with_row_ids(config), version.store, rows, clock, name, partition_values, layout)
    return None if written is None else tagged(config, without_id_statistics(config, written))


def as_stored(version: ScannedVersion, adds: Sequence[AddFile]) -> ScannedVersion:
    """Return the version for reading these files such that variants with the same shredding in all of them keep it in the new file."""
    shreds = version.config.is_active(Feature.VARIANT_SHREDDING)
    return with_variants_as_stored(version, list(footers(version, adds))) if shreds else version


def stage_rewrite(
    transaction: Transaction, snapshot: Snapshot, adds: Iterable[AddFile], progress: Progress = silent
) -> Operation:
    """Stage the replacement of these files by new ones with the same live rows, which keep their ids.

    Args:
        snapshot: of the transaction.
        adds: live files.
        progress: receives the progress over rewritten files.

    Returns:
        The operation, with the metrics that the history shows.
    """
    clock = transaction.clock
    removed: list[AddFile] = []
    added: list[AddFile] = []
    for add in tracked(adds, progress, "files rewritten"):
        new = rewritten(snapshot, [add], clock, new_name(snapshot.config, clock, add.partition_values))
        removed.append(add)
        # The same rows in the same order, so their clustering is unchanged.
        added += [] if new is None else [as_clustered_as(new, add)]
    stage_replacement(transaction, removed, added)
    return reorg_operation(removed, added)


def stage_replacement(transaction: Transaction, removed: Sequence[AddFile], added: Sequence[AddFile]) -> None:
    """Stage the replacement of files by others with the same rows and the same ids."""
    now = transaction.clock.now_ms()
    transaction.enforces = ENFORCED  # the rows were in the table before
    transaction.stage(*(add.remove(now, data_change=False) for add in removed), *added)
    transaction.read_files(add.key for add in removed)
    transaction.row_ids_kept = True


def reorg_operation(removed: Sequence[AddFile], added: Sequence[AddFile]) -> Operation:
    """Return the operation of a REORG for the history, with the reference's names."""
    return Operation("REORG", {"predicate": "[]", "applyPurge": True}, rewrite_metrics(removed, added))


def rewrite_metrics(removed: Sequence[AddFile], added: Sequence[AddFile]) -> dict[str, int]:
    """Return the metrics of REORG and OPTIMIZE, with the reference's names."""
    sizes = sorted(add.size for add in added)
    quartiles = {
        f"p{percent}FileSize": sizes[min(len(sizes) * percent // 100, len(sizes) - 1)] for percent in (25, 50, 75) if sizes
    }
    return {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(add.size for add in removed),
        "minFileSize": sizes[0] if sizes else 0,
        **quartiles,
        "maxFileSize": sizes[-1] if sizes else 0,
        "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in removed),
    }


def footers(snapshot: ScannedVersion, adds: Sequence[AddFile]) -> Iterator[pq.FileMetaData]:
    """Yield the footers of these files, in their order, a few read in parallel."""
    read: Callable[[AddFile], pq.FileMetaData] = partial(_footer, snapshot)
    if len(adds) < 2:
        yield from map(read, adds)
        return
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(adds))) as pool:
        yield from pool.map(read, adds)


def _footer(snapshot: ScannedVersion, add: AddFile) -> pq.FileMetaData:
    store = snapshot.store
    with store.open_input(decode_path(add.path, store.url, outside=True)) as source:
        return pq.read_metadata(source)
