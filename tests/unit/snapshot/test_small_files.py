"""Many small files as a few streams: the same rows in the same order, and errors where they were."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from tahoe.snapshot.file_row_groups import evenly
from tahoe.snapshot.small_files import joined, together


def stream(*rows: list[int], error: bool = False) -> Iterator[pa.RecordBatch]:
    for some in rows:
        yield pa.record_batch({"a": pa.array(some, pa.int64())})
    if error:
        raise OSError("gone")


def begin(*rows: list[int], error: bool = False) -> partial[Iterator[pa.RecordBatch]]:
    return partial(stream, *rows, error=error)


def test_small_neighbours_are_one_stream_and_large_files_stay_alone() -> None:
    streams = [begin([i]) for i in range(6)]
    found = together(streams, [10, 10, 2_000_000, 10, None, 10])
    assert [[batch["a"].to_pylist() for batch in one()] for one in found] == [[[0, 1]], [[2]], [[3]], [[4]], [[5]]]
    assert len(together([begin([i]) for i in range(1000)], [1] * 1000)) == 16
    assert together([], []) == []


def test_rows_keep_their_order_in_fewer_batches() -> None:
    (batch,) = joined([begin([1], [2, 3]), begin(), begin([4])])
    assert batch["a"].to_pylist() == [1, 2, 3, 4]
    large = list(range(60_000))
    assert [batch.num_rows for batch in joined([begin(large), begin(large), begin([1])])] == [60_000, 60_001]


def test_rows_before_an_error_come_before_it() -> None:
    batches = joined([begin([1]), begin([2], error=True), begin([3])])
    assert next(batches)["a"].to_pylist() == [1, 2]
    with pytest.raises(OSError, match="gone"):
        next(batches)


def test_some_of_many_are_taken_evenly() -> None:
    assert evenly(range(10), 3) == [0, 3, 6]
    assert evenly([1, 2], 3) == [1, 2]
