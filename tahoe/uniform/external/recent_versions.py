"""Delta versions that Iceberg readers may still be reading: the version shown now, and versions shown recently."""

from __future__ import annotations

from collections.abc import Sequence

from tahoe.store.log_store import LogStore
from tahoe.uniform.external.metadata_listing import list_metadata
from tahoe.uniform.formats.metadata import shown_since, snapshot_version

LATELY_MS = 3_600_000
"""A reader that loaded the metadata this long ago may still open data files that it names."""


def recent_versions(store: LogStore, now_ms: int) -> Sequence[int]:
    """Return the Delta versions that the Iceberg side shows now or has shown within the last hour, newest first.

    Args:
        now_ms: the current time by the storage's clock.

    Raises:
        ForeignWriter: the newest metadata belongs to another writer, and may refer to the table's files. Repair the table first.
        CorruptTable: the newest metadata cannot be read.
    """
    current = list_metadata(store).current()
    if current is None:
        return ()
    versions = {snapshot_version(snapshot) for snapshot in shown_since(current.document, now_ms - LATELY_MS)} | {current.version}
    return sorted(versions, reverse=True)
