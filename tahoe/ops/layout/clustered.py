"""The rows of files, laid out anew by several columns: read once for a sample of these columns, and once to be written.

files ─ the columns, every n-th row ─► `Placement` ─► each row's cell ─► rows in cells, on disk beyond a bound of bytes ─► a file a cell
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.exceptions import StorageFailure
from tahoe.lazy import pc
from tahoe.ops.layout.curves import Placement, comparable, placement
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.rewrite import written_anew
from tahoe.ops.write.spill import Spill
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path
from tahoe.snapshot.scan import Scan, ScannedVersion

__all__ = ["ROWS_OF_A_SAMPLE", "clustered", "key_columns", "placement_of"]

ROWS_OF_A_SAMPLE = 200_000
"""About so many rows are looked at, or `ROWS_OF_A_CELL` a cell if that is more."""
ROWS_OF_A_CELL = 500
MOST_BYTES_IN_MEMORY = 128 * 1024 * 1024
"""Of rows that wait for their cell to be written."""

_BYTES_OF_A_ROW = 32  # where a file does not tell its rows


def clustered(
    version: ScannedVersion,
    adds: Sequence[AddFile],
    paths: Sequence[Path],
    cells: int,
    curve: str,
    clock: Clock,
    threads: int = 1,
) -> list[AddFile]:
    """Write the living rows of files of one partition as so many new files, or a few less, laid out by these columns.

    Args:
        paths: names of columns, from the top down.
        curve: one of `tahoe.ops.layout.curves.CURVES`.
        threads: so many files are written side by side.

    Returns:
        The actions that add the files; nothing is committed.

    Raises:
        StorageFailure: from the store; what was written is deleted as far as storage lets us.
    """
    where = placement_of(version, adds, paths, cells, curve)
    names: list[str] = []
    try:
        with Spill(MOST_BYTES_IN_MEMORY) as spill:
            with closing(Scan(version).read_to_move(adds)) as batches:
                for batch in batches:
                    if batch.num_rows:
                        spill.add(batch, where.cells(key_columns(batch, paths)))
            found, values = spill.groups, adds[0].partition_values
            names = [new_name(version.config, clock, values, number) for number in range(len(found))]
            with ThreadPoolExecutor(max(1, threads), thread_name_prefix="tahoe-cluster") as pool:
                write = lambda cell, name: written_anew(version, spill.take(cell), clock, name, values)  # noqa: E731
                return [new for new in pool.map(write, found, names) if new is not None]
    except BaseException:
        for name in names:
            with suppress(StorageFailure):
                version.store.delete(name)
        raise


def placement_of(version: ScannedVersion, adds: Sequence[AddFile], paths: Sequence[Path], cells: int, curve: str) -> Placement:
    """How the rows of these files are laid out: from every n-th row of them, reading only the columns named."""
    rows = sum(add.num_records or add.size // _BYTES_OF_A_ROW for add in adds)
    step = max(1, rows // max(ROWS_OF_A_SAMPLE, ROWS_OF_A_CELL * cells))
    columns = tuple(dict.fromkeys(version.schema.field(path[0]).name for path in paths))
    sampled = list(_sampled(lambda: Scan(version, None, columns).read_to_move(adds), paths, step))
    if not sampled:
        return placement([pa.nulls(0, pa.int64()) for _ in paths], 1, curve)
    return placement([pa.concat_arrays([part[i] for part in sampled]) for i in range(len(paths))], cells, curve)


def key_columns(rows: pa.RecordBatch, paths: Sequence[Path]) -> list[pa.Array]:
    """The columns that rows are laid out by, as they are compared."""
    return [comparable(_leaf(rows, path)) for path in paths]


def _sampled(read: Callable[[], Iterator[pa.RecordBatch]], paths: Sequence[Path], step: int) -> Iterator[list[pa.Array]]:
    ahead = 0  # so many rows of the next batch are passed over
    for batch in read():
        places = pa.arange(ahead, max(ahead, batch.num_rows), step)
        ahead = ahead + len(places) * step - batch.num_rows
        if len(places):
            yield [values.take(places) for values in key_columns(batch, paths)]


def _leaf(rows: pa.RecordBatch, path: Path) -> pa.Array:
    values = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    return values
