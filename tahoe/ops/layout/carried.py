"""Find rows that other writers deleted while OPTIMIZE rewrote their files, so that the new files need not be written again.

    old files ─ live rows in the order of the files ─► the new file of a bin
                              └── cell of each row ──► the new files of a clustered bin

A row that was deleted meanwhile has a known position in a new file, which is committed with a deletion vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.clustered import key_columns, placement_of
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.ops.rows.row_changes import physical_rows, uses_vectors
from tahoe.protocol.actions import AddFile, DeletionVectorDescriptor
from tahoe.snapshot.data_reader import VectorReader
from tahoe.snapshot.scan import Scan
from tahoe.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from pyroaring import BitMap64


_MOST_DEAD = 0.5
"""The greatest ratio of deleted rows in a bin; beyond it, the bin is rewritten again."""
_MOST_BYTES_PLACED_AGAIN = 4 * 1024**3
"""The greatest size of a clustered bin: this process computes the cells of its rows alone, while Spark's executors share a rewrite."""


@dataclass(frozen=True, slots=True)
class RewrittenBin:
    """A bin, and the files that replace it; none if it had no live row.

    Args:
        bin: the bin as it was rewritten, with the deletion vectors that its files had then.
        has_known_places: whether the rows of the new file have the order of the bin's files; for a clustered bin, whether they are in the
            files of their cells (`tahoe.ops.layout.clustered.placement_of`), each in that order. Only then deleted rows can be located.
        removed: its files as they are in the version to change; None if they equal those of `bin`.
        dead: the rows of new files that other writers deleted from the old ones meanwhile, by position in `added`.
    """

    bin: Bin
    added: tuple[AddFile, ...]
    has_known_places: bool = False
    removed: tuple[AddFile, ...] | None = None
    dead: Mapping[int, BitMap64] = field(default_factory=dict)

    @property
    def replaced(self) -> tuple[AddFile, ...]:
        """The files of the version to change that the new files replace."""
        return self.bin.adds if self.removed is None else self.removed


def carried(
    written: RewrittenBin, snapshot: Snapshot, plan: OptimizePlan, live: Mapping[str, AddFile], fresh: Snapshot
) -> RewrittenBin | None:
    """Adapt a rewritten bin to a newer version.

    Args:
        written: the bin, rewritten from files of `snapshot`.
        live: the files of the newer version, by path. The rows of a missing file count as deleted: they are deleted or in other files.

    Returns:
        The bin with the rows deleted meanwhile. None if these cannot be located (rows were restored or have no known positions, or the table
        uses no deletion vectors), or if it is not worthwhile: most of the new rows are deleted, or a clustered bin is large.

    Raises:
        StorageFailure: the deletion vectors, or the columns of a clustered bin, cannot be read.
    """
    now = tuple(live[add.path] for add in written.bin.adds if add.path in live)
    if [add.key for add in now] == [add.key for add in written.bin.adds]:
        return replace(written, removed=None, dead={})
    if not now or not written.has_known_places or not uses_vectors(fresh.config):
        return None
    if plan.clusters and written.bin.size > _MOST_BYTES_PLACED_AGAIN:
        return None
    numbers = _numbers_of_dead_rows(fresh, written, live)
    if numbers is None:
        return None
    dead = _by_cell(snapshot, written, plan, numbers) if plan.clusters else {0: numbers} if written.added else {}
    return None if dead is None else replace(written, removed=now, dead={place: rows for place, rows in dead.items() if rows})


def _numbers_of_dead_rows(fresh: Snapshot, rewritten: RewrittenBin, live: Mapping[str, AddFile]) -> BitMap64 | None:
    """Return the rewritten rows that are deleted now, numbered in the order in which they were read."""
    from pyroaring import BitMap64

    vectors, numbers, first = VectorReader(fresh.store), BitMap64(), 0
    for before in rewritten.bin.adds:
        now, old, rows = live.get(before.path), _dead(vectors, before.deletion_vector), physical_rows(fresh.store, before)
        if now is None:
            numbers.add_range(first, first + rows - len(old))
        elif now.key != before.key:
            new = _dead(vectors, now.deletion_vector)
            if not old <= new:
                return None
            numbers.update(first + position - (old.rank(position) if old else 0) for position in new - old)
        first += rows - len(old)
    # Every row that was read must be in a new file, else the positions are not known.
    written = sum(physical_rows(fresh.store, add) for add in rewritten.added)
    return numbers if first == written and len(numbers) <= _MOST_DEAD * written else None


def _dead(vectors: VectorReader, descriptor: DeletionVectorDescriptor | None) -> BitMap64:
    from pyroaring import BitMap64

    return BitMap64() if descriptor is None else vectors.bitmap(descriptor)


def _by_cell(snapshot: Snapshot, written: RewrittenBin, plan: OptimizePlan, numbers: BitMap64) -> dict[int, BitMap64] | None:
    """Locate rows with these numbers in the new files of a clustered bin, by computing the cells of its rows again from their key columns.

    Returns None if the files do not match the computed cells.
    """
    from pyroaring import BitMap64

    rows_of: Counter[int] = Counter()
    dead: dict[int, BitMap64] = {}
    for cells, first in _cells(snapshot, written, plan):
        if numbers.range_cardinality(first, first + len(cells)):
            for number, cell in enumerate(cells, first):
                if number in numbers:
                    dead.setdefault(cell, BitMap64()).add(rows_of[cell])
                rows_of[cell] += 1
        else:
            rows_of.update(cells)
    filled = sorted(rows_of)
    if [rows_of[cell] for cell in filled] != [physical_rows(snapshot.store, add) for add in written.added]:
        return None
    return {filled.index(cell): rows for cell, rows in dead.items()}


def _cells(snapshot: Snapshot, written: RewrittenBin, plan: OptimizePlan) -> Iterator[tuple[list[int], int]]:
    """Yield the cells of the rows of each batch, and the number of its first row."""
    adds, first = written.bin.adds, 0
    where = placement_of(snapshot, adds, plan.paths, plan.files_of(written.bin), plan.request.curve)
    columns = tuple(dict.fromkeys(snapshot.schema.field(path[0]).name for path in plan.paths))
    with closing(Scan(snapshot, None, columns).read_to_move(adds)) as batches:
        for batch in batches:
            if batch.num_rows:
                yield where.cells(key_columns(batch, plan.paths)).to_pylist(), first
                first += batch.num_rows
