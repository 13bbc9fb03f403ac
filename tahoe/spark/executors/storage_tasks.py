"""Requests to a table's storage, answered in a Python worker of a Spark Connect server (`tahoe.spark.connect.server_store`)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import TahoeError
from tahoe.store.log_store import LogStore
from tahoe.store.ranged_file import reopened

Request: TypeAlias = Callable[[LogStore], object]
"""A function of the store with a picklable result, or with an iterator of picklable values."""

PART_BYTES = 16 * 1024 * 1024
"""Requests and answers travel in parts of this size, since a row of Spark Connect has at most 128 MB."""

_TAIL_BYTES = 256 * 1024


def parts_of(value: bytes) -> pa.Table:
    """Return bytes as rows of `PART_BYTES` each; one empty row for no bytes."""
    parts = [value[start : start + PART_BYTES] for start in range(0, max(1, len(value)), PART_BYTES)]
    return pa.table({"part": pa.array(parts, pa.binary())})


def joined(batches: Iterable[pa.RecordBatch]) -> bytes:
    """Return the bytes of `parts_of`."""
    return b"".join(part for batch in batches for part in batch.column("part").to_pylist())


def answered(url: str, options: Mapping[str, str], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the parts of a request's pickled answer. An error of Tahoe is an answer too, so that it arrives unchanged.

    Args:
        url, options: the arguments of `tahoe.store.object_store.open_store`.
        batches: the parts of the pickled `Request`.
    """
    try:
        answer = pickle.loads(joined(batches))(reopened(url, options))
        if isinstance(answer, Iterator):
            answer = list(answer)
    except TahoeError as error:
        answer = error
    yield from parts_of(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)).to_batches(max_chunksize=1)


@dataclass(frozen=True, slots=True)
class Call:
    """A `Request` that calls a function of Tahoe with the store and further arguments.

    Args:
        function: of `tahoe.store`, or of this module.
    """

    function: Callable[..., object]
    arguments: tuple[Any, ...]

    def __call__(self, store: LogStore) -> object:
        """Return the function's result."""
        return self.function(store, *self.arguments)


def deleted(store: LogStore, names: list[str]) -> None:
    """Delete objects, with as few requests as the store allows."""
    delete_many = getattr(store, "delete_many", None)
    if delete_many is not None:
        delete_many(names)
        return
    for name in names:
        store.delete(name)


def opened(store: LogStore, name: str) -> tuple[int, bytes]:
    """Return the size of an object, and all of its bytes, or its last ones if it is larger than `PART_BYTES`."""
    with store.open_input(name) as source:
        size = source.size()
        source.seek(0 if size <= PART_BYTES else size - _TAIL_BYTES)
        return size, source.read()


def bytes_between(store: LogStore, name: str, start: int, stop: int) -> bytes:
    """Return the bytes of an object from `start` up to, but not including, `stop`."""
    with store.open_input(name) as source:
        source.seek(start)
        return bytes(source.read(stop - start))
