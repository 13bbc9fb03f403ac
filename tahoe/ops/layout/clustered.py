"""Cluster the rows of files by several columns: read a sample of these columns, and then all rows once.

key columns of every n-th row ─► `Placement` ─► cell of each row ─► rows by cell, spilled to disk beyond a limit ─► one file per cell
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pyarrow as pa

from tahoe.base.clock import Clock
from tahoe.base.exceptions import StorageFailure
from tahoe.base.lazy import pc
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.curves import Placement, comparable, placement
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.ops.write.file_stream import NewFile, new_name
from tahoe.ops.write.rewrite import as_stored, rewritten_rows
from tahoe.ops.write.spill import Spill, sorted_by_group
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import Path
from tahoe.snapshot.file_row_groups import evenly
from tahoe.snapshot.scan import Scan, ScannedVersion

ROWS_OF_A_SAMPLE = 50_000
"""The approximate number of rows in the sample, or `ROWS_OF_A_CELL` per cell if that is more."""
ROWS_OF_A_CELL = 500
_BYTES_OF_A_GROUP = 4 * 1024 * 1024
_LEAST_GROUPS = 32
_GROUPS_OF_A_PART = 8
"""The number of row groups to sample for each part into which a column is split; at least `_LEAST_GROUPS` in total."""
MOST_BYTES_IN_MEMORY = 128 * 1024 * 1024
"""The memory limit for rows that wait until their cell is written."""
_CELL = "cell"
"""The last column of a batch, accessed by position: a column of the table may have the same name."""


def clustered(version: ScannedVersion, files: Bin, plan: OptimizePlan, clock: Clock, threads: int = 1) -> list[AddFile]:
    """Write the live rows of a bin to new files, clustered by the columns of the plan.

    Args:
        threads: the number of files that are written concurrently.

    Returns:
        The actions that add the files; nothing is committed.

    Raises:
        StorageFailure: a file cannot be read or written; new files are deleted, as far as the store allows it.
    """
    adds, paths = files.adds, plan.paths
    where = placement_of(version, adds, paths, plan.files_of(files), plan.request.curve)
    names: list[str] = []
    try:
        with Spill(MOST_BYTES_IN_MEMORY) as spill:
            stored = as_stored(version, adds)
            part_by_cells(stored, adds, paths, where, spill)
            groups, values = spill.groups, adds[0].partition_values
            names = [new_name(version.config, clock, values, number) for number in range(len(groups))]
            with ThreadPoolExecutor(max(1, threads), thread_name_prefix="tahoe-cluster") as pool:
                write = lambda cell, name: rewritten_rows(version, spill.take(cell), clock, NewFile(name, values), stored)  # noqa: E731
                return [new for new in pool.map(write, groups, names) if new is not None]
    except BaseException:
        for name in names:
            with suppress(StorageFailure):
                version.store.delete(name)
        raise


def part_by_cells(
    version: ScannedVersion, adds: Sequence[AddFile], paths: Sequence[Path], where: Placement, spill: Spill
) -> None:
    """Put the live rows of files into the groups of their cells. The threads that read the rows compute the cells."""

    def placed(rows: pa.RecordBatch) -> pa.RecordBatch:
        rows, cells = sorted_by_group(rows, where.cells(key_columns(rows, paths)))
        return pa.RecordBatch.from_arrays([*rows.columns, cells], schema=rows.schema.append(pa.field(_CELL, cells.type)))

    with closing(Scan(version).read_to_move(adds, then=placed)) as batches:
        for batch in batches:
            last = batch.num_columns - 1
            spill.add(batch.select(range(last)), batch.column(last))


def placement_of(version: ScannedVersion, adds: Sequence[AddFile], paths: Sequence[Path], cells: int, curve: str) -> Placement:
    """Compute the placement of the rows of these files from a sample, reading only the key columns, and only some of many files.

    Args:
        paths: the paths of the key columns.
        cells: the number of new files; a few less if values are in many rows.
        curve: a key of `tahoe.ops.layout.curves.CURVES`.

    The sample consists of row groups, evenly spread over the files: enough to determine the bounds of the parts of each column.
    """
    parts = math.ceil(cells ** (1 / max(1, len(paths))))
    sample_size = max(_LEAST_GROUPS, _GROUPS_OF_A_PART * parts)
    some = evenly(adds, sample_size)
    columns = tuple(dict.fromkeys(version.schema.field(path[0]).name for path in paths))
    groups, rows = math.ceil(sample_size / len(some)), max(ROWS_OF_A_SAMPLE, ROWS_OF_A_CELL * cells)
    step = max(1, sum(_rows_of(add, groups) for add in some) // rows)
    with closing(Scan(version, None, columns).read_to_move(some, most_row_groups=groups)) as batches:
        sample = _sampled((key_columns(batch, paths) for batch in batches), rows, step)
    if sample is None:
        return placement([pa.nulls(0, pa.int64()) for _ in paths], 1, curve)
    return placement(sample, cells, curve)


def key_columns(rows: pa.RecordBatch, paths: Sequence[Path]) -> list[pa.Array]:
    """Return the key columns in a form that Arrow can compare."""
    return [comparable(_leaf(rows, path)) for path in paths]


def _rows_of(add: AddFile, groups: int) -> int:
    """Estimate the number of rows in this many row groups of a file."""
    rows = add.num_records or 0
    return min(rows, rows * groups * _BYTES_OF_A_GROUP // max(1, add.size))


def _sampled(batches: Iterable[list[pa.Array]], sample_size: int, step: int) -> list[pa.Array] | None:
    """Return every n-th row, between one and two times the wanted number of rows; None if there is no row.

    Args:
        step: the initial n, which doubles whenever there are too many rows.
    """
    ahead = size = 0  # rows of the next batch to skip
    sample: list[list[pa.Array]] = []
    for columns in batches:
        rows = len(columns[0])
        places = pa.arange(ahead, max(ahead, rows), step)
        ahead += len(places) * step - rows
        if not len(places):
            continue
        sample.append([values.take(places) for values in columns])
        size += len(places)
        while size > 2 * sample_size:
            joined = [pa.concat_arrays([part[i] for part in sample]) for i in range(len(columns))]
            sample = [[values.take(pa.arange(0, size, 2)) for values in joined]]
            size, step = len(sample[0][0]), 2 * step
    return [pa.concat_arrays([part[i] for part in sample]) for i in range(len(sample[0]))] if sample else None


def _leaf(rows: pa.RecordBatch, path: Path) -> pa.Array:
    values = rows.column(path[0])
    for name in path[1:]:
        values = pc.struct_field(values, [name])
    return values
