"""A random-access file over byte ranges of an object, for Arrow's readers."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from tahoe.base.exceptions import Unsupported
from tahoe.store.log_store import LogStore

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class RangedFile(io.RawIOBase):
    """An object of a store as a file: each read is one ranged request, except for the tail, which is in memory.

    Not thread-safe by itself; `pyarrow.PythonFile` around it locks each seek together with its read.

    Args:
        size: the object's size in bytes.
        tail: any number of the object's last bytes.
        read_range: returns the bytes from `start` up to, but not including, `stop`.
    """

    def __init__(self, size: int, tail: bytes, read_range: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self._size = size
        self._tail = tail
        self._read_range = read_range
        self._position = 0

    def readable(self) -> bool:
        """True: the file is read-only."""
        return True

    def seekable(self) -> bool:
        """True: any position costs the same."""
        return True

    def tell(self) -> int:
        """Return the position, in bytes from the beginning."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position, possibly beyond the end, and return it. Raises `ValueError` before the beginning."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}, before the beginning of the file")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Return up to `size` bytes from the position, or all: in one request, or none if the tail has them."""
        start = min(self._position, self._size)
        stop = self._size if size is None or size < 0 else min(start + size, self._size)
        if start == stop:
            return b""
        tail_start = self._size - len(self._tail)
        if start >= tail_start:
            data = self._tail[start - tail_start : stop - tail_start]
        else:
            data = self._read_range(start, stop)
        self._position = start + len(data)
        return data

    def readall(self) -> bytes:
        """Return all bytes from the position."""
        return self.read()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill the buffer from the position; return the number of bytes read."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


def reopened(url: str, options: Mapping[str, str]) -> LogStore:
    """Return the store from `tahoe.store.object_store.open_store`.

    Raises:
        Unsupported: ``TAHOE_NO_OBSTORE``: this Python, on one of Spark's executors, lacks the package with which Tahoe reads buckets.
    """
    try:
        opened = import_module("tahoe.store.object_store").open_store(url, options)
    except ModuleNotFoundError as error:
        if error.name != "obstore":
            raise
        raise Unsupported(
            f"The Python of Spark's executors lacks the package obstore, with which Tahoe reads and writes {url}. Install it there "
            "(pip install obstore), or set PYSPARK_PYTHON to a Python that has it.",
            code="TAHOE_NO_OBSTORE",
            table=url,
        ) from error
    return cast(LogStore, opened)
