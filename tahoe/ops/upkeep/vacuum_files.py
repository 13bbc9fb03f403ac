"""Storage operations of VACUUM: the storage's time, the listing, and deletion.

Names are not resolved: symbolic links are neither followed to deletable files nor deleted, and a file that the log reaches through a link
is identified by its real name.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.base.progress import Progress
from tahoe.log.files.paths import LOG_FOLDER
from tahoe.ops.upkeep.vacuum_plan import is_hidden
from tahoe.schema.cast import is_text
from tahoe.store.local_links import links_among
from tahoe.store.location import local_path
from tahoe.store.log_store import Entry, LogStore, is_remote

Item = TypeVar("Item")
Answer = TypeVar("Answer")

_NAMES_OF_A_REQUEST = 1000

_CLOCK = f"{LOG_FOLDER}/.tahoe-clock"


def store_time_ms(store: LogStore, newest_commit_ms: int) -> int:
    """Return the current time by the storage's clock, which sets the times of files and may differ from this machine's.

    It is the time of a file, which `delete_clock` deletes.

    Args:
        newest_commit_ms: the time of the newest commit's file. It is returned if storage is read-only: then no file younger than it counts
            as old.
    """
    written = None
    with suppress(StorageFailure):
        store.put(_CLOCK, b"")
        written = store.head(_CLOCK)
    return newest_commit_ms if written is None else max(written.modified_ms, newest_commit_ms)


def delete_clock(store: LogStore) -> None:
    """Delete the file that `store_time_ms` has written. A failure is no error, since the file is hidden."""
    with suppress(StorageFailure):
        store.delete(_CLOCK)


def listed(store: LogStore, prefixes: tuple[str, ...], threads: int, progress: Progress) -> Iterator[Entry]:
    """Yield the files of a table whose names are not hidden; the folders of its root are listed in parallel.

    Args:
        prefixes: see `tahoe.ops.upkeep.vacuum_plan.partition_prefixes`.
    """
    count = 0
    folders = getattr(store, "folders", None)  # of `FolderStore`; other stores are walked sequentially
    if folders is None:
        walks: Iterable[Iterable[Entry]] = [store.walk()]
    else:
        # Linked folders are skipped: their files have another name.
        names = [name for name in folders() if not is_hidden(f"{name}/", prefixes)]
        links = links_among(store, names)
        names = [name for name in names if name not in links]
        walks = _chain(store, names, threads)
    for walk in walks:
        for entry in walk:
            if not is_hidden(entry.name, prefixes):
                count += 1
                yield entry
        progress("files listed", count)


def _chain(store: LogStore, names: Sequence[str], threads: int) -> Iterator[Iterable[Entry]]:
    yield store.list_from("")
    yield from _in_parallel(lambda name: list(store.walk(name)), names, threads)


def without_links(store: LogStore, entries: Sequence[Entry]) -> list[Entry]:
    """Return the files that are no symbolic links."""
    links = links_among(store, [entry.name for entry in entries])
    return [entry for entry in entries if entry.name not in links]


def entries_of_inventory(inventory: pa.Table, store: LogStore) -> list[Entry]:
    """Return the files of an inventory that are below the table's root. Paths are taken literally, as in the reference.

    Raises `InvalidRequest` (``DELTA_INVALID_INVENTORY_SCHEMA``) if it lacks the columns ``path`` string, ``length`` long, ``isDir`` boolean
    and ``modificationTime`` long.
    """
    required = {
        "path": is_text,
        "length": pa.types.is_int64,
        "isDir": pa.types.is_boolean,
        "modificationTime": pa.types.is_int64,
    }
    fields = {field.name: field.type for field in inventory.schema}
    for column, has_type in required.items():
        if column not in fields or not has_type(fields[column]):
            raise InvalidRequest(
                "The inventory of a VACUUM must have the columns path string, length long, isDir boolean and modificationTime long (when, "
                f"in milliseconds); found {', '.join(f'{key} {kind}' for key, kind in fields.items())}.",
                code="DELTA_INVALID_INVENTORY_SCHEMA",
                column=column,
            )
    entries: dict[str, Entry] = {}
    for row in inventory.select(list(required)).to_pylist():
        name = None if row["isDir"] or row["path"] is None else _below(row["path"], store.url)
        if name is not None:
            entries[name] = Entry(name, row["length"] or 0, row["modificationTime"] or 0)
    return list(entries.values())


def _below(path: str, url: str) -> str | None:
    """The name of an inventory's path; None if it is not below the root."""
    scheme, _, rest = url.partition("://")
    schemes = {"s3": ("s3", "s3a", "s3n"), "file": ("file",)}.get(scheme, (scheme,))
    roots = [f"{name}://{rest}/" for name in schemes]
    if scheme == "file":
        roots += [f"file:{rest}/", f"{rest}/"]
    return next((path[len(root) :] for root in roots if path.startswith(root) and len(path) > len(root)), None)


def confirmed(store: LogStore, entries: Sequence[Entry], cut_off_ms: int, threads: int) -> list[Entry]:
    """Return the entries that exist in storage and are older than the cut-off, with their size and time in storage."""
    in_storage = _in_parallel(store.head, [entry.name for entry in entries], threads)
    return [entry for entry in in_storage if entry is not None and entry.modified_ms < cut_off_ms]


def delete_files(store: LogStore, entries: Sequence[Entry], threads: int, progress: Progress) -> int:
    """Delete files, in no order, and return their number. After an interruption, another VACUUM can delete the remaining files.

    Raises `StorageFailure` if storage fails to delete a file; the other files are tried nevertheless.
    """
    done, failures = 0, list[StorageFailure]()
    progress("files deleted", 0, len(entries))
    for failure in _deleted(store, [entry.name for entry in entries], threads):
        failures += [] if failure is None else [failure]
        done += failure is None
        progress("files deleted", done, len(entries))
    if failures:
        raise StorageFailure(
            f"{len(failures)} of {len(entries)} files of {store.url} could not be deleted; {done} were. The first: {failures[0].message} "
            "Run VACUUM again to delete the remaining files.",
            table=store.url,
        )
    return done


def _deleted(store: LogStore, names: Sequence[str], threads: int) -> Iterator[StorageFailure | None]:
    """Yield the error of each name, or None; uses bulk requests if the store has them."""
    delete_many: Callable[[list[str]], None] | None = getattr(store, "delete_many", None)  # of `BulkStore`
    if delete_many is None:
        yield from _in_parallel(partial(_delete, store), names, threads)
        return
    for start in range(0, len(names), _NAMES_OF_A_REQUEST):
        batch = list(names[start : start + _NAMES_OF_A_REQUEST])
        try:
            delete_many(batch)
        except StorageFailure:  # it does not say which file failed; deleted ones are no error
            yield from _in_parallel(partial(_delete, store), batch, threads)
        else:
            yield from (None for _ in batch)


def delete_empty_folders(store: LogStore, prefixes: tuple[str, ...], cut_off_ms: int) -> None:
    """Delete folders of this machine's disk that are empty, and have been since before that time; a writer may be about to use newer ones.

    Failures are no error: a folder that another writer fills concurrently is not empty.
    """
    root = None if is_remote(store) else local_path(store.url)
    for path, _, _ in () if root is None else os.walk(root, topdown=False):
        name = os.path.relpath(path, root)
        if path != root and not is_hidden(f"{name}/", prefixes):
            with suppress(OSError):
                if os.stat(path).st_mtime_ns // 1_000_000 < cut_off_ms:
                    os.rmdir(path)


def _delete(store: LogStore, name: str) -> StorageFailure | None:
    try:
        store.delete(name)
    except StorageFailure as error:
        return error
    return None


def _in_parallel(work: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """Yield the results in order. If the consumer stops or is interrupted, work that has not begun is cancelled."""
    remaining = iter(items)
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-vacuum") as pool:
        try:
            # Not all at once: the listing of a folder may be long, and waits here until the listings before it are consumed.
            running = deque(pool.submit(work, item) for item in islice(remaining, threads))
            while running:
                yield running.popleft().result()
                running.extend(pool.submit(work, item) for item in islice(remaining, 1))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
