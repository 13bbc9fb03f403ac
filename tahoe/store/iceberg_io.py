"""PyIceberg's `FileIO` over a store, and the mapping from locations in Iceberg metadata to store names.

Needs PyIceberg (the extra ``iceberg``): importing this module without it raises `ImportError`.
"""

from __future__ import annotations

import re
from typing import Any

from pyiceberg.io import FileIO, InputFile

from tahoe.base.exceptions import CorruptTable, NotFound
from tahoe.store.log_store import LogStore

_SCHEME = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(/.*)")
_ALIKE = {"s3a": "s3", "s3n": "s3", "abfss": "abfs"}


def name_below(root_url: str, location: str) -> str | None:
    """Return the store name of a location, which writers spell as ``file:///a/b``, ``file:/a/b``, ``/a/b`` or with ``s3a``; None if it is
    not below the root. Locations are not percent-encoded (Iceberg's specification has no such rule)."""
    root, target = _parts(root_url), _parts(location)
    if root is None or target is None or root[:2] != target[:2] or not target[2].startswith(f"{root[2]}/"):
        return None
    name = target[2][len(root[2]) + 1 :]
    return None if any(part in ("", ".", "..") for part in name.split("/")) else name


def _parts(location: str) -> tuple[str, str, str] | None:
    match = _SCHEME.fullmatch(location)
    if match is None:
        return None
    scheme = (match[1] or "file").lower()
    return _ALIKE.get(scheme, scheme), match[2] or "", match[3].rstrip("/")


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
