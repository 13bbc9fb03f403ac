"""Files of deletion vectors, noted as removed: for a VACUUM that knows no vectors.

A table that has lost the feature may be cleaned by a client that does not know it. That client keeps what tombstones name, and takes the
files of vectors, which older versions still need, for rubbish; so each gets a tombstone of its own, as the reference has it.
"""

from __future__ import annotations

from tahoe.log.files.live_files import canonical_path, remove_files
from tahoe.protocol.actions import RemoveFile
from tahoe.protocol.dv import file_name
from tahoe.store.location import encode_path
from tahoe.txn.transaction import Operation, Transaction

__all__ = ["stage_vector_tombstones"]


def stage_vector_tombstones(transaction: Transaction) -> Operation:
    """Stage a tombstone for each file of vectors below the table's root that a tombstone of a data file names, and that has none yet.

    Where all have theirs, the commit is empty, as the reference's is: the numbers of the versions after it are then the same.
    """
    snapshot, now = transaction.existing(), transaction.clock.now_ms()
    removes = remove_files(snapshot.tombstones())
    named = {_name(remove, snapshot.store.url) for remove in removes} - {None}
    known = {canonical_path(remove.path, snapshot.store.url) for remove in removes if remove.deletion_vector is None}
    missing = sorted(encode_path(name) for name in named if name is not None and name not in known)
    transaction.stage(*(RemoveFile(path, now, data_change=False) for path in missing))
    return Operation("Deletion Vector Tombstones", {}, {"dvTombstonesWithinRetentionPeriod": len(missing)})


def _name(remove: RemoveFile, root_url: str) -> str | None:
    """The store's name of its vector's file; None for an inline one, and for one that is not below the root."""
    vector = remove.deletion_vector
    return None if vector is None or vector.storage_type != "u" else file_name(vector, root_url)
