"""Which versions readers of the Iceberg side may be reading: what it shows now, and what it showed lately."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.store.log_store import LogStore
from tahoe.uniform.formats.metadata import snapshot_version
from tahoe.uniform.others.look import look_at

__all__ = ["LATELY_MS", "held_versions"]

LATELY_MS = 3_600_000
"""A reader that has looked at the metadata so long ago may still open data files by it."""


def held_versions(store: LogStore, now_ms: int) -> Sequence[int]:
    """Versions of the Delta table, the one that is shown now first, then those that were shown in the last hour.

    Args:
        now_ms: by the clock of the storage.

    Raises:
        ForeignWriter: the newest metadata is another writer's. Its files are the table's files or not; that is to be settled first.
        CorruptTable: it cannot be read.
    """
    current = look_at(store).current()
    if current is None:
        return ()
    snapshots = current.document["snapshots"]
    late = next((i for i, snapshot in enumerate(snapshots) if snapshot["timestamp-ms"] >= now_ms - LATELY_MS), len(snapshots))
    # Who looked at the beginning of that hour saw the snapshot before.
    found = {snapshot_version(snapshot) for snapshot in snapshots[max(late - 1, 0) :]} | {current.version}
    return sorted(found, reverse=True)
