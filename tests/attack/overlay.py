"""A table in memory that is built once and damaged a thousand times: each case lays its own bytes over the same files.

Files (built once) ──Overlay({name: bytes or None})──► a whole `LogStore` that reads, lists and writes
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.store.log_store import Created, Entry, Exists, PutOutcome

__all__ = ["Damage", "Overlay"]

Damage = Mapping[str, bytes | None]
"""New contents of files by name; None takes the file away."""

_BEGIN_MS = 1_700_000_000_000


class Overlay:
    """A store over files that it never changes; writes and corruption stay in the overlay.

    Args:
        url: the table's root, for messages.
        files: contents by name, shared by all overlays.
        damage: the corrupt files. Their times are unchanged, as after bit rot.
    """

    def __init__(self, url: str, files: Mapping[str, bytes] | None = None, damage: Damage | None = None) -> None:
        self.url = url
        self._files = dict(files or {})
        self._times = {name: _BEGIN_MS + 1000 * number for number, name in enumerate(sorted(self._files))}
        self._clock = _BEGIN_MS + 1000 * len(self._files)
        self._lock = threading.Lock()
        for name, data in (damage or {}).items():
            self.damage(name, data)

    def __repr__(self) -> str:
        return f"Overlay({self.url})"

    def damage(self, name: str, data: bytes | None) -> None:
        """Exchange a file's bytes, or take it away, behind the back of everyone."""
        if data is None:
            self._files.pop(name, None)
        else:
            self._files[name] = data
            self._times.setdefault(name, self._clock)

    def contents(self) -> dict[str, bytes]:
        """All files as they are now."""
        return dict(self._files)

    # -- the methods of `LogStore` ---------------------------------------------------------------------------------------------

    asks_cheaply = False

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        return [self._entry(name) for name in self.names_from(folder, start)]

    def names_from(self, folder: str, start: str = "") -> list[str]:
        prefix = f"{folder}/" if folder else ""
        actual = [name for name in self._files if name.startswith(prefix)]
        return sorted(name for name in actual if "/" not in name[len(prefix) :] and name[len(prefix) :] >= start)

    def walk(self, folder: str = "") -> Iterator[Entry]:
        prefix = f"{folder}/" if folder else ""
        return iter([self._entry(name) for name in list(self._files) if name.startswith(prefix)])

    def get(self, name: str) -> bytes:
        self._check(name)
        try:
            return self._files[name]
        except KeyError:
            raise NotFound(f"There is no object '{name}' in '{self.url}'.", code="DELTA_FILE_NOT_FOUND", file=name) from None

    def get_many(self, names: list[str]) -> list[bytes]:
        return [self.get(name) for name in names]

    def head(self, name: str) -> Entry | None:
        self._check(name)
        return self._entry(name) if name in self._files else None

    def open_input(self, name: str) -> pa.NativeFile:
        return pa.BufferReader(self.get(name))

    def put(self, name: str, data: bytes) -> None:
        self._check(name)
        with self._lock:
            self._write(name, data)

    @contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        file = BytesIO()
        yield file
        self.put(name, file.getvalue())

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        self._check(name)
        with self._lock:
            if name in self._files:
                return Exists()
            self._write(name, data)
            return Created()

    def delete(self, name: str) -> None:
        self._check(name)
        self._files.pop(name, None)

    def _write(self, name: str, data: bytes) -> None:
        self._clock += 1000
        self._files[name] = bytes(data)
        self._times[name] = self._clock

    def _entry(self, name: str) -> Entry:
        return Entry(name, len(self._files[name]), self._times[name])

    def _check(self, name: str) -> None:
        if not name or name[0] == "/" or ".." in name.split("/"):
            raise InvalidRequest(f"'{name}' is no name below the root of table '{self.url}'.", table=self.url)
