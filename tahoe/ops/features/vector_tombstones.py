"""Tombstones for the files of deletion vectors, for VACUUM by clients that do not support deletion vectors.

A table without the feature may be vacuumed by such a client. It keeps the files that tombstones name, but would delete the files of deletion
vectors, which older versions still need. Therefore each of these files gets its own tombstone, as in delta-spark.
"""

from __future__ import annotations

from tahoe.log.files.live_files import canonical_path, remove_files
from tahoe.protocol.actions import RemoveFile
from tahoe.protocol.dv import file_name
from tahoe.store.location import encode_path
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["stage_vector_tombstones"]


def stage_vector_tombstones(transaction: Transaction) -> Operation:
    """Stage a tombstone for each deletion vector file below the table's root that a data file's tombstone names and that has none yet.

    If all of them have tombstones, the commit is empty, as in delta-spark, so that version numbers agree.
    """
    snapshot, now = transaction.existing(), transaction.clock.now_ms()
    removes = remove_files(snapshot.tombstones())
    named = {_name(remove, snapshot.store.url) for remove in removes} - {None}
    removed_paths = {canonical_path(remove.path, snapshot.store.url) for remove in removes if remove.deletion_vector is None}
    missing = sorted(encode_path(name) for name in named if name is not None and name not in removed_paths)
    transaction.stage(*(RemoveFile(path, now, data_change=False) for path in missing))
    return Operation("Deletion Vector Tombstones", {}, {"dvTombstonesWithinRetentionPeriod": len(missing)})


def _name(remove: RemoveFile, root_url: str) -> str | None:
    """Return the store name of the file of its deletion vector; None for an inline vector, and for a file outside the root."""
    vector = remove.deletion_vector
    return None if vector is None or vector.storage_type != "u" else file_name(vector, root_url)
