"""Select the files of a clustered table that OPTIMIZE clusters, and group them into bins, as delta-spark does. Pure.

    live files ─ clustered by other columns, or by another implementation: unchanged ─► the rest ─ of large cubes: unchanged ─► bins

A *cube* is the set of files that were clustered together (`tahoe.protocol.clustering.Cube`). New files and cubes below the minimum size are
clustered together; a large cube stays unchanged, so that the work of each OPTIMIZE is proportional to the new data. A file with many deleted
rows counts as new. If only one cube is left, there is nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tahoe.base.packing import packed
from tahoe.ops.layout.bins import GIGABYTE, Bin, has_many_dead_rows
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import PROVIDER, Cube, cube_of

LEAST_BYTES = 100 * GIGABYTE
TARGET_BYTES = LEAST_BYTES * 3 // 2


@dataclass(frozen=True, slots=True)
class CubeRules:
    """The rules that select files and limit the size of cubes.

    Args:
        columns: the clustering columns of the table, in display form.
        least: a cube with this many bytes of live rows, or more, stays unchanged.
        target: the greatest size of a new cube in bytes; a single larger file still forms a cube.
        dead_rows: a file with a larger ratio of deleted rows counts as new.
        is_full: files that were clustered by other columns, or by another implementation, are clustered again too.
    """

    columns: tuple[str, ...]
    least: int = LEAST_BYTES
    target: int = TARGET_BYTES
    dead_rows: float = 0.05
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class CubePlan:
    """The new cubes, and counts of the existing files and cubes.

    Args:
        bins: the bins, each of which becomes a cube.
        cube_files: the number and the bytes of live files in cubes of these columns (with ``FULL``, of any columns).
        other_files: the number and the bytes of all other live files.
        cubes: the number of existing cubes.
    """

    bins: tuple[Bin, ...]
    cube_files: tuple[int, int]
    other_files: tuple[int, int]
    cubes: int


@dataclass(frozen=True, slots=True)
class _File:
    """A live file and its place in the plan.

    Args:
        id: the id of its cube; None for a new file, or if many of its rows are deleted.
        is_ours: whether it is new, or clustered by the current columns and by an implementation whose files may be clustered again.
        cube: the cube that the report counts it in; None for a file outside of cubes of these columns (with ``FULL``, of any columns).
    """

    add: AddFile
    id: str | None
    is_ours: bool
    cube: Cube | None

    @classmethod
    def of(cls, add: AddFile, rules: CubeRules) -> _File:
        cube = cube_of(add)
        is_ours = add.clustering_provider in (None, PROVIDER) and (cube is None or cube.columns == rules.columns)
        is_new = cube is None or has_many_dead_rows(add, rules.dead_rows)
        counts = cube is not None and (rules.is_full or cube.columns == rules.columns)
        return cls(add, None if cube is None or is_new else cube.id, is_ours, cube if counts else None)


def plan_cubes(adds: Iterable[AddFile], rules: CubeRules) -> CubePlan:
    """Plan the OPTIMIZE of a clustered table from its live files."""
    live = [_File.of(add, rules) for add in adds]
    small = _without_large_cubes([file for file in live if file.is_ours], rules.least)
    other_files = [file for file in live if not file.is_ours] if rules.is_full else []
    chosen = [*small, *other_files] if other_files else _unless_one_cube(small)
    return CubePlan(
        tuple(_packed(chosen, max(rules.least, rules.target))),
        _counted(file.add for file in live if file.cube is not None),
        _counted(file.add for file in live if file.cube is None),
        len({file.cube.id for file in live if file.cube is not None}),
    )


def _without_large_cubes(files: Sequence[_File], least: int) -> list[_File]:
    sizes: defaultdict[str | None, int] = defaultdict(int)
    for file in files:
        sizes[file.id] += _live_bytes(file.add)
    return [file for file in files if file.id is None or sizes[file.id] < least]


def _unless_one_cube(files: Sequence[_File]) -> list[_File]:
    ids = {file.id for file in files}
    return [] if len(ids) == 1 and None not in ids else list(files)


def _live_bytes(add: AddFile) -> int:
    vector, rows = add.deletion_vector, add.num_records
    return add.size if vector is None or not rows else add.size * (rows - vector.cardinality) // rows


def _packed(files: Sequence[_File], most: int) -> list[Bin]:
    """Pack the files into bins, new files first, then cube by cube; the size of a bin is limited by that of a cube."""
    ordered = sorted(files, key=lambda file: (file.id or "", file.add.modification_time, file.add.path))
    return [Bin(tuple(adds)) for adds in packed([file.add for file in ordered], lambda add: add.size, most)]


def _counted(adds: Iterable[AddFile]) -> tuple[int, int]:
    sizes = [add.size for add in adds]
    return len(sizes), sum(sizes)
