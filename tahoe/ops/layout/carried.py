"""Rows that others deleted while OPTIMIZE wrote their files anew: where they are in the new files, so that nothing is written again.

    old files ─ living rows in the order of the files, without those that were dead ─► the new file of a bin
                                            └── each row's cell, as it was placed ────► the new files of a clustered one

So a row that died meanwhile has a known place in a new file, which is committed with a deletion vector.
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

__all__ = ["Written", "carried"]


_MOST_DEAD = 0.5
"""Of the rows of a bin; where more are dead, it is better done anew."""
_MOST_BYTES_PLACED_AGAIN = 4 * 1024**3
"""Of a clustered bin: this process places its rows again by itself, while Spark's executors would do it anew."""


@dataclass(frozen=True, slots=True)
class Written:
    """A bin, and the files that were written in its place; none where it had no living row.

    Args:
        bin: as it was written: with the deletion vectors that its files had then.
        has_known_places: whether rows stand in the new file in the order of the files of the bin; or, of a clustered bin, in the files of
            their cells (`tahoe.ops.layout.clustered.placement_of`), in order, and in each in that order. Only then they are found again.
        removed: its files as they are in the version that is changed; None for those of `bin`.
        dead: by position among `added`, the rows of new files that others have deleted in the old ones meanwhile.
    """

    bin: Bin
    added: tuple[AddFile, ...]
    has_known_places: bool = False
    removed: tuple[AddFile, ...] | None = None
    dead: Mapping[int, BitMap64] = field(default_factory=dict)

    @property
    def replaced(self) -> tuple[AddFile, ...]:
        """The files of the version that is changed in whose place the new ones come."""
        return self.bin.adds if self.removed is None else self.removed


def carried(one: Written, snapshot: Snapshot, plan: OptimizePlan, live: Mapping[str, AddFile], fresh: Snapshot) -> Written | None:
    """What was written for a bin, for a newer version.

    Args:
        one: written from files of `snapshot`.
        live: by path, the files that the newer version has. Rows of a file that is gone are dead or in other files, which is the same here.

    Returns:
        None where that cannot be said (rows came back or have no known places, or the table uses no deletion vectors), or is not worth
        it: most of what was written is dead, or a clustered bin is large.

    Raises:
        StorageFailure: from the store; vectors are read, and the columns of a clustered bin.
    """
    now = tuple(live[add.path] for add in one.bin.adds if add.path in live)
    if [add.key for add in now] == [add.key for add in one.bin.adds]:
        return replace(one, removed=None, dead={})
    if not now or not one.has_known_places or not uses_vectors(fresh.config):
        return None
    if plan.clusters and one.bin.size > _MOST_BYTES_PLACED_AGAIN:
        return None
    numbers = _numbers_of_dead_rows(fresh, one, live)
    if numbers is None:
        return None
    dead = _by_cell(snapshot, one, plan, numbers) if plan.clusters else {0: numbers} if one.added else {}
    return None if dead is None else replace(one, removed=now, dead={place: rows for place, rows in dead.items() if rows})


def _numbers_of_dead_rows(fresh: Snapshot, one: Written, live: Mapping[str, AddFile]) -> BitMap64 | None:
    """Of the rows that were written anew, counted in the order in which they were read, those that are dead now."""
    from pyroaring import BitMap64

    vectors, found, first = VectorReader(fresh.store), BitMap64(), 0
    for before in one.bin.adds:
        now, old, rows = live.get(before.path), _dead(vectors, before.deletion_vector), physical_rows(fresh.store, before)
        if now is None:
            found.add_range(first, first + rows - len(old))
        elif now.key != before.key:
            new = _dead(vectors, now.deletion_vector)
            if not old <= new:
                return None
            found.update(first + position - (old.rank(position) if old else 0) for position in new - old)
        first += rows - len(old)
    # Every row that was read is in a new file, else places are not what they seem.
    written = sum(physical_rows(fresh.store, add) for add in one.added)
    return found if first == written and len(found) <= _MOST_DEAD * written else None


def _dead(vectors: VectorReader, descriptor: DeletionVectorDescriptor | None) -> BitMap64:
    from pyroaring import BitMap64

    return BitMap64() if descriptor is None else vectors.bitmap(descriptor)


def _by_cell(snapshot: Snapshot, one: Written, plan: OptimizePlan, numbers: BitMap64) -> dict[int, BitMap64] | None:
    """Where rows of these numbers are in the new files of a clustered bin: its rows are placed again, by their columns alone.

    None where the files are not what this placement gives.
    """
    from pyroaring import BitMap64

    rows_of: Counter[int] = Counter()
    dead: dict[int, BitMap64] = {}
    for cells, first in _cells(snapshot, one, plan):
        if numbers.range_cardinality(first, first + len(cells)):
            for number, cell in enumerate(cells, first):
                if number in numbers:
                    dead.setdefault(cell, BitMap64()).add(rows_of[cell])
                rows_of[cell] += 1
        else:
            rows_of.update(cells)
    filled = sorted(rows_of)
    if [rows_of[cell] for cell in filled] != [physical_rows(snapshot.store, add) for add in one.added]:
        return None
    return {filled.index(cell): rows for cell, rows in dead.items()}


def _cells(snapshot: Snapshot, one: Written, plan: OptimizePlan) -> Iterator[tuple[list[int], int]]:
    """The cells of the rows, batch by batch, and the number of the first row of each batch."""
    adds, first = one.bin.adds, 0
    where = placement_of(snapshot, adds, plan.paths, plan.files_of(one.bin), plan.request.curve)
    columns = tuple(dict.fromkeys(snapshot.schema.field(path[0]).name for path in plan.paths))
    with closing(Scan(snapshot, None, columns).read_to_move(adds)) as batches:
        for batch in batches:
            if batch.num_rows:
                yield where.cells(key_columns(batch, plan.paths)).to_pylist(), first
                first += batch.num_rows
