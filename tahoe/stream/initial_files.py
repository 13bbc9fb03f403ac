"""`InitialFiles`: the files of a stream's initial snapshot, in the order of position indexes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.log.files.live_files import add_files
from tahoe.snapshot.snapshot import Snapshot
from tahoe.stream.streamed_commit import IndexedFile

__all__ = ["InitialFiles"]

_CHUNK = 1024


@dataclass(frozen=True)
class InitialFiles:
    """The live files of a version, by modification time and path. They stay columnar; only the files of a batch become actions."""

    version: int
    files: pa.Table
    order: Any  # pyarrow.UInt64Array

    @classmethod
    def of(cls, snapshot: Snapshot) -> InitialFiles:
        """Return the files of a snapshot."""
        files = snapshot.files()
        order = pc.sort_indices(files, sort_keys=[("modificationTime", "ascending"), ("path", "ascending")])
        return cls(snapshot.version, files, order)

    def __len__(self) -> int:
        return len(self.order)

    def sizes(self, first: int, stop: int) -> Iterator[int]:
        """Yield the files' sizes in bytes, on demand."""
        sizes = self.files.column("size")
        for begin in range(first, stop, _CHUNK):
            yield from sizes.take(self.order.slice(begin, min(_CHUNK, stop - begin))).to_pylist()

    def bytes_from(self, first: int) -> int:
        """Return the total size of the files from an index on."""
        return int(pc.sum(self.files.column("size").take(self.order.slice(first))).as_py() or 0)

    def between(self, first: int, stop: int) -> list[IndexedFile]:
        """Return the files from `first` up to, but not including, `stop`."""
        adds = add_files(self.files.take(self.order.slice(first, max(stop - first, 0))))
        return [IndexedFile(self.version, index, add) for index, add in enumerate(adds, start=first)]

    def matching(self, mask: pa.BooleanArray) -> list[IndexedFile]:
        """Return the files for which a mask over `files` is true."""
        indexes = pc.indices_nonzero(mask.take(self.order))
        adds = add_files(self.files.take(self.order.take(indexes)))
        return [IndexedFile(self.version, index, add) for index, add in zip(indexes.to_pylist(), adds, strict=True)]
