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
from tahoe.protocol.clustering import PROVIDER, cube_of

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


def plan_cubes(adds: Iterable[AddFile], rules: CubeRules) -> CubePlan:
    """Plan the OPTIMIZE of a clustered table from its live files."""
    live = list(adds)
    ours = [add for add in live if _is_ours(add, rules)]
    small = _without_large_cubes(ours, rules)
    other_files = [add for add in live if not _is_ours(add, rules)] if rules.is_full else []
    chosen = [*small, *other_files] if other_files else _unless_one_cube(small, rules)
    cubes_by_path = {
        add.path: cube for add in live if (cube := cube_of(add)) and (rules.is_full or cube.columns == rules.columns)
    }
    return CubePlan(
        tuple(_packed(chosen, rules)),
        _counted(add for add in live if add.path in cubes_by_path),
        _counted(add for add in live if add.path not in cubes_by_path),
        len({cube.id for cube in cubes_by_path.values()}),
    )


def _is_ours(add: AddFile, rules: CubeRules) -> bool:
    """Whether a file is new, or clustered by the current columns and by an implementation whose files may be clustered again."""
    cube = cube_of(add)
    return add.clustering_provider in (None, PROVIDER) and (cube is None or cube.columns == rules.columns)


def _id(add: AddFile, rules: CubeRules) -> str | None:
    """Return the id of the cube to which a file belongs; None for a new file, or if many of its rows are deleted."""
    cube = cube_of(add)
    return None if cube is None or has_many_dead_rows(add, rules.dead_rows) else cube.id


def _without_large_cubes(adds: Sequence[AddFile], rules: CubeRules) -> list[AddFile]:
    sizes: defaultdict[str | None, int] = defaultdict(int)
    for add in adds:
        sizes[_id(add, rules)] += _live_bytes(add)
    return [add for add in adds if (cube_id := _id(add, rules)) is None or sizes[cube_id] < rules.least]


def _unless_one_cube(adds: Sequence[AddFile], rules: CubeRules) -> list[AddFile]:
    ids = {_id(add, rules) for add in adds}
    return [] if len(ids) == 1 and None not in ids else list(adds)


def _live_bytes(add: AddFile) -> int:
    vector, rows = add.deletion_vector, add.num_records
    return add.size if vector is None or not rows else add.size * (rows - vector.cardinality) // rows


def _packed(adds: Sequence[AddFile], rules: CubeRules) -> list[Bin]:
    """Pack the files into bins, new files first, then cube by cube; the size of a bin is limited by that of a cube."""
    most = max(rules.least, rules.target)
    ordered = sorted(adds, key=lambda file: (_id(file, rules) or "", file.modification_time, file.path))
    return [Bin(tuple(files)) for files in packed(ordered, lambda file: file.size, most)]


def _counted(adds: Iterable[AddFile]) -> tuple[int, int]:
    sizes = [add.size for add in adds]
    return len(sizes), sum(sizes)
