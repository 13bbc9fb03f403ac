"""The part of a commit that a stream reads, and the commits that stop it.

               ┌─ rows ──► the `add` actions with `dataChange`; an option must allow the commit's other changes
commit ────────┤
               └─ feed ──► its `cdc` actions, or if it has none, the `add` and `remove` actions with `dataChange`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.base.exceptions import InvalidRequest
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tahoe.stream.source_options import SourceOptions

__all__ = ["IndexedFile", "StreamedCommit", "streamed_commit"]


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
        options.read_change_feed and any(_belongs_to_others(action) for action in taken),
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


def _belongs_to_others(action: AddFile | RemoveFile | AddCDCFile) -> bool:
    return isinstance(action, AddCDCFile) or action.deletion_vector is not None
