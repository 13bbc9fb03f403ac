"""Data files written anew with the same rows: what REORG does. Nothing is committed here.

    file ─ its living rows, with their ids ─► new files of the table's layout as it is now ─► remove + add, dataChange = false

One file is in memory at a time. Readers of changes and streams see nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tahoe.lazy import pq
from tahoe.ops.write.row_ids import RowIds, config_with_row_ids, with_id_columns, without_id_statistics
from tahoe.ops.write.writer import tagged, write_arrow
from tahoe.progress import Progress, silent, tracked
from tahoe.protocol.actions import AddFile
from tahoe.protocol.enforced import ENFORCED
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["footers", "reorg_operation", "stage_rewrite"]

_FOOTERS_AT_ONCE = 16


def stage_rewrite(
    transaction: Transaction, snapshot: Snapshot, adds: Iterable[AddFile], progress: Progress = silent
) -> Operation:
    """Stage that these files are replaced by new ones with the same living rows, which keep their ids.

    Args:
        snapshot: of the transaction.
        adds: live files.
        progress: told of files rewritten.

    Returns:
        The operation, with the metrics that the history shows.
    """
    config, clock = snapshot.config, transaction.clock
    transaction.enforces = ENFORCED  # the rows were in the table before
    removed: list[AddFile] = []
    added: list[AddFile] = []
    for add in tracked(adds, progress, "files rewritten"):
        written = write_arrow(config_with_row_ids(config), transaction.store, _rows(snapshot, add), clock)
        fresh = [replace(tagged(config, without_id_statistics(config, new)), data_change=False) for new in written]
        transaction.stage(replace(add.remove(clock.now_ms()), data_change=False), *fresh)
        removed.append(add)
        added += fresh
    transaction.read_files(add.key for add in removed)
    transaction.row_ids_kept = True
    return reorg_operation(removed, added)


def reorg_operation(removed: Sequence[AddFile], added: Sequence[AddFile]) -> Operation:
    """What the history says of it, in the reference's words."""
    sizes = sorted(add.size for add in added)
    quartiles = {
        f"p{percent}FileSize": sizes[min(len(sizes) * percent // 100, len(sizes) - 1)] for percent in (25, 50, 75) if sizes
    }
    metrics = {
        "numAddedFiles": len(added),
        "numRemovedFiles": len(removed),
        "numAddedBytes": sum(sizes),
        "numRemovedBytes": sum(add.size for add in removed),
        "minFileSize": sizes[0] if sizes else 0,
        **quartiles,
        "maxFileSize": sizes[-1] if sizes else 0,
        "numDeletionVectorsRemoved": sum(add.deletion_vector is not None for add in removed),
    }
    return Operation("REORG", {"predicate": "[]", "applyPurge": True}, metrics)


def footers(snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[pq.FileMetaData]:
    """The footers of these files, in their order, a few read side by side."""
    read: Callable[[AddFile], pq.FileMetaData] = partial(_footer, snapshot)
    if len(adds) < 2:
        yield from map(read, adds)
        return
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(adds))) as pool:
        yield from pool.map(read, adds)


def _footer(snapshot: Snapshot, add: AddFile) -> pq.FileMetaData:
    store = snapshot.store
    with store.open_input(decode_path(add.path, store.url)) as source:
        return pq.read_metadata(source)


def _rows(snapshot: Snapshot, add: AddFile) -> pa.Table:
    """The living rows of a file, with their ids where the table tracks rows."""
    rows = Scan(snapshot).read([add])
    every = pa.repeat(pa.scalar(True), rows.num_rows)
    return with_id_columns(snapshot.config, RowIds.of(snapshot, add).onto(rows, every, changed=False))
