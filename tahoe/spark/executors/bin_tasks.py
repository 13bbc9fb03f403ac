"""The tasks of OPTIMIZE: a bin rewritten by one task, or read by some tasks and written by others (`tahoe.spark.write.spread`).

Tasks exchange plain values, which Spark's shuffle transports: a number, Arrow bytes, and an error as bytes.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeError
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.clustered import MOST_BYTES_IN_MEMORY, part_by_cells
from tahoe.ops.layout.curves import Placement
from tahoe.ops.layout.optimize import RewrittenBin, rewritten_here
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.ops.write.file_stream import NewFile, new_name
from tahoe.ops.write.rewrite import rewritten_rows
from tahoe.ops.write.spill import Spill
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path
from tahoe.snapshot.scan import BareVersion, Scan

Rows = tuple[int, tuple[bytes, bytes]]
"""The number of a cell or of a part, and rows of it, or the pickled error of the task that read it; the other one is empty."""

_NO_BIN = Bin(())


def rewritten_bin(version: BareVersion, plan: OptimizePlan, source: Bin) -> RewrittenBin:
    """Return the result for a bin, without the bin itself, which may have many files and is known to the caller."""
    return replace(next(rewritten_here(SYSTEM_CLOCK, version, [source], plan)), bin=_NO_BIN)


def rows_of_parts(version: BareVersion, parts: Iterable[bytes]) -> Iterator[Rows]:
    """Yield the rows of files, in their order.

    Args:
        parts: pickled pairs of a part's number and its files.
    """
    for part in parts:
        number, adds = pickle.loads(part)
        try:
            with closing(Scan(version).read_to_move(adds, ahead=False)) as rows:
                for batch in rows:
                    yield number, (_bytes_of(batch), b"")
        except TahoeError as error:
            yield number, (b"", pickle.dumps(error))


def rows_of_cells(version: BareVersion, paths: Sequence[Path], where: Placement, parts: Iterable[bytes]) -> Iterator[Rows]:
    """Yield the rows of files, by cells.

    Args:
        parts: pickled lists of files.
    """
    for part in parts:
        try:
            with Spill(MOST_BYTES_IN_MEMORY) as spill:
                part_by_cells(version, pickle.loads(part), paths, where, spill)
                for cell in spill.groups:
                    for batch in spill.take(cell):
                        yield cell, (_bytes_of(batch), b"")
        except TahoeError as error:
            yield 0, (b"", pickle.dumps(error))


def files_of_rows(
    version: BareVersion, partition_values: dict[str, str | None], in_parts: bool, rows: Iterable[Rows]
) -> Iterator[bytes]:
    """Write the rows of a cell, or of all parts, to a file; yield the pickled action that adds it, or the error.

    Args:
        in_parts: whether rows are written in the order of parts, whatever order they arrive in.
    """
    name = new_name(version.config, SYSTEM_CLOCK, partition_values)
    batches = _in_parts(rows) if in_parts else (batch for _, batch in _batches(rows))
    answer: AddFile | TahoeError | None
    try:
        with closing(batches):
            answer = rewritten_rows(version, batches, SYSTEM_CLOCK, NewFile(name, partition_values))
    except TahoeError as error:
        answer = error
    if answer is not None:
        yield pickle.dumps(answer)


def _batches(rows: Iterable[Rows]) -> Iterator[tuple[int, pa.RecordBatch]]:
    for number, (content, error) in rows:
        if error:
            raise pickle.loads(error)
        with pa.ipc.open_stream(content) as reader:
            for batch in reader:
                yield number, batch


def _in_parts(rows: Iterable[Rows]) -> Generator[pa.RecordBatch, None, None]:
    """Yield the rows of all parts, in the order of the parts; rows that do not fit into memory are spilled to disk."""
    with Spill(MOST_BYTES_IN_MEMORY) as spill:
        for number, batch in _batches(rows):
            spill.add_to(number, batch)
        for number in spill.groups:
            yield from spill.take(number)


def _bytes_of(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
