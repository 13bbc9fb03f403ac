"""What the commits after the checkpoint say, with the newest word on each thing (PROTOCOL.md, "Action Reconciliation")."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tahoe.exceptions import CorruptTable, NotFound
from tahoe.log.files import FILES_SCHEMA, TOMBSTONES_SCHEMA, files_table, key_of, tombstones_table
from tahoe.log.reader import duplicate, parse_commit
from tahoe.log.segment import LogSegment, TailFile
from tahoe.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from tahoe.store.log_store import LogStore

__all__ = ["Tail", "read_tail"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest word of some commits on everything that they speak of.

    Args:
        adds: files that are live at the end (`FILES_SCHEMA`), oldest first.
        removes: files that are gone at the end (`TOMBSTONES_SCHEMA`).
        keys: the keys of both (`tahoe.log.files.file_keys`): what earlier files say of them no longer counts.
        net_files: by how many the commits change the number of live files, if they remove only what was there and add only what was
            not; a mismatch with a checksum is a reason to look closer, no proof.
        transactions: by application.
        domains: by name, removed ones included.
        commit_info: of the newest commit.
    """

    adds: pa.Table
    removes: pa.Table
    keys: pa.Array
    net_files: int = 0
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: Mapping[str, SetTransaction] = field(default_factory=dict)
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    commit_info: CommitInfo | None = None


def read_tail(store: LogStore, segment: LogSegment) -> Tail:
    """Read and reconcile the segment's commits and compactions; a damaged compaction is told and its commits are read.

    Raises:
        CorruptTable: for a damaged commit, naming it.
        NotFound: a commit was removed while the log was read.
    """
    damaged: set[str] = set()
    while True:
        files = segment.tail(damaged)
        try:
            return _reconcile(store, files, _read(store, files))
        except _DamagedCompaction as error:
            damaged.add(error.name)
            logger.warning("%s was not used, its commits are read instead: %s", error.name, error.reason)


class _DamagedCompaction(Exception):  # noqa: N818 - caught in this module
    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason


def _read(store: LogStore, files: Sequence[TailFile]) -> list[bytes]:
    try:
        return store.get_many([file.entry.name for file in files])
    except NotFound as error:
        raise NotFound(
            f"Table {store.url}: a commit vanished while the log was read ({error.message}). The log was cleaned or the table "
            "was replaced meanwhile: read the table again.",
            code="DELTA_LOG_FILE_NOT_FOUND",
            table=store.url,
        ) from error


def _reconcile(store: LogStore, files: Sequence[TailFile], bodies: Sequence[bytes]) -> Tail:
    first: dict[str, AddFile | RemoveFile] = {}
    last: dict[str, AddFile | RemoveFile] = {}
    newest: dict[type, Action] = {}
    transactions: dict[str, SetTransaction] = {}
    domains: dict[str, DomainMetadata] = {}
    for file, body in zip(files, bodies, strict=True):
        newest.pop(CommitInfo, None)
        in_this_file: set[str] = set()
        for action in _parse(store, file, body):
            match action:
                case AddFile() | RemoveFile():
                    key = key_of(action, store.url)
                    if key in in_this_file:  # spelt in two ways; `parse_commit` has found those spelt alike
                        raise duplicate(file.entry.name, store.url, "file", action.path)
                    in_this_file.add(key)
                    first.setdefault(key, action)
                    last.pop(key, None)
                    last[key] = action
                case SetTransaction():
                    transactions[action.app_id] = action
                case DomainMetadata():
                    domains[action.domain] = action
                case Protocol() | Metadata():
                    newest[type(action)] = action
                case CommitInfo():
                    newest.setdefault(CommitInfo, action)
    adds = [action for action in last.values() if isinstance(action, AddFile)]
    protocol, metadata, commit_info = newest.get(Protocol), newest.get(Metadata), newest.get(CommitInfo)
    return Tail(
        adds=files_table(adds) if adds else FILES_SCHEMA.empty_table(),
        removes=tombstones_table(a for a in last.values() if isinstance(a, RemoveFile))
        if last
        else TOMBSTONES_SCHEMA.empty_table(),
        keys=pa.array(list(last), pa.string()),
        net_files=len(adds) - sum(isinstance(action, RemoveFile) for action in first.values()),
        protocol=protocol if isinstance(protocol, Protocol) else None,
        metadata=metadata if isinstance(metadata, Metadata) else None,
        transactions=transactions,
        domains=domains,
        commit_info=commit_info if isinstance(commit_info, CommitInfo) else None,
    )


def _parse(store: LogStore, file: TailFile, body: bytes) -> Sequence[Action]:
    try:
        return parse_commit(file.entry.name, body, store.url)
    except CorruptTable as error:
        if file.first != file.last:
            raise _DamagedCompaction(file.entry.name, error.message) from error
        raise
