"""The files of a stream: those of its initial snapshot, the part of a commit that it reads, and the commits that stop it.

               ┌─ rows ──► the `add` actions with `dataChange`; an option must allow the commit's other changes
commit ────────┤
               └─ feed ──► its `cdc` actions, or if it has none, the `add` and `remove` actions with `dataChange`
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.lazy import pc
from tahoe.base.log_fields import about
from tahoe.log.files.live_files import add_files
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.source_options import SourceOptions

_CHUNK = 1024
_THREADS = 16
_MANY = 1000
"""The number of requests from which reading the log first is cheaper."""
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of a stream, with its position.

    Args:
        version: the version of its commit, or of the initial snapshot.
        index: the index in `tahoe.stream.position.Position`.
    """

    version: int
    index: int
    action: AddFile | RemoveFile | AddCDCFile

    @property
    def size(self) -> int:
        """The size in bytes; 0 for a `remove` without a size."""
        return self.action.size or 0

    def with_partition_columns(self, config: TableConfig) -> IndexedFile:
        """Return the file with a partition value for each partition column of `config`: null if the file's version had no such one."""
        values = self.action.partition_values or {}
        names = [column.physical_name for column in config.partition_schema.fields]
        if values.keys() >= set(names):
            return self
        return replace(self, action=replace(self.action, partition_values={**dict.fromkeys(names), **values}))


@dataclass(frozen=True, slots=True)
class StreamedCommit:
    """The part of a commit that a stream reads.

    Args:
        files: in order.
        is_atomic: whether a batch must not end between them: both sides of an update belong together, and so do the old and the
            new deletion vector of a file.
        metadata, protocol: set if the commit changes them; a reader must check them before it continues.
        in_commit_timestamp: milliseconds since the epoch, if the commit has it.
    """

    version: int
    files: tuple[IndexedFile, ...]
    is_atomic: bool = False
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    in_commit_timestamp: int | None = None


def streamed_commit(actions: Sequence[Action], version: int, options: SourceOptions, table: str) -> StreamedCommit:
    """Return the part of a commit that a stream with these options reads.

    Args:
        table: its URL, for messages.

    Raises:
        InvalidRequest: ``DELTA_SOURCE_IGNORE_DELETE`` if the commit deletes rows, ``DELTA_SOURCE_TABLE_IGNORE_CHANGES`` if it
            changes rows, and no option allows that.
    """
    taken = _changes(actions) if options.read_change_feed else _appended(actions, version, options, table)
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    return StreamedCommit(
        version,
        tuple(IndexedFile(version, index, action) for index, action in enumerate(taken)),
        options.read_change_feed and any(_is_of_another_table(action) for action in taken),
        next((action for action in actions if isinstance(action, Metadata)), None),
        next((action for action in actions if isinstance(action, Protocol)), None),
        None if info is None else info.in_commit_timestamp,
    )


def _changes(actions: Sequence[Action]) -> Sequence[AddFile | RemoveFile | AddCDCFile]:
    cdc_files = [action for action in actions if isinstance(action, AddCDCFile)]
    return cdc_files or [action for action in actions if isinstance(action, AddFile | RemoveFile) and action.data_change]


def _appended(actions: Sequence[Action], version: int, options: SourceOptions, table: str) -> Sequence[AddFile]:
    added = [action for action in actions if isinstance(action, AddFile) and action.data_change]
    removed = next((action for action in actions if isinstance(action, RemoveFile) and action.data_change), None)
    if removed is None:
        return added
    # A file whose deletion vector grew is removed and added again: a change, although it only deletes rows.
    if added and not options.allows_changes:
        raise _changed(actions, version, removed.path, table)
    if not options.allows_deletes:
        raise InvalidRequest(
            f"Version {version} of table {table} deletes rows (its commit removes file {removed.path}), and a stream cannot "
            "retract rows. Set 'ignoreDeletes' to skip commits that only delete, 'skipChangeCommits' to skip all commits that "
            "delete or change rows, or read the change data feed ('readChangeFeed').",
            code="DELTA_SOURCE_IGNORE_DELETE",
            table=table,
            version=version,
            file=removed.path,
        )
    return [] if options.skip_change_commits else added


def _changed(actions: Sequence[Action], version: int, path: str, table: str) -> InvalidRequest:
    info = next((action for action in actions if isinstance(action, CommitInfo)), None)
    operation = None if info is None else info.values.get("operation")
    change = f"{operation} removed file {path}" if operation else f"file {path} was removed"
    return InvalidRequest(
        f"Version {version} of table {table} changes existing rows ({change} and rows were rewritten), and a stream "
        "cannot retract rows. Set 'skipChangeCommits' to skip such commits, read the change data feed "
        "('readChangeFeed'), or start a new stream without a position or checkpoint to read the current rows.",
        code="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        table=table,
        version=version,
        file=path,
    )


def _is_of_another_table(action: AddFile | RemoveFile | AddCDCFile) -> bool:
    return isinstance(action, AddCDCFile) or action.deletion_vector is not None


@dataclass(frozen=True)
class InitialFiles:
    """The live files of a stream's initial snapshot, by modification time and path, as its positions count them.

    They stay columnar; only the files of a batch become actions.
    """

    version: int
    files: pa.Table
    order: Any  # pyarrow.UInt64Array

    @classmethod
    def of(cls, snapshot: Snapshot) -> InitialFiles:
        """Return the files of a snapshot."""
        files = snapshot.files()
        order = pc.sort_indices(files, sort_keys=[("modificationTime", "ascending"), ("path", "ascending")])
        return cls(snapshot.version, files, order)

    def __len__(self) -> int:
        return len(self.order)

    def sizes(self, first: int, stop: int) -> Iterator[int]:
        """Yield the files' sizes in bytes, on demand."""
        sizes = self.files.column("size")
        for begin in range(first, stop, _CHUNK):
            yield from sizes.take(self.order.slice(begin, min(_CHUNK, stop - begin))).to_pylist()

    def bytes_from(self, first: int) -> int:
        """Return the total size of the files from an index on."""
        return int(pc.sum(self.files.column("size").take(self.order.slice(first))).as_py() or 0)

    def between(self, first: int, stop: int) -> list[IndexedFile]:
        """Return the files from `first` up to, but not including, `stop`."""
        adds = add_files(self.files.take(self.order.slice(first, max(stop - first, 0))))
        return [IndexedFile(self.version, index, add) for index, add in enumerate(adds, start=first)]

    def matching(self, mask: pa.BooleanArray) -> list[IndexedFile]:
        """Return the files for which a mask over `files` is true."""
        indexes = pc.indices_nonzero(mask.take(self.order))
        adds = add_files(self.files.take(self.order.take(indexes)))
        return [IndexedFile(self.version, index, add) for index, add in zip(indexes.to_pylist(), adds, strict=True)]


def without_vanished(
    store: LogStore, files: Sequence[IndexedFile], newest: Snapshot, *, fail_on_data_loss: bool
) -> list[IndexedFile]:
    """Return the files that can be read. VACUUM or somebody else may have deleted files under a stream that lags.

    VACUUM retains the files of the newest version, so a stream that keeps up sends no extra requests. Older files are checked with one
    request each before a row of the batch is read. If there are very many, files of the newest version are excluded first.

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
            "a stream skips file %s of version %d of table %s: it is missing",
            *(file.action.path, file.version, store.url),
            extra=about(store.url, file.version),
        )
    lost = {(file.version, file.index) for file in gone}
    return [file for file in files if (file.version, file.index) not in lost]


def _gone(store: LogStore, files: Sequence[IndexedFile]) -> list[IndexedFile]:
    if not files:
        return []
    names = [decode_path(file.action.path, store.url, outside=True) for file in files]
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="tahoe-stream") as pool:
        return [file for file, entry in zip(files, pool.map(store.head, names), strict=True) if entry is None]
