"""Rows sorted into groups that together may be larger than memory: the excess is spilled to the local disk.

rows with the number of their group ─► batches in memory, group by group ─ too many bytes ─► a file of each group in a folder
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory
from types import TracebackType

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.snapshot.small_files import joined


def sorted_by_group(rows: pa.RecordBatch, groups: pa.Array) -> tuple[pa.RecordBatch, pa.Array]:
    """Return the rows and their group numbers, sorted by group; rows of a group keep their order."""
    order = pc.sort_indices(groups)  # stable
    # The indices come from the rows themselves: a bounds check would take a quarter of the time.
    return pc.take(rows, order, boundscheck=False), pc.take(groups, order, boundscheck=False)


class Spill:
    """Rows in groups; a context manager that deletes its files at exit.

    Args:
        most_bytes: the maximum bytes of rows in memory.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._waiting: defaultdict[int, list[pa.RecordBatch]] = defaultdict(list)
        self._files: defaultdict[int, list[str]] = defaultdict(list)
        self._bytes = 0
        self._times = 0
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def groups(self) -> list[int]:
        """The numbers of all groups that have rows, sorted."""
        return sorted({*self._waiting, *self._files})

    def add(self, rows: pa.RecordBatch, groups: pa.Array) -> None:
        """Add rows.

        Args:
            rows: best sorted by `sorted_by_group`, perhaps on other threads: each run of a group has a cost.
            groups: the number of each row's group, int64 without nulls.
        """
        runs = pc.run_end_encode(groups)
        start = 0
        for group, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            self._waiting[group].append(rows.slice(start, end - start))
            start = end
        self._has_more(rows)

    def add_to(self, group: int, rows: pa.RecordBatch) -> None:
        """Add rows that are all of one group."""
        self._waiting[group].append(rows)
        self._has_more(rows)

    def take(self, group: int) -> Iterator[pa.RecordBatch]:
        """Return and remove the rows of a group, in the order of arrival. Small batches are joined."""
        return joined([partial(self._taken, group)])

    def _taken(self, group: int) -> Iterator[pa.RecordBatch]:
        for path in self._files.pop(group, ()):
            with pa.memory_map(path) as source, pa.ipc.open_stream(source) as reader:
                yield from reader
        yield from self._waiting.pop(group, ())

    def _has_more(self, rows: pa.RecordBatch) -> None:
        self._bytes += rows.nbytes
        if self._bytes > self._most_bytes:
            self._to_disk()

    def _to_disk(self) -> None:
        self._folder = self._folder or TemporaryDirectory(prefix="tahoe-")
        for group in list(self._waiting):
            batches = self._waiting.pop(group)
            path = f"{self._folder.name}/{group}-{self._times}"
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, batches[0].schema) as writer:
                # Each batch costs a few system calls per column.
                for batch in joined([partial(iter, batches)]):
                    writer.write_batch(batch)
            self._files[group].append(path)
        self._times += 1
        self._bytes = 0
        pa.default_memory_pool().release_unused()
