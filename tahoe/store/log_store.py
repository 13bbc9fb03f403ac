"""The port through which Tahoe touches storage: a flat space of names below one table's root.

Names are relative to the root, with ``/`` between parts and **not** percent-encoded: ``_delta_log/00000000000000000000.json``,
``month=1/part-00000-….snappy.parquet``. `tahoe.store.location` turns the specification's encoded paths into such names and
refuses those that leave the root. Every implementation passes `tahoe.testing.store_suite`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

import pyarrow as pa

__all__ = [
    "BulkStore",
    "Coordination",
    "Created",
    "Entry",
    "Exists",
    "FolderStore",
    "InFlight",
    "LogStore",
    "Outside",
    "PutOutcome",
    "Refused",
    "Unanswered",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing."""

    name: str
    size: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class Created:
    """The name was free and now holds our bytes."""


@dataclass(frozen=True, slots=True)
class Exists:
    """The name was taken; nothing was written now. (An earlier try of ours may have: read back to know.)"""


@dataclass(frozen=True, slots=True)
class InFlight:
    """The store refused because another write to the same name is under way (S3: 409); nothing was written."""

    error: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The store answered with an error that says nothing was written; trying again may help."""

    error: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer, or one that leaves open whether our bytes landed: read the name back."""

    error: str


Coordination = Literal["none", "offered", "in force"]
"""Whether a coordinator says which commits of a table count: nobody was named, one that does not know the table, one that manages it."""

PutOutcome = Created | Exists | InFlight | Refused | Unanswered


class LogStore(Protocol):
    """What Tahoe needs of storage. Failures are `tahoe.exceptions.StorageFailure`, a missing name is `NotFound`."""

    @property
    def url(self) -> str:
        """The table's root as a URL without a trailing slash and without credentials, e.g. ``file:///data/t`` or ``s3://bucket/t``."""

    @property
    def asks_cheaply(self) -> bool:
        """Whether asking for one name costs far less than listing its folder: where a listing is no request, but a walk."""

    @property
    def outside(self) -> Outside:
        """Where files outside of the root are that the table may read. `get`, `get_many`, `head` and `open_input` know their names too."""

    @property
    def coordination(self) -> Coordination:
        """Whether a coordinator says which commits there are (PROTOCOL.md, "Catalog-managed tables"); storage itself has none."""

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """Objects directly in `folder` whose file name is ≥ `start`, sorted by name; `Entry.name` is relative to the root.

        A folder that does not exist is an empty list. Sub-folders are not entered.
        """

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """The names that `list_from` would give; cheaper where the store must be asked for the size and time of each object."""

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """All objects below `folder`, at any depth, in no order."""

    def get(self, name: str) -> bytes:
        """The whole object. Raises `NotFound` where there is none."""

    def get_many(self, names: list[str]) -> list[bytes]:
        """The whole objects, in the order asked; read side by side where the store gains by it."""

    def head(self, name: str) -> Entry | None:
        """The object's entry, or None where there is none."""

    def open_input(self, name: str) -> pa.NativeFile:
        """A random-access file over the object for Arrow readers (memory-mapped on local disk)."""

    def put(self, name: str, data: bytes) -> None:
        """Write the object whole, replacing what is there; a reader sees the old or the new bytes, never a part."""

    def open_output(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to write an object to that need not fit into memory.

        When the context ends, the object is there whole, replacing what was there. When it ends with an error, nothing is.
        """

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """Write the object whole unless the name is taken; of any number of callers at most one gets `Created`. Never raises
        for what the store answers: the outcome says it."""

    def delete(self, name: str) -> None:
        """Remove the object; a missing one is no error."""


class Outside(Protocol):
    """Files outside of a table's root: see `tahoe.store.outside`."""

    def at(self, name: str) -> tuple[LogStore, str]:
        """The store that has a file which the table may read, and its name there. Raises `CorruptTable` for every other."""

    def open(self, url: str) -> LogStore:
        """The store of another table of the same kind of storage."""


class BulkStore(LogStore, Protocol):
    """A store that deletes many objects by one request. Log and data need only `LogStore`."""

    def delete_many(self, names: list[str]) -> None:
        """Remove the objects; missing ones are no error. Where it raises `StorageFailure`, some of them may be gone."""


class FolderStore(LogStore, Protocol):
    """A store whose folders can be listed: what serves many tables from one place. Log and data need only `LogStore`."""

    def folders(self, folder: str = "") -> list[str]:
        """Names of the folders directly in `folder`, sorted; a folder that does not exist has none.

        A symbolic link counts where it leads to a folder below the root.
        """

    def has_folder(self, folder: str) -> bool:
        """Whether there is such a folder (in an object store: anything below that name); False where a link leads out of the root."""
