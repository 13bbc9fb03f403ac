"""The pointer of readers that go by path: a hint in the table's own folder."""

from __future__ import annotations

from threading import Lock

from tahoe.exceptions import NotFound
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.catalog import PATH
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number

__all__ = ["HINT", "PathCatalog"]

HINT = f"{FOLDER}/version-hint.text"

_LOCKS = tuple(Lock() for _ in range(64))
"""One for each group of tables, by hash: two conversions in this process compare and write one table's hint one after the other."""


class PathCatalog:
    """Readers that go by path: ``metadata/version-hint.text`` holds the number of the newest metadata file.

    The hint is only a hint: the name of the metadata file decides, which is put if absent. Two processes that convert at the same
    time may move the hint backward for a moment; the one that wrote it last then sees the newer file and corrects the hint.
    """

    def __init__(self, store: LogStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        """`PATH`."""
        return PATH

    @property
    def swaps(self) -> bool:
        """No: whoever moved the hint looks for newer metadata."""
        return False

    def load(self) -> str | None:
        """The URL of the metadata file whose number the hint holds; None where there is no hint, or no number in it."""
        number = self._number()
        return None if number is None else f"{self._store.url}/{metadata_name(number)}"

    def commit(self, old: str | None, new: str) -> bool:
        """Write the hint if it still names `old`; False where it does not."""
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
