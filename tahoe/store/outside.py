"""Files outside of a table's folder that its log may name: files of the folders of which it is a shallow clone, and no others.

    the log names file:///data/source/x.parquet ─► does a folder above that file have a record of this table? ─► read it there

Paths in a log are not trusted: the author of a hostile log could name any file of this machine. So the file's own folder must permit
the table to read it. CLONE leaves that record, ``_shallow_clones/<digest of the clone's URL>.json``, in its source; without write access
to the source, nobody can let another table read there. VACUUM of the source finds its clones by the same records. Nothing is ever
written, replaced or deleted through such a name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from tahoe.base.exceptions import CorruptTable, NotFound, StorageFailure
from tahoe.store.location import is_outside
from tahoe.store.log_store import Entry, LogStore

CLONES_FOLDER = "_shallow_clones"
"""In the source's folder; hidden from readers of Parquet folders, and from VACUUM."""


@dataclass(frozen=True, slots=True)
class CloneRecord:
    """A source's record of a shallow clone.

    Args:
        table: the clone's URL.
        version: the source's version that was cloned; None for a source without versions.
        modified_ms: the time of the record, by the storage's clock.
    """

    table: str
    version: int | None
    modified_ms: int = 0


class OutsideFiles:
    """Finds the files of other folders that a table may read.

    Args:
        root_url: the table's URL.
        open_root: returns the store of another folder, with the same credentials.
    """

    def __init__(self, root_url: str, open_root: Callable[[str], LogStore]) -> None:
        self._root_url = root_url
        self._open_root = open_root
        self._stores: dict[str, LogStore] = {}

    def at(self, name: str) -> tuple[LogStore, str]:
        """Return the store of the source that has the file, and the file's name there. Results are cached.

        Args:
            name: a name from `tahoe.store.location.decode_path` with `outside`.

        Raises:
            CorruptTable: ``TAHOE_PATH_OUTSIDE_TABLE``: no folder above the file has a record of this table.
            StorageFailure: storage failed to answer.
        """
        for root, store in self._stores.items():
            if name.startswith(root):
                return store, name[len(root) :]
        failure: StorageFailure | None = None
        for folder in _folders_above(name):
            store = self._open_root(folder)
            try:
                if _record(store, self._root_url) is not None:
                    self._stores[f"{folder}/"] = store
                    return store, name[len(folder) + 1 :]
            except StorageFailure as error:  # possibly a folder further up without read permission
                failure = failure or error
        raise failure or self._refused(name)

    def get(self, name: str) -> bytes:
        """See `LogStore.get`; also raises the errors of `at`."""
        store, inside = self.at(name)
        return store.get(inside)

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`; also raises the errors of `at`."""
        store, inside = self.at(name)
        entry = store.head(inside)
        return None if entry is None else replace(entry, name=name)

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`; also raises the errors of `at`."""
        store, inside = self.at(name)
        return store.open_input(inside)

    def open(self, url: str) -> LogStore:
        """Return the store of another table in the same kind of storage."""
        return self._open_root(url)

    def _refused(self, name: str) -> CorruptTable:
        return CorruptTable(
            f"The log of table '{self._root_url}' names '{name}', which is not below the table's root, and no folder above that file "
            "has a record that this table is a shallow clone of it. Tahoe does not follow such a path, since a hostile log could name any "
            "file. If another writer made the table as a shallow clone, register it with its source: "
            f"tahoe.Table(source).allow_shallow_clone('{self._root_url}'). If it is not a shallow clone, restore the log from a backup.",
            code="TAHOE_PATH_OUTSIDE_TABLE",
            table=self._root_url,
            path=name,
        )


def record_clone(source: LogStore, clone: CloneRecord) -> None:
    """Register a shallow clone with its source, whose files it may read from now on. A later record of a clone replaces the earlier
    one."""
    content = {"table": clone.table} | ({} if clone.version is None else {"version": clone.version})
    source.put(_name_of(clone.table), json.dumps(content).encode())


def clones_of(source: LogStore) -> Iterator[CloneRecord]:
    """Yield the shallow clones registered with a source. Raises `CorruptTable` (``TAHOE_CORRUPT_CLONE_RECORD``)."""
    for entry in source.list_from(CLONES_FOLDER):
        if entry.name.endswith(".json"):
            record = _parsed(source.get(entry.name), source.url, entry.name)
            yield CloneRecord(record.table, record.version, entry.modified_ms)


def _folders_above(name: str) -> Iterator[str]:
    """Yield the folders above a file, nearest first."""
    folder = name.rpartition("/")[0]
    while not folder.endswith((":/", "//", ":")) and is_outside(f"{folder}/"):
        yield folder
        folder = folder.rpartition("/")[0]


def _name_of(url: str) -> str:
    import hashlib  # 3 ms, and few tables have shallow clones

    return f"{CLONES_FOLDER}/{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"


def _record(source: LogStore, clone_url: str) -> CloneRecord | None:
    name = _name_of(clone_url)
    try:
        record = _parsed(source.get(name), source.url, name)
    except NotFound:
        return None
    return record if record.table == clone_url else None


def _parsed(content: bytes, url: str, name: str) -> CloneRecord:
    try:
        value = json.loads(content)
        version = value.get("version")
        return CloneRecord(str(value["table"]), None if version is None else int(version))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptTable(
            f"{url}/{name}, a record of a shallow clone, cannot be read: {error}. Delete it if there is no such clone; else "
            "register the clone again: tahoe.Table(source).allow_shallow_clone(clone).",
            code="TAHOE_CORRUPT_CLONE_RECORD",
            table=url,
            file=name,
        ) from error
