"""The rows of files, laid out anew by several columns: a sample of these columns is read, and then the rows once.

the columns, every n-th row ─► `Placement` ─► each row's cell ─► rows in cells, on disk beyond a bound of bytes ─► a file a cell
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pyarrow as pa

from tahoe.clock import Clock
from tahoe.exceptions import StorageFailure
from tahoe.lazy import pc
from tahoe.ops.layout.curves import Placement, comparable, placement
from tahoe.ops.write.file_stream import new_name
from tahoe.ops.write.rewrite import as_stored, written_anew
from tahoe.ops.write.spill import Spill, sorted_by_group
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path
from tahoe.snapshot.file_row_groups import evenly
from tahoe.snapshot.scan import Scan, ScannedVersion

__all__ = ["ROWS_OF_A_SAMPLE", "clustered", "key_columns", "part_by_cells", "placement_of"]

ROWS_OF_A_SAMPLE = 50_000
"""About so many rows are looked at, or `ROWS_OF_A_CELL` a cell if that is more."""
ROWS_OF_A_CELL = 500
_BYTES_OF_A_GROUP = 4 * 1024 * 1024
_LEAST_GROUPS = 32
_GROUPS_OF_A_PART = 8
"""So many row groups are looked at for each part that a column is cut into; at least `_LEAST_GROUPS`."""
MOST_BYTES_IN_MEMORY = 128 * 1024 * 1024
"""Of rows that wait for their cell to be written."""
_CELL = "cell"
"""Behind the columns of a batch, by its place: a column of the table may have the same name."""


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
            stored = as_stored(version, adds)
            part_by_cells(stored, adds, paths, where, spill)
            found, values = spill.groups, adds[0].partition_values
            names = [new_name(version.config, clock, values, number) for number in range(len(found))]
            with ThreadPoolExecutor(max(1, threads), thread_name_prefix="tahoe-cluster") as pool:
                write = lambda cell, name: written_anew(version, spill.take(cell), clock, name, values, stored)  # noqa: E731
                return [new for new in pool.map(write, found, names) if new is not None]
    except BaseException:
        for name in names:
            with suppress(StorageFailure):
                version.store.delete(name)
        raise


def part_by_cells(
    version: ScannedVersion, adds: Sequence[AddFile], paths: Sequence[Path], where: Placement, spill: Spill
) -> None:
    """Put the living rows of files into the groups of their cells. They are placed by the threads that read them."""

    def placed(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows, cells = sorted_by_group(rows, where.cells(key_columns(rows, paths)))
        return pa.RecordBatch.from_arrays([*rows.columns, cells], schema=rows.schema.append(pa.field(_CELL, cells.type)))

    with closing(Scan(version).read_to_move(adds, then=placed)) as batches:
        for batch in batches:
            last = batch.num_columns - 1
            spill.add(batch.select(range(last)), batch.column(last))


def placement_of(version: ScannedVersion, adds: Sequence[AddFile], paths: Sequence[Path], cells: int, curve: str) -> Placement:
    """How the rows of these files are laid out: from a sample of them, reading only the columns named, and of many files only some.

    What is read is row groups of files, evenly from first to last: so many that the bounds of a column lie as close as its parts need.
    """
    parts = math.ceil(cells ** (1 / max(1, len(paths))))
    wanted = max(_LEAST_GROUPS, _GROUPS_OF_A_PART * parts)
    some = evenly(adds, wanted)
    columns = tuple(dict.fromkeys(version.schema.field(path[0]).name for path in paths))
    groups, rows = math.ceil(wanted / len(some)), max(ROWS_OF_A_SAMPLE, ROWS_OF_A_CELL * cells)
    step = max(1, sum(_rows_of(add, groups) for add in some) // rows)
    with closing(Scan(version, None, columns).read_to_move(some, most_row_groups=groups)) as batches:
        sample = _sampled((key_columns(batch, paths) for batch in batches), rows, step)
    if sample is None:
        return placement([pa.nulls(0, pa.int64()) for _ in paths], 1, curve)
    return placement(sample, cells, curve)


def key_columns(rows: pa.RecordBatch, paths: Sequence[Path]) -> list[pa.Array]:
    """The columns that rows are laid out by, as they are compared."""
    return [comparable(_leaf(rows, path)) for path in paths]


def _rows_of(add: AddFile, groups: int) -> int:
    """About so many rows so many row groups of a file have, or fewer."""
    rows = add.num_records or 0
    return min(rows, rows * groups * _BYTES_OF_A_GROUP // max(1, add.size))


def _sampled(batches: Iterable[list[pa.Array]], wanted: int, step: int) -> list[pa.Array] | None:
    """Every n-th row, about as many as are wanted or twice as many: n doubles while there are more. None where there is no row.

    Args:
        step: where n begins.
    """
    ahead = held = 0  # so many rows of the next batch are passed over
    kept: list[list[pa.Array]] = []
    for columns in batches:
        rows = len(columns[0])
        places = pa.arange(ahead, max(ahead, rows), step)
        ahead += len(places) * step - rows
        if not len(places):
            continue
        kept.append([values.take(places) for values in columns])
        held += len(places)
        while held > 2 * wanted:
            joined = [pa.concat_arrays([part[i] for part in kept]) for i in range(len(columns))]
            kept = [[values.take(pa.arange(0, held, 2)) for values in joined]]
            held, step = len(kept[0][0]), 2 * step
    return [pa.concat_arrays([part[i] for part in kept]) for i in range(len(kept[0]))] if kept else None


def _leaf(rows: pa.RecordBatch, path: Path) -> pa.Array:
    values = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    return values
