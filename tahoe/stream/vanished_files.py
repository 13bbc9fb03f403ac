"""Files of a batch that are missing from storage because VACUUM or somebody else deleted them under a stream that lags.

VACUUM retains the files of the newest version, so a stream that keeps up sends no extra requests. Older files are checked with one
request each before a row of the batch is read. If there are very many, files of the newest version are excluded first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tahoe.base.exceptions import NotFound
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["without_vanished"]

_THREADS = 16
_MANY = 1000
"""The number of requests from which reading the log first is cheaper."""
logger = logging.getLogger(__name__)


def without_vanished(
    store: LogStore, files: Sequence[IndexedFile], newest: Snapshot, *, fail_on_data_loss: bool
) -> list[IndexedFile]:
    """Return the files that can be read.

    Args:
        files: the files of a batch.
        newest: the newest version of the table.
        fail_on_data_loss: whether a missing file raises an error, or is skipped.

    Raises `NotFound` (``DELTA_FILE_NOT_FOUND``) for a missing file.
    """
    unchecked = [file for file in files if file.version < newest.version or not isinstance(file.action, AddFile)]
    if len(unchecked) > _MANY:
        live = set(newest.files()["path"].to_pylist())
        unchecked = [file for file in unchecked if file.action.path not in live]
    gone = _gone(store, unchecked)
    if not gone:
        return list(files)
    if fail_on_data_loss:
        first = gone[0]
        raise NotFound(
            f"Data file '{first.action.path}', which version {first.version} of table {store.url} added, is missing from storage"
            f"{f', as are {len(gone) - 1} more of this batch' if len(gone) > 1 else ''}: the stream lags behind VACUUM "
            "(delta.deletedFileRetentionDuration), or the file was deleted by other means. Restore the file from a copy; start a new stream "
            "without the position or the checkpoint; or set 'failOnDataLoss' to false to skip the rows of missing files.",
            code="DELTA_FILE_NOT_FOUND",
            table=store.url,
            version=first.version,
            file=first.action.path,
        )
    for file in gone:
        logger.warning(
            "a stream skips file %s of version %d of table %s: it is missing", file.action.path, file.version, store.url
        )
    lost = {(file.version, file.index) for file in gone}
    return [file for file in files if (file.version, file.index) not in lost]


def _gone(store: LogStore, files: Sequence[IndexedFile]) -> list[IndexedFile]:
    if not files:
        return []
    names = [decode_path(file.action.path, store.url, outside=True) for file in files]
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="tahoe-stream") as pool:
        return [file for file, entry in zip(files, pool.map(store.head, names), strict=True) if entry is None]
