"""Checks that the files of a commit still exist: a writer slower than VACUUM's retention gets an error.

VACUUM deletes files that no commit references and that are older than the retention, including those of a slow writer. It
announces its start and end by the commits ``VACUUM START`` and ``VACUUM END``. A writer that loses a race to these checks its files; and
so does a writer of old files, or of files from before its snapshot, whatever it lost to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, repeat
from typing import Any

from tahoe.base.exceptions import ConcurrentWriteException
from tahoe.log.files.commits import parse_commit
from tahoe.log.files.live_files import canonical_path
from tahoe.log.files.paths import commit_name
from tahoe.log.files.removed_files import adds_in, removes_in
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import file_name
from tahoe.store.log_store import Entry, LogStore
from tahoe.store.side_by_side import each
from tahoe.txn.concurrent_commit import ConcurrentCommit
from tahoe.txn.prepare import PreparedCommit

LONG_MS = 3_600_000
"""A data file this old is checked before its commit is sent: one request per file, rarely needed."""

_THREADS = 16
_NAMES_AT_ONCE = 8_192
_TASKS_OF_A_THREAD = 8
# VACUUM commits `commitInfo` only; a commit of many files may have hundreds of megabytes.
_LARGEST_OF_VACUUM = 1 << 20
_DAY_MS = 86_400_000
_MOST_COMMITS = 100
_FIRST_COMMITS = 8


def check_after_vacuum(store: LogStore, prepared: PreparedCommit, concurrent: Sequence[ConcurrentCommit]) -> None:
    """Check the files of a commit that is rebased onto VACUUMs.

    Raises `ConcurrentWriteException`: a file is missing, or a VACUUM in progress may still delete it.
    """
    started: ConcurrentCommit | None = None
    seen = False
    for commit in concurrent:
        if commit.operation == "VACUUM START":
            started, seen = commit, True
        elif commit.operation == "VACUUM END":
            started = None
    if not seen:
        return
    cut_off_ms = None if started is None else _cut_off_ms(store, started)
    for name, entry in entries_of(store, _new_files(store, prepared)):
        if entry is None:
            raise _gone(store, prepared, name, "is missing: a VACUUM has deleted it")
        if cut_off_ms is not None and entry.modified_ms < cut_off_ms:
            raise _gone(store, prepared, name, "may be deleted by a VACUUM in progress")


def check_old_files(store: LogStore, prepared: PreparedCommit, now_ms: int) -> None:
    """Check the files of a commit whose writer was slow, or that has files from before its snapshot.

    Raises `ConcurrentWriteException`: a file is missing, or a VACUUM in progress may still delete it.
    """
    if prepared.looks_for == "none":
        return
    if prepared.looks_for == "all":
        names = _new_files(store, prepared)
    else:
        old = (add for add in _adds(prepared) if add.modification_time < now_ms - LONG_MS)
        names = (canonical_path(add.path, store.url) for add in old)
    first = next(names, None)
    if first is None:
        return
    # VACUUM deletes no file of the table; a commit may update many of them.
    live = set() if prepared.snapshot is None else _live(prepared)
    is_checked = False
    for name, entry in entries_of(store, (name for name in chain([first], names) if name not in live)):
        is_checked = True
        if entry is None:
            raise _gone(store, prepared, name, "is missing")
    if is_checked:
        check_after_vacuum(store, prepared, _open_vacuum(store, prepared.version))


def _open_vacuum(store: LogStore, version: int) -> list[ConcurrentCommit]:
    """Return the commit ``VACUUM START`` before a version that has no end, if it is at most a day old: a crashed VACUUM must not block
    writers for longer."""
    newest: Entry | None = None
    before, oldest = version - 1, max(-1, version - 1 - _MOST_COMMITS)
    for size in repeat(1) if store.asks_cheaply else chain([_FIRST_COMMITS], repeat(_MOST_COMMITS)):
        versions = range(before, max(oldest, before - size), -1)
        entries = each(store, store.head, [commit_name(number) for number in versions])
        newest = newest or next(iter(entries), None)
        recent = [
            entry is not None and newest is not None and entry.modified_ms >= newest.modified_ms - _DAY_MS for entry in entries
        ]
        read = versions[: recent.index(False)] if False in recent else versions
        small = [number for number, entry in zip(read, entries, strict=False) if entry and entry.size <= _LARGEST_OF_VACUUM]
        names = [commit_name(number) for number in small]
        commits = (
            ConcurrentCommit(number, parse_commit(name, body, store.url))
            for number, name, body in zip(small, names, each(store, store.get, names), strict=True)
        )
        last = next((commit for commit in commits if commit.operation in ("VACUUM START", "VACUUM END")), None)
        if last is not None:
            return [last] if last.operation == "VACUUM START" else []
        before -= size
        if len(read) < size:
            break
    return []


def _live(prepared: PreparedCommit) -> set[str]:
    assert prepared.snapshot is not None
    url = prepared.snapshot.store.url
    return {canonical_path(path, url) for path in prepared.snapshot.files()["path"].to_pylist()}


def _adds(prepared: PreparedCommit) -> Iterator[AddFile]:
    """Yield the files that the commit adds, except those that only get another deletion vector."""
    adds = adds_in(prepared.actions)
    removed = {remove.path for remove in removes_in(prepared.actions)} if adds else set()
    return (add for add in adds if add.path not in removed)


def _new_files(store: LogStore, prepared: PreparedCommit) -> Iterator[str]:
    """Yield the names of the files that the commit adds, including those of deletion vectors."""
    url = store.url
    yield from (canonical_path(add.path, url) for add in _adds(prepared))
    removed = {vector.path_or_inline_dv for remove in removes_in(prepared.actions) if (vector := remove.deletion_vector)}
    vectors = (add.deletion_vector for add in adds_in(prepared.actions))
    new = (file_name(vector, url) for vector in vectors if vector and vector.path_or_inline_dv not in removed)
    yield from dict.fromkeys(name for name in new if name is not None)


def entries_of(store: LogStore, names: Iterable[str]) -> Iterator[tuple[str, Entry | None]]:
    """Yield each name with its entry in storage, or None if it is missing; some thousand are looked up at a time."""
    left = iter(names)
    while some := list(islice(left, _NAMES_AT_ONCE)):
        # On a local disk a task for each name would take longer than the lookup.
        size = len(some) // (_THREADS * _TASKS_OF_A_THREAD) or 1
        tasks = [some[start : start + size] for start in range(0, len(some), size)]
        with ThreadPoolExecutor(min(_THREADS, len(tasks)), thread_name_prefix="tahoe-commit") as pool:
            entries = chain.from_iterable(pool.map(lambda task: [store.head(name) for name in task], tasks))
            yield from zip(some, entries, strict=True)


def _cut_off_ms(store: LogStore, started: ConcurrentCommit) -> int | None:
    """Return the time by storage's clock from which on that VACUUM deletes no file; None if it is not recorded."""
    parameters: dict[str, Any] = started.info.values.get("operationParameters") or {}
    entry = store.head(commit_name(started.version))
    try:
        retention = int(parameters.get("specifiedRetentionMillis", parameters["defaultRetentionMillis"]))
    except (KeyError, TypeError, ValueError):
        return None
    return None if entry is None else entry.modified_ms - retention


def _gone(store: LogStore, prepared: PreparedCommit, name: str, how: str) -> ConcurrentWriteException:
    return ConcurrentWriteException(
        f"File '{name}', which this operation has written for version {prepared.version} of table {store.url}, {how}. Nothing was committed: "
        "run the operation again, and make VACUUM retain files for longer than any writer takes (delta.deletedFileRetentionDuration).",
        table=store.url,
        version=prepared.version,
        file=name,
    )
