"""What a stream takes of one commit, and which commits it stops at.

               ┌─ rows ──► the `add` actions with `dataChange`; what else the commit does must be allowed by an option
commit ────────┤
               └─ feed ──► its `cdc` actions, or where it has none the `add` and `remove` actions with `dataChange`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.exceptions import InvalidRequest
from tahoe.protocol.actions import Action, AddCDCFile, AddFile, CommitInfo, Metadata, Protocol, RemoveFile
from tahoe.stream.source_options import SourceOptions

__all__ = ["IndexedFile", "StreamedCommit", "streamed_commit"]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file of a stream, with its place.

    Args:
        version: of its commit, or of the initial snapshot.
        index: as `tahoe.stream.position.Position` counts.
    """

    version: int
    index: int
    action: AddFile | RemoveFile | AddCDCFile

    @property
    def size(self) -> int:
        """In bytes; 0 where a `remove` does not say."""
        return self.action.size or 0


@dataclass(frozen=True, slots=True)
class StreamedCommit:
    """What a stream takes of a commit.

    Args:
        files: in order.
        is_one: whether they may not be parted by the end of a batch: both sides of an update belong together, and so do the old and the
            new deletion vector of a file.
        metadata, protocol: where the commit changes them; whoever reads on must look at them first.
        in_commit_timestamp: milliseconds since the epoch, where the commit states its time.
    """

    version: int
    files: tuple[IndexedFile, ...]
    is_one: bool = False
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    in_commit_timestamp: int | None = None


def streamed_commit(actions: Sequence[Action], version: int, options: SourceOptions, table: str) -> StreamedCommit:
    """What a stream with these options takes of a commit.

    Args:
        table: its URL, for messages.

    Raises:
        InvalidRequest: ``DELTA_SOURCE_IGNORE_DELETE`` where the commit deletes rows, ``DELTA_SOURCE_TABLE_IGNORE_CHANGES`` where it
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
    told = [action for action in actions if isinstance(action, AddCDCFile)]
    return told or [action for action in actions if isinstance(action, AddFile | RemoveFile) and action.data_change]


def _appended(actions: Sequence[Action], version: int, options: SourceOptions, table: str) -> Sequence[AddFile]:
    added = [action for action in actions if isinstance(action, AddFile) and action.data_change]
    removed = next((action for action in actions if isinstance(action, RemoveFile) and action.data_change), None)
    if removed is None:
        return added
    # A file whose deletion vector grew is removed and added again: a change, though all that it does is delete rows.
    if added and not options.allows_changes:
        raise _changed(actions, version, removed.path, table)
    if not options.allows_deletes:
        raise InvalidRequest(
            f"Version {version} of table {table} deletes rows (its commit removes file {removed.path}), and a stream of its rows cannot "
            "take back what it gave. Set 'ignoreDeletes' to pass over commits that only delete, 'skipChangeCommits' to pass over all that "
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
    what = f"{operation} removed file {path}" if operation else f"file {path} was removed"
    return InvalidRequest(
        f"Version {version} of table {table} changes rows that were there before ({what} and rows were written anew), and a stream of its "
        "rows cannot take back what it gave. Set 'skipChangeCommits' to pass over such commits, read the change data feed "
        "('readChangeFeed'), or begin anew without a position, or without the checkpoint, for the rows as they are now.",
        code="DELTA_SOURCE_TABLE_IGNORE_CHANGES",
        table=table,
        version=version,
        file=path,
    )


def _belongs_to_others(action: AddFile | RemoveFile | AddCDCFile) -> bool:
    return isinstance(action, AddCDCFile) or action.deletion_vector is not None
