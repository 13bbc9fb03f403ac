"""Files of a batch that are not in storage any more, because VACUUM or somebody else deleted them under a stream that lags.

VACUUM leaves what the newest version has, so a stream that keeps up asks storage nothing. What it reads later than that is asked for, one
question a file, before a row of the batch is read. Of very many files those that the newest version still has are left out first.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tahoe.exceptions import NotFound
from tahoe.protocol.actions import AddFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["without_vanished"]

_THREADS = 16
_MANY = 1000
"""Questions for which it is cheaper to look through the log first."""
logger = logging.getLogger(__name__)


def without_vanished(
    store: LogStore, files: Sequence[IndexedFile], newest: Snapshot, *, fail_on_data_loss: bool
) -> list[IndexedFile]:
    """The files that can be read.

    Args:
        files: of a batch.
        newest: what the table has now.
        fail_on_data_loss: whether one that is gone is an error, or is left out.

    Raises `NotFound` (``DELTA_FILE_NOT_FOUND``) for a file that is gone.
    """
    asked = [file for file in files if file.version < newest.version or not isinstance(file.action, AddFile)]
    if len(asked) > _MANY:
        live = set(newest.files()["path"].to_pylist())
        asked = [file for file in asked if file.action.path not in live]
    gone = _gone(store, asked)
    if not gone:
        return list(files)
    if fail_on_data_loss:
        first = gone[0]
        raise NotFound(
            f"Data file '{first.action.path}', which version {first.version} of table {store.url} brought, is not in storage any more"
            f"{f', nor are {len(gone) - 1} more of this batch' if len(gone) > 1 else ''}: the stream lags behind VACUUM "
            "(delta.deletedFileRetentionDuration), or the file was deleted by other means. Restore the file from a copy; begin anew without "
            "the position or the checkpoint; or set 'failOnDataLoss' to false to go on without the rows of files that are gone.",
            code="DELTA_FILE_NOT_FOUND",
            table=store.url,
            version=first.version,
            file=first.action.path,
        )
    for file in gone:
        logger.warning(
            "a stream leaves out file %s of version %d of table %s: it is gone", file.action.path, file.version, store.url
        )
    lost = {(file.version, file.index) for file in gone}
    return [file for file in files if (file.version, file.index) not in lost]


def _gone(store: LogStore, files: Sequence[IndexedFile]) -> list[IndexedFile]:
    if not files:
        return []
    names = [decode_path(file.action.path, store.url, outside=True) for file in files]
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="tahoe-stream") as pool:
        return [file for file, entry in zip(files, pool.map(store.head, names), strict=True) if entry is None]
