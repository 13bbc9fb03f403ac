"""The pointer for readers by path: a version hint in the table's own folder."""

from __future__ import annotations

from threading import Lock

from tahoe.base.exceptions import NotFound
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.catalog import PATH
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number

HINT = f"{FOLDER}/version-hint.text"

_LOCKS = tuple(Lock() for _ in range(64))
"""Striped locks by hash of the table's URL, so that conversions in this process compare and write one table's hint in turn."""


class PathCatalog:
    """Readers by path: ``metadata/version-hint.text`` contains the number of the newest metadata file.

    The hint is advisory: the metadata file itself decides, which is put if absent. Two processes that convert at the same time may move
    the hint backward for a moment; the process that wrote it last then sees the newer file and corrects the hint.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        """`PATH`."""
        return PATH

    @property
    def swaps(self) -> bool:
        """No: the caller looks for newer metadata after moving the hint."""
        return False

    def load(self) -> str | None:
        """Return the URL of the metadata file that the hint names; None if there is no hint, or no number in it."""
        number = self._number()
        return None if number is None else f"{self._store.url}/{metadata_name(number)}"

    def commit(self, old: str | None, new: str) -> bool:
        """Write the hint if it still names `old`; return False if it does not."""
        with _LOCKS[hash(self._store.url) % len(_LOCKS)]:
            if self.load() != old:
                return False
            self._store.put(HINT, str(metadata_number(new)).encode())
            return True

    def _number(self) -> int | None:
        try:
            text = self._store.get(HINT).decode().strip()
        except NotFound:
            return None
        return int(text) if text.isdecimal() else None
