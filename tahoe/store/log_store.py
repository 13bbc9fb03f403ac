"""The interface through which Tahoe accesses storage: a flat namespace below one table's root.

Names are relative to the root, with ``/`` between parts and **not** percent-encoded: ``_delta_log/00000000000000000000.json``,
``month=1/part-00000-….snappy.parquet``. `tahoe.store.location` converts the specification's encoded paths to such names and
refuses those that leave the root. Every implementation passes `tahoe.testing.store_suite`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol, TypeGuard, TypeVar

import pyarrow as pa

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing."""

    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Created:
    """The name was free and now has our bytes."""


@dataclass(frozen=True, slots=True)
class Exists:
    """The name was taken; this call wrote nothing. (An earlier attempt of ours may have: read back to find out.)"""


@dataclass(frozen=True, slots=True)
class InFlight:
    """The store refused because another write to the same name is in progress (S3: 409); nothing was written."""

    error: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The store answered with an error that means that nothing was written; a retry may succeed."""

    error: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer, or one that leaves open whether our bytes were written: read the name back."""

    error: str


Coordination = Literal["none", "offered", "in force"]
"""Whether a coordinator decides which commits of a table count: none configured; configured, but it does not manage the table; managing
it."""

PutOutcome = Created | Exists | InFlight | Refused | Unanswered


class LogStore(Protocol):
    """The storage operations that Tahoe needs. Failures are `tahoe.base.exceptions.StorageFailure`, a missing name is `NotFound`."""

    @property
    def url(self) -> str:
        """The table's root as a URL without a trailing slash and without credentials, e.g. ``file:///data/t`` or ``s3://bucket/t``."""

    @property
    def asks_cheaply(self) -> bool:
        """Whether a lookup of one name costs far less than listing its folder: true if a listing scans a folder instead of sending a
        request."""

    @property
    def outside(self) -> Outside:
        """Access to files outside of the root that the table may read. `get`, `get_many`, `head` and `open_input` accept their names
        too."""

    @property
    def coordination(self) -> Coordination:
        """Whether a coordinator decides which commits count (PROTOCOL.md, "Catalog-managed tables"); storage itself has none."""

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """Return the objects directly in `folder` whose file name is ≥ `start`, sorted by name; `Entry.name` is relative to the root.

        A folder that does not exist gives an empty list. Sub-folders are not entered.
        """

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """Return the names of `list_from`; cheaper if the store would have to look up the size and time of each object."""

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """Yield all objects below `folder`, at any depth, in no order."""

    def get(self, name: str) -> bytes:
        """Return the whole object. Raises `NotFound` if there is none."""

    def get_many(self, names: list[str]) -> list[bytes]:
        """Return the whole objects, in the given order; reads concurrently if that is faster."""

    def head(self, name: str) -> Entry | None:
        """Return the object's entry, or None if there is none."""

    def open_input(self, name: str) -> pa.NativeFile:
        """Return a random-access file over the object for Arrow readers (memory-mapped on local disk)."""

    def put(self, name: str, data: bytes) -> None:
        """Write the whole object, replacing an existing one; a reader sees the old or the new bytes, never a part."""

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """Return a file for writing an object that need not fit into memory.

        When the context ends, the whole object is written, replacing an existing one. When it ends with an error, nothing is.
        """

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """Write the whole object unless the name is taken; of any number of callers at most one gets `Created`. Never raises
        for the store's answer, which becomes the outcome."""

    def delete(self, name: str) -> None:
        """Remove the object; a missing one is not an error."""


class Outside(Protocol):
    """Files outside of a table's root: see `tahoe.store.outside`."""

    def at(self, name: str) -> tuple[LogStore, str]:
        """Return the store of a file that the table may read, and its name there. Raises `CorruptTable` for all other files."""

    def open(self, url: str) -> LogStore:
        """Return the store of another table in the same kind of storage."""


class StoreOver:
    """A store of the same table as another one.

    Args:
        inner: the other store, which knows the table's root.
    """

    def __init__(self, inner: LogStore) -> None:
        self.inner = inner

    @property
    def url(self) -> str:
        """See `LogStore.url`."""
        return self.inner.url

    @property
    def asks_cheaply(self) -> bool:
        """See `LogStore.asks_cheaply`."""
        return self.inner.asks_cheaply

    @property
    def outside(self) -> Outside:
        """See `LogStore.outside`."""
        return self.inner.outside


class BulkStore(LogStore, Protocol):
    """A store that deletes many objects in one request. Log and data need only `LogStore`."""

    def delete_many(self, names: list[str]) -> None:
        """Remove the objects; missing ones are not an error. If it raises `StorageFailure`, some of them may be gone."""


class PagedStore(LogStore, Protocol):
    """A store whose listings are long and arrive in pages. Log and data need only `LogStore`."""

    def pages_from(self, folder: str, start: str = "") -> Iterator[list[Entry]]:
        """Yield the entries of `list_from` in their order, one request for each page; a caller that needs no more stops."""


def pages_from(store: LogStore, folder: str, start: str = "") -> Iterator[list[Entry]]:
    """Yield the entries of `LogStore.list_from` in their order: page by page if the store is a `PagedStore`, else all at once."""
    if is_paged(store):
        return store.pages_from(folder, start)
    return iter([store.list_from(folder, start)])


def is_paged(store: LogStore) -> TypeGuard[PagedStore]:
    """Whether the store returns the pages of a listing one by one."""
    return hasattr(store, "pages_from")


class RemoteStore(LogStore, Protocol):
    """A store whose requests another machine answers, so that its local disk is not this machine's."""

    def run(self, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Return the result of ``function(store, *arguments)`` there; all are picklable, and the function is of `tahoe.store`."""


def is_remote(store: LogStore) -> TypeGuard[RemoteStore]:
    """Whether the store is a `RemoteStore`."""
    return hasattr(store, "run")


def at_storage(store: LogStore, function: Callable[..., Answer], *arguments: object) -> Answer:
    """Return the result of ``function(store, *arguments)``, called on the machine that accesses the storage.

    Args:
        function, arguments: see `RemoteStore.run`.
    """
    return store.run(function, *arguments) if is_remote(store) else function(store, *arguments)


class FolderStore(LogStore, Protocol):
    """A store whose folders can be listed, for serving many tables from one place. Log and data need only `LogStore`."""

    def folders(self, folder: str = "") -> list[str]:
        """Return the names of the folders directly in `folder`, sorted; a folder that does not exist has none.

        A symbolic link counts if it leads to a folder below the root.
        """

    def has_folder(self, folder: str) -> bool:
        """Whether there is such a folder (in an object store: any object below that name); False if a link leads out of the root."""
