"""PyIceberg's `FileIO` over a store.

Needs PyIceberg (the extra ``iceberg``): importing this module without it raises `ImportError`.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.io import FileIO, InputFile

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.store.location import name_below
from tahoe.store.log_store import LogStore


class StoreIO(FileIO):
    """Read-only access to a table's store for PyIceberg; files outside the table's root are never opened."""

    def __init__(self, store: LogStore) -> None:
        super().__init__({})
        self._store = store

    def new_input(self, location: str) -> InputFile:
        """Return a file below the root. Raises `CorruptTable` (``TAHOE_PATH_OUTSIDE_TABLE``) for any other location."""
        name = name_below(self._store.url, location)
        if name is None:
            raise CorruptTable(
                f"Iceberg metadata of table {self._store.url} refers to {location}, which is outside the table; it is not opened.",
                code="TAHOE_PATH_OUTSIDE_TABLE",
                table=self._store.url,
                path=location,
            )
        return _StoreFile(self._store, location, name)

    def new_output(self, location: str) -> Any:
        """Always raise: the metadata is read-only."""
        raise CorruptTable(
            f"Tahoe does not write to the Iceberg metadata of another writer: {location}.",
            code="TAHOE_ICEBERG_READ_ONLY",
            file=location,
        )

    def delete(self, location: object) -> None:
        """Always raise: the metadata is read-only."""
        raise CorruptTable(
            f"Tahoe does not delete Iceberg metadata of another writer: {location}.",
            code="TAHOE_ICEBERG_READ_ONLY",
            file=str(location),
        )


class _StoreFile(InputFile):
    def __init__(self, store: LogStore, location: str, name: str) -> None:
        super().__init__(location)
        self._store = store
        self._name = name

    def __len__(self) -> int:
        entry = self._store.head(self._name)
        if entry is None:
            raise NotFound(f"There is no file {self.location}.", code="TAHOE_FILE_NOT_FOUND", file=self.location)
        return entry.size

    def exists(self) -> bool:
        return self._store.head(self._name) is not None

    def open(self, seekable: bool = True) -> Any:
        return self._store.open_input(self._name)
