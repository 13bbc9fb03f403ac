"""A store that fetches small files together: each request to an object store takes tens of milliseconds, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import cast

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.base.packing import packed
from tahoe.store.log_store import LogStore

_MOST_BYTES_OF_A_FILE = 1 << 20
"""A larger file is opened by its reader, which fetches only the columns that it needs."""
_MOST_BYTES_AT_ONCE = 16 << 20
_MOST_FILES_AT_ONCE = 64


def with_files_ahead(store: LogStore, files: Iterable[tuple[str, int | None]]) -> LogStore:
    """Return the store for reading these files in about this order: when a small file is opened, its small neighbours are fetched too.

    All other calls go to `store`. At most 16 MB are fetched at once, and each fetched file is kept until it is opened.

    Args:
        files: names in the store and sizes in bytes, in the order in which they are read; None for an unknown size.
    """
    if store.asks_cheaply:
        return store
    small = [(name, size) for name, size in files if size is not None and size <= _MOST_BYTES_OF_A_FILE]
    together = packed(small, lambda file: file[1], _MOST_BYTES_AT_ONCE, _MOST_FILES_AT_ONCE)
    groups = [[name for name, _ in group] for group in together if len(group) > 1]
    return cast(LogStore, _FilesAhead(store, groups)) if groups else store


class _Group:
    """Files that are fetched together, once."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._fetched: dict[str, bytes] | None = None
        self._lock = Lock()

    def take(self, store: LogStore, name: str) -> bytes | None:
        """Return a file's content; None if it was taken before, or if the files cannot be fetched."""
        with self._lock:
            if self._fetched is None:
                try:
                    self._fetched = dict(zip(self._names, store.get_many(self._names), strict=True))
                except TahoeError:
                    self._fetched = {}  # the reader opens each file by itself, which raises the error of the faulty one
            return self._fetched.pop(name, None)


class _FilesAhead:
    def __init__(self, store: LogStore, groups: list[list[str]]) -> None:
        self._store = store
        self._groups = {name: group for names in groups for group in [_Group(names)] for name in names}

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def __reduce__(self) -> tuple[object, ...]:
        return _itself, (self._store,)

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`."""
        group = self._groups.get(name)
        content = None if group is None else group.take(self._store, name)
        return self._store.open_input(name) if content is None else pa.BufferReader(content)


def _itself(store: LogStore) -> LogStore:
    """The store in another process, which reads other files."""
    return store
