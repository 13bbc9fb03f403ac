"""Which files of a clustered table are clustered anew, and which of them together, as the reference has it: pure.

    live files ─ clustered by other columns, or by another implementation: left alone ─► the rest ─ of large cubes: left alone ─► bins

A *cube* is what was clustered at one time (`tahoe.protocol.clustering.Cube`). New files, and cubes that are not large yet, are clustered
together; a large cube stays as it is, so that the work of each OPTIMIZE goes with what is new. A file of whose rows many are dead counts as
a new one. Where one cube alone is left, there is nothing to do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tahoe.ops.layout.bins import GIGABYTE, Bin, has_many_dead_rows
from tahoe.protocol.actions import AddFile
from tahoe.protocol.clustering import PROVIDER, cube_of

__all__ = ["LEAST_BYTES", "TARGET_BYTES", "CubePlan", "CubeRules", "plan_cubes"]

LEAST_BYTES = 100 * GIGABYTE
TARGET_BYTES = LEAST_BYTES * 3 // 2


@dataclass(frozen=True, slots=True)
class CubeRules:
    """What makes a cube large.

    Args:
        columns: by which the table is clustered, as they are shown.
        least: a cube of so many bytes of living rows stays as it is.
        target: a new cube holds no more bytes, unless one file alone does.
        dead_rows: a file of whose rows a larger part than this is dead counts as new.
        is_full: files that were clustered by other columns, or by others, are clustered anew too.
    """

    columns: tuple[str, ...]
    least: int = LEAST_BYTES
    target: int = TARGET_BYTES
    dead_rows: float = 0.05
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class CubePlan:
    """The cubes to come, and what there was.

    Args:
        bins: each becomes a cube.
        cube_files: live files of cubes of these columns (with ``FULL``, of any), as number and bytes.
        other_files: the others, likewise.
        cubes: so many cubes there were.
    """

    bins: tuple[Bin, ...]
    cube_files: tuple[int, int]
    other_files: tuple[int, int]
    cubes: int


def plan_cubes(adds: Iterable[AddFile], rules: CubeRules) -> CubePlan:
    """What OPTIMIZE makes of the live files of a clustered table."""
    live = list(adds)
    ours = [add for add in live if _is_ours(add, rules)]
    small = _without_large_cubes(ours, rules)
    others = [add for add in live if not _is_ours(add, rules)] if rules.is_full else []
    chosen = [*small, *others] if others else _unless_one_cube(small, rules)
    known = {add.path: cube for add in live if (cube := cube_of(add)) and (rules.is_full or cube.columns == rules.columns)}
    return CubePlan(
        tuple(_packed(chosen, rules)),
        _counted(add for add in live if add.path in known),
        _counted(add for add in live if add.path not in known),
        len({cube.id for cube in known.values()}),
    )


def _is_ours(add: AddFile, rules: CubeRules) -> bool:
    """Whether a file is new, or clustered by today's columns and by an implementation whose files may be clustered anew."""
    cube = cube_of(add)
    return add.clustering_provider in (None, PROVIDER) and (cube is None or cube.columns == rules.columns)


def _id(add: AddFile, rules: CubeRules) -> str | None:
    """The cube that a file is still part of."""
    cube = cube_of(add)
    return None if cube is None or has_many_dead_rows(add, rules.dead_rows) else cube.id


def _without_large_cubes(adds: Sequence[AddFile], rules: CubeRules) -> list[AddFile]:
    sizes: defaultdict[str | None, int] = defaultdict(int)
    for add in adds:
        sizes[_id(add, rules)] += _living_bytes(add)
    return [add for add in adds if (found := _id(add, rules)) is None or sizes[found] < rules.least]


def _unless_one_cube(adds: Sequence[AddFile], rules: CubeRules) -> list[AddFile]:
    ids = {_id(add, rules) for add in adds}
    return [] if len(ids) == 1 and None not in ids else list(adds)


def _living_bytes(add: AddFile) -> int:
    vector, rows = add.deletion_vector, add.num_records
    return add.size if vector is None or not rows else add.size * (rows - vector.cardinality) // rows


def _packed(adds: Sequence[AddFile], rules: CubeRules) -> list[Bin]:
    """New files first, then cube by cube; a bin is as large as a cube may be."""
    most = max(rules.least, rules.target)
    packed: list[list[AddFile]] = []
    size = 0
    for add in sorted(adds, key=lambda one: (_id(one, rules) or "", one.modification_time, one.path)):
        if not packed or size + add.size > most:
            packed.append([])
            size = 0
        packed[-1].append(add)
        size += add.size
    return [Bin(tuple(files)) for files in packed]


def _counted(adds: Iterable[AddFile]) -> tuple[int, int]:
    sizes = [add.size for add in adds]
    return len(sizes), sum(sizes)
