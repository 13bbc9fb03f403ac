"""The columns that a filter does not need, read only as far as rows match.

row group ─ columns of the filter, batch by batch ─► positions of matching rows ─┬─ none: nothing else of the row group is decoded
                                                                                 └─ other columns, up to the last match ─► these rows
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.tree.predicate import Predicate
from tahoe.schema.arrow_values import scalar
from tahoe.snapshot.file_row_groups import plain


def positions_of_matches(predicate: Predicate, rows: pa.RecordBatch, alive: pa.Array | None) -> pa.Array:
    """Return the positions of the rows of a batch for which the predicate is true, ascending.

    Args:
        rows: at least the columns of the predicate.
        alive: the positions of the rows that are not deleted, ascending; None for all.
    """
    if alive is None:
        return pc.indices_nonzero(evaluate(predicate, pa.Table.from_batches([rows])))
    mask = evaluate(predicate, pa.Table.from_batches([rows.take(alive)]))
    return alive.take(pc.indices_nonzero(mask))


def taken(rows: pa.RecordBatch, positions: pa.Array) -> pa.RecordBatch:
    """Return the rows at distinct ascending positions, without a copy if these are all rows."""
    return rows if len(positions) == rows.num_rows else pc.take(rows, positions, boundscheck=False)


class OtherColumns:
    """The other columns of one row group.

    Args:
        begin: opens the batches of the row group; called when the first row is needed, with the number of rows that are needed from the
            beginning of the row group, or None if it is unknown.
    """

    def __init__(self, begin: Callable[[int | None], Iterator[pa.RecordBatch]]) -> None:
        self._begin = begin
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._batch: pa.RecordBatch | None = None
        self._end = 0
        self.bytes_read = 0

    def rows(self, positions: pa.Array, *, are_last: bool) -> pa.RecordBatch:
        """Return the rows at these positions in the row group, which are ascending and greater than those of the calls before.

        Args:
            are_last: no call follows.

        Raises `StopIteration` if the row group has fewer rows: its column chunks contradict each other.
        """
        self._batches = self._batches or self._begin(positions[-1].as_py() + 1 if are_last else None)
        parts, done = list[pa.RecordBatch](), 0
        while done < len(positions):
            batch = self._batch_with(self._batches, positions[done].as_py())
            rest = positions.slice(done)
            count = pc.sum(pc.less(rest, scalar(self._end, rest.type))).as_py()
            begin = scalar(self._end - batch.num_rows, rest.type)
            parts.append(plain(taken(batch, pc.subtract(rest.slice(0, count), begin))))
            done += count
        return parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _batch_with(self, batches: Iterator[pa.RecordBatch], position: int) -> pa.RecordBatch:
        while self._batch is None or self._end <= position:
            self._batch = None  # freed before the next one is read
            self._batch = next(batches)
            self._end += self._batch.num_rows
            self.bytes_read += self._batch.nbytes
        return self._batch
