"""`InitialFiles`: the files of the snapshot that a stream begins with, in the order that positions count by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.lazy import pc
from tahoe.log.files.live_files import add_files
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["InitialFiles"]

_CHUNK = 1024


@dataclass(frozen=True)
class InitialFiles:
    """The live files of a version, by modification time and path. They stay columns; actions are made of those that a batch holds."""

    version: int
    files: pa.Table
    order: Any  # pyarrow.UInt64Array

    @classmethod
    def of(cls, snapshot: Snapshot) -> InitialFiles:
        """Those of a snapshot; reads its files."""
        files = snapshot.files()
        order = pc.sort_indices(files, sort_keys=[("modificationTime", "ascending"), ("path", "ascending")])
        return cls(snapshot.version, files, order)

    def __len__(self) -> int:
        return len(self.order)

    def sizes(self, first: int, stop: int) -> Iterator[int]:
        """The files' sizes in bytes, made as they are asked for."""
        sizes = self.files.column("size")
        for begin in range(first, stop, _CHUNK):
            yield from sizes.take(self.order.slice(begin, min(_CHUNK, stop - begin))).to_pylist()

    def bytes_from(self, first: int) -> int:
        """Of all files from an index on."""
        return int(pc.sum(self.files.column("size").take(self.order.slice(first))).as_py() or 0)

    def between(self, first: int, stop: int) -> list[IndexedFile]:
        """The files from one index to before another."""
        found = add_files(self.files.take(self.order.slice(first, max(stop - first, 0))))
        return [IndexedFile(self.version, index, add) for index, add in enumerate(found, start=first)]

    def matching(self, mask: pa.BooleanArray) -> list[IndexedFile]:
        """The files of which a mask over `files` is true."""
        indexes = pc.indices_nonzero(mask.take(self.order))
        found = add_files(self.files.take(self.order.take(indexes)))
        return [IndexedFile(self.version, index, add) for index, add in zip(indexes.to_pylist(), found, strict=True)]
