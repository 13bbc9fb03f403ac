"""FSCK REPAIR TABLE: remove files that are missing in storage from the log, so that the rest of the table can be read again.

    live files ─► neither listed nor found by name ─► remove

The rows of such files are lost: restoring the files from a backup is better, and so is RESTORE to a version without them. A file whose
deletion vector is missing is removed too, because its deleted rows are unknown. The file itself stays in storage until VACUUM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tahoe.base.html import ShownAsText
from tahoe.base.progress import Progress, silent, tracked_listing
from tahoe.base.wording import counted
from tahoe.log.files.live_files import add_files, canonical_path
from tahoe.protocol.actions import AddFile
from tahoe.protocol.dv import file_name
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.log_store import LogStore
from tahoe.txn.commit import Committed
from tahoe.txn.retries import retried
from tahoe.txn.transaction import Operation, Transaction

_THREADS = 16


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that cannot be read any more.

    Args:
        path: the path in the log.
        is_missing: whether the data file is missing.
        vector: the name of the file of its deletion vector; None if there is no such file.
        vector_is_missing: whether the file of the deletion vector is missing.
    """

    path: str
    is_missing: bool
    vector: str | None
    vector_is_missing: bool


@dataclass(frozen=True, slots=True)
class Repaired(ShownAsText):
    """The result of a FSCK or of its dry run; `str` gives a readable summary.

    Args:
        table: the URL of the table.
        checked: the checked version.
        version: the version of the commit; None for a dry run, and if no file is missing.
        rows: the number of rows in these files, as far as it is in their statistics.
    """

    table: str
    checked: int
    version: int | None
    lost: tuple[Lost, ...] = field(repr=False)
    rows: int = 0

    def __str__(self) -> str:
        if not self.lost:
            return f"All files of version {self.checked} of {self.table} are there."
        paths = ", ".join(file.path for file in self.lost[:3]) + (", …" if len(self.lost) > 3 else "")
        files = f"{counted(len(self.lost), 'file')} with {self.rows:,} rows, which storage no longer has ({paths})"
        if self.version is None:
            return f"FSCK of version {self.checked} of {self.table} would remove {files}. Restore them from a backup if possible."
        return f"Version {self.version} of {self.table} no longer names {files}."


def fsck(
    begin: Callable[[], Transaction],
    commit: Callable[[Transaction, Operation], Committed],
    *,
    dry_run: bool = False,
    progress: Progress = silent,
) -> Repaired:
    """Remove files that are missing in storage from the log.

    Args:
        begin: starts a transaction on the newest version.
        commit: commits a transaction.
        dry_run: report the missing files without removing anything.
        progress: called with the number of listed files.

    Raises:
        NotFound: there is no table.
        InvalidRequest: the table is append-only (``DELTA_CANNOT_MODIFY_APPEND_ONLY``).
        StorageFailure: storage could not determine whether a file exists.
    """

    def attempt() -> Repaired:
        transaction = begin()
        snapshot = transaction.existing()
        lost, adds = _lost(snapshot, progress)
        rows = sum(add.num_records or 0 for add in adds)
        result = Repaired(snapshot.store.url, snapshot.version, None, tuple(lost), rows)
        if dry_run or not lost:
            return result
        now_ms = transaction.clock.now_ms()
        transaction.read_files(add.key for add in adds)
        transaction.stage(*(add.remove(now_ms) for add in adds))
        metrics = {"numRemovedFiles": len(adds), "removedFilesSize": sum(add.size for add in adds)}
        return replace(result, version=commit(transaction, Operation("FSCK", {"dryRun": False}, metrics)).version)

    return retried(attempt)


def _lost(snapshot: Snapshot, progress: Progress) -> tuple[list[Lost], list[AddFile]]:
    store, url = snapshot.store, snapshot.store.url
    files = snapshot.files()
    present = {entry.name for entry in tracked_listing(store.walk(), progress)}
    names = [canonical_path(path, url) for path in files["path"].to_pylist()]
    has_vector = files["deletionVector"].is_valid().to_pylist()
    doubtful = [at for at, name in enumerate(names) if has_vector[at] or name not in present]
    adds = add_files(files.take(pa.array(doubtful, pa.int64())))
    vectors = [None if add.deletion_vector is None else file_name(add.deletion_vector, url) for add in adds]
    needed = {names[at] for at in doubtful} | {name for name in vectors if name is not None}
    gone = _gone(store, sorted(needed - present))
    lost, lost_adds = list[Lost](), list[AddFile]()
    for at, add, vector in zip(doubtful, adds, vectors, strict=True):
        if names[at] in gone or vector in gone:
            lost.append(Lost(add.path, names[at] in gone, vector, vector in gone))
            lost_adds.append(add)
    return lost, lost_adds


def _gone(store: LogStore, names: Sequence[str]) -> set[str]:
    """Return the names that do not exist, by HEAD requests: a listing may lag, and omits links and files of other folders."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-fsck") as pool:
        return {name for name, entry in zip(names, pool.map(store.head, names), strict=True) if entry is None}
