"""Files outside of a table's folder that its log may name: those of the folders that it is a shallow clone of, and no others.

    the log names file:///data/source/x.parquet ─► has a folder above that file a record of this table? ─► read it there

A log is not trusted with paths: who can write a hostile one could name any file of this machine. So the folder that the file lies in must say
itself that the table may read it. CLONE leaves that record, ``_shallow_clones/<digest of the clone's URL>.json``, in its source; who cannot
write there cannot let another table read there either. VACUUM of the source finds its clones by the same records. Nothing is ever written,
replaced or deleted through such a name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.store.location import is_outside
from tahoe.store.log_store import Entry, LogStore

__all__ = ["CLONES_FOLDER", "CloneRecord", "OutsideFiles", "clones_of", "record_clone"]

CLONES_FOLDER = "_shallow_clones"
"""In the source's folder; hidden from readers of Parquet folders, and from VACUUM."""


@dataclass(frozen=True, slots=True)
class CloneRecord:
    """What a source knows of a shallow clone.

    Args:
        table: the clone's URL.
        version: of the source, that was cloned; None for a source without versions.
        modified_ms: since when, by the clock of the storage.
    """

    table: str
    version: int | None
    modified_ms: int = 0


class OutsideFiles:
    """Finds the files of other folders that one table may read.

    Args:
        root_url: the table's own.
        open_root: the store of another folder, with the same credentials.
    """

    def __init__(self, root_url: str, open_root: Callable[[str], LogStore]) -> None:
        self._root_url = root_url
        self._open_root = open_root
        self._known: dict[str, LogStore] = {}

    def at(self, name: str) -> tuple[LogStore, str]:
        """The store of the source that a file lies in, and the file's name there. What was found once is remembered.

        Args:
            name: of `tahoe.store.location.decode_path` with `outside`.

        Raises:
            CorruptTable: ``TAHOE_PATH_OUTSIDE_TABLE``: no folder above the file has a record of this table.
            StorageFailure: that could not be found out.
        """
        for root, store in self._known.items():
            if name.startswith(root):
                return store, name[len(root) :]
        failure: StorageFailure | None = None
        for folder in _folders_above(name):
            store = self._open_root(folder)
            try:
                if _record(store, self._root_url) is not None:
                    self._known[f"{folder}/"] = store
                    return store, name[len(folder) + 1 :]
            except StorageFailure as error:  # a folder further up, perhaps, that may not be looked into
                failure = failure or error
        raise failure or self._refused(name)

    def get(self, name: str) -> bytes:
        """See `LogStore.get`; errors as of `at` too."""
        store, inside = self.at(name)
        return store.get(inside)

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`; errors as of `at` too."""
        store, inside = self.at(name)
        found = store.head(inside)
        return None if found is None else replace(found, name=name)

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`; errors as of `at` too."""
        store, inside = self.at(name)
        return store.open_input(inside)

    def open(self, url: str) -> LogStore:
        """The store of another table of the same kind of storage."""
        return self._open_root(url)

    def _refused(self, name: str) -> CorruptTable:
        return CorruptTable(
            f"The log of table '{self._root_url}' names '{name}', which is not below the table's root, and no folder above that file "
            "says that this table is a shallow clone of it. Tahoe does not follow such a path, for a hostile log could name any file "
            "with it. If the table is a shallow clone that another writer made, let its source know: "
            f"tahoe.Table(source).allow_shallow_clone('{self._root_url}'). If it is none, restore the log from a backup.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=self._root_url,
            path=name,
        )


def record_clone(source: LogStore, clone: CloneRecord) -> None:
    """Let a source know of a shallow clone, which may read its files from now on. A later record of one clone replaces the earlier."""
    content = {"table": clone.table} | ({} if clone.version is None else {"version": clone.version})
    source.put(_name_of(clone.table), json.dumps(content).encode())


def clones_of(source: LogStore) -> Iterator[CloneRecord]:
    """The shallow clones that a source knows of. Raises `CorruptTable` (``TAHOE_CORRUPT_CLONE_RECORD``)."""
    for entry in source.list_from(CLONES_FOLDER):
        if entry.name.endswith(".json"):
            found = _parsed(source.get(entry.name), source.url, entry.name)
            yield CloneRecord(found.table, found.version, entry.modified_ms)


def _folders_above(name: str) -> Iterator[str]:
    """The nearest first."""
    folder = name.rpartition("/")[0]
    while not folder.endswith((":/", "//", ":")) and is_outside(f"{folder}/"):
        yield folder
        folder = folder.rpartition("/")[0]


def _name_of(url: str) -> str:
    return f"{CLONES_FOLDER}/{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


def _record(source: LogStore, clone_url: str) -> CloneRecord | None:
    name = _name_of(clone_url)
    try:
        found = _parsed(source.get(name), source.url, name)
    except NotFound:
        return None
    return found if found.table == clone_url else None


def _parsed(content: bytes, url: str, name: str) -> CloneRecord:
    try:
        value = json.loads(content)
        version = value.get("version")
        return CloneRecord(str(value["table"]), None if version is None else int(version))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTable(
            f"{url}/{name}, by which a table knows its shallow clones, cannot be read: {error}. Delete it if there is no such clone; else "
            "let the source know of the clone again: tahoe.Table(source).allow_shallow_clone(clone).",
            code="TAHOE_CORRUPT_CLONE_RECORD",
            table=url,
            file=name,
        ) from error
