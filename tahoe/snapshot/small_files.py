"""Many small files as a few streams, and their rows as a few batches: what a batch costs is not paid for each handful of rows.

file file file file … ─ as long as they are small ─► one stream ─ rows of several files ─► one batch
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa

__all__ = ["evenly", "joined", "together"]

Value = TypeVar("Value")
Begin = Callable[[], Iterator[pa.RecordBatch]]

_BYTES_OF_A_STREAM = 1 << 20
_FILES_OF_A_STREAM = 64
_BYTES_OF_A_BATCH = 1 << 20
_ROWS_OF_A_BATCH = 1 << 16


def together(streams: Sequence[Begin], sizes: Sequence[int | None]) -> list[Begin]:
    """The same rows in the same order, in fewer streams: neighbours that are small are one.

    Args:
        streams: each opens one file.
        sizes: their bytes in storage; None where nobody knows.
    """
    found: list[Begin] = []
    some: list[Begin] = []
    held = 0
    for stream, size in zip(streams, sizes, strict=True):
        more = _BYTES_OF_A_STREAM if size is None else size
        if some and (held + more > _BYTES_OF_A_STREAM or len(some) == _FILES_OF_A_STREAM):
            found.append(_one(some))
            some, held = [], 0
        some.append(stream)
        held += more
    return [*found, _one(some)] if some else found


def _one(streams: list[Begin]) -> Begin:
    return streams[0] if len(streams) == 1 else partial(joined, streams)


def joined(streams: Sequence[Begin]) -> Generator[pa.RecordBatch, None, None]:
    """The rows of all streams in their order, small batches joined. What was read before an error comes before the error."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for stream in streams:
        try:
            for batch in stream():
                if waiting and (rows + batch.num_rows > _ROWS_OF_A_BATCH or size + batch.nbytes > _BYTES_OF_A_BATCH):
                    yield _joined(waiting)
                    waiting, rows, size = [], 0, 0
                waiting.append(batch)
                rows, size = rows + batch.num_rows, size + batch.nbytes
        except Exception:
            if waiting:
                yield _joined(waiting)
            raise
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def evenly(values: Sequence[Value], most: int) -> list[Value]:
    """So many of the values, evenly from the first on; all where there are no more."""
    return [values[place * len(values) // most] for place in range(most)] if len(values) > most else list(values)
