"""The pointer of readers that go by path: a hint in the table's own folder."""

from __future__ import annotations

from tahoe.exceptions import NotFound
from tahoe.store.log_store import LogStore
from tahoe.uniform.catalogs.catalog import PATH
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number

__all__ = ["HINT", "PathCatalog"]

HINT = f"{FOLDER}/version-hint.text"


class PathCatalog:
    """Readers that go by path: ``metadata/version-hint.text`` holds the number of the newest metadata file.

    The hint is only a hint: what decides is the metadata file's name, which is put if absent. It may move backward for a moment
    where two conversions end together; the one that wrote it last then sees the newer file and puts that right.
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
