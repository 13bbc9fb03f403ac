"""Whether the files that a commit brings are still there: a writer that is slower than VACUUM's retention is told so, and fails.

VACUUM deletes what no commit names and storage has had for longer than the retention, and so the files of a writer that takes longer. It
says when it begins and when it ends, by the commits ``VACUUM START`` and ``VACUUM END``. Who loses a race to these looks at his files; and
so does who has files that were written long ago, or before the version that he began with, whatever he lost to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tahoe.exceptions import ConcurrentWriteException
from tahoe.log.files.commits import read_commit
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.protocol.dv import file_name
from tahoe.store.log_store import Entry, LogStore
from tahoe.txn.prepare import PreparedCommit
from tahoe.txn.winner import Winner

__all__ = ["check_after_vacuum", "check_old_files"]

LONG_MS = 3_600_000
"""A data file that its writer made so long ago is looked at before its commit is sent: one question a file, seldom asked."""

_THREADS = 16
_DAY_MS = 86_400_000
_MOST_COMMITS = 100


def check_after_vacuum(store: LogStore, prepared: PreparedCommit, winners: Sequence[Winner]) -> None:
    """Look at the files of a commit that moves past VACUUMs.

    Raises `ConcurrentWriteException`: a file is gone, or a VACUUM that has not ended may delete it yet.
    """
    begun: Winner | None = None
    seen = False
    for winner in winners:
        if winner.operation == "VACUUM START":
            begun, seen = winner, True
        elif winner.operation == "VACUUM END":
            begun = None
    if not seen:
        return
    cut_off_ms = None if begun is None else _cut_off_ms(store, begun)
    for name, entry in _looked_at(store, _new_files(store, prepared)):
        if entry is None:
            raise _gone(store, prepared, name, "is gone: a VACUUM has deleted it")
        if cut_off_ms is not None and entry.modified_ms < cut_off_ms:
            raise _gone(store, prepared, name, "may be deleted by a VACUUM that has begun and not ended")


def check_old_files(store: LogStore, prepared: PreparedCommit, now_ms: int) -> None:
    """Look at the files of a commit whose writer took long, or that has files from before its snapshot.

    Raises `ConcurrentWriteException`: one is gone, or a VACUUM that has not ended may delete it yet.
    """
    if prepared.looks_for == "none":
        return
    if prepared.looks_for == "all":
        names = _new_files(store, prepared)
    else:
        old = (add for add in _adds(prepared) if add.modification_time < now_ms - LONG_MS)
        names = [canonical_path(add.path, store.url) for add in old]
    if not names:
        return
    # Files that are in the table already no VACUUM deletes; a commit may say something new of many of them.
    live = set() if prepared.snapshot is None else _live(prepared)
    names = [name for name in names if name not in live]
    for name, entry in _looked_at(store, names):
        if entry is None:
            raise _gone(store, prepared, name, "is gone")
    if names:
        check_after_vacuum(store, prepared, _lately(store, prepared.version))


def _lately(store: LogStore, version: int) -> list[Winner]:
    """The commit ``VACUUM START`` before a version that none ended, where it is of the last day: who died in one must stop nobody for
    longer."""
    newest: Entry | None = None
    for before in range(version - 1, max(-1, version - 1 - _MOST_COMMITS), -1):
        entry = store.head(commit_name(before))
        newest = newest or entry
        if entry is None or newest is None or entry.modified_ms < newest.modified_ms - _DAY_MS:
            break
        found = Winner(before, read_commit(store, before))
        if found.operation == "VACUUM END":
            break
        if found.operation == "VACUUM START":
            return [found]
    return []


def _live(prepared: PreparedCommit) -> set[str]:
    assert prepared.snapshot is not None
    url = prepared.snapshot.store.url
    return {canonical_path(path, url) for path in prepared.snapshot.files()["path"].to_pylist()}


def _adds(prepared: PreparedCommit) -> Iterator[AddFile]:
    """The files that the commit adds, without those that it only gives another deletion vector."""
    there = {action.path for action in prepared.actions if isinstance(action, RemoveFile)}
    return (action for action in prepared.actions if isinstance(action, AddFile) and action.path not in there)


def _new_files(store: LogStore, prepared: PreparedCommit) -> list[str]:
    """The names of the files that the commit brings, those of deletion vectors among them."""
    url = store.url
    vectors = {a.deletion_vector.path_or_inline_dv for a in prepared.actions if isinstance(a, RemoveFile) and a.deletion_vector}
    names = {canonical_path(add.path, url): None for add in _adds(prepared)}
    for action in prepared.actions:
        if isinstance(action, AddFile) and (vector := action.deletion_vector) and vector.path_or_inline_dv not in vectors:
            name = file_name(vector, url)
            names |= {} if name is None else {name: None}
    return list(names)


def _looked_at(store: LogStore, names: Sequence[str]) -> Iterator[tuple[str, Entry | None]]:
    if not names:
        return
    with ThreadPoolExecutor(min(_THREADS, len(names)), thread_name_prefix="tahoe-commit") as pool:
        yield from zip(names, pool.map(store.head, names), strict=True)


def _cut_off_ms(store: LogStore, begun: Winner) -> int | None:
    """No file younger than this, by storage's clock, is deleted by that VACUUM; None where it does not say."""
    parameters: dict[str, Any] = begun.info.values.get("operationParameters") or {}
    entry = store.head(commit_name(begun.version))
    try:
        retention = int(parameters.get("specifiedRetentionMillis", parameters["defaultRetentionMillis"]))
    except (KeyError, TypeError, ValueError):
        return None
    return None if entry is None else entry.modified_ms - retention


def _gone(store: LogStore, prepared: PreparedCommit, name: str, how: str) -> ConcurrentWriteException:
    return ConcurrentWriteException(
        f"File '{name}', which this operation has written for version {prepared.version} of table {store.url}, {how}. Nothing was committed: "
        "run the operation again, and let VACUUM retain files for longer than any writer takes (delta.deletedFileRetentionDuration).",
        table=store.url,
        version=prepared.version,
        file=name,
    )
