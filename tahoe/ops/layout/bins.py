"""Which files OPTIMIZE writes anew, and which of them together: pure.

    live files of the partitions meant ─ small, or with many dead rows ─► bins of one partition, of at most the target size each

As the reference has it: files smaller than the least size, or with more dead rows than the ratio allows, are packed by size, smallest first;
a bin of a single file is left alone unless the file has a deletion vector. For clustering, each partition is one bin of all its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tahoe.protocol.actions import AddFile

__all__ = ["GIGABYTE", "Bin", "Rules", "bins_of", "one_bin_a_partition", "target_for_rewrites"]

GIGABYTE = 1024**3


@dataclass(frozen=True, slots=True)
class Rules:
    """What makes a file one to be written anew.

    Args:
        target: bytes of files that are to become one file; a bin holds no more, unless one file alone does.
        least: files of fewer bytes are written anew.
        dead_rows: so are files of whose rows a larger part than this is dead.
    """

    target: int = GIGABYTE
    least: int = GIGABYTE
    dead_rows: float = 0.05


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are written anew together, in the order in which their rows will stand."""

    adds: tuple[AddFile, ...]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(add.size for add in self.adds)


def target_for_rewrites(table_size: int) -> int:
    """Bytes of a file of a table that is rewritten often: 256 MB in tables of up to 2.56 TB, from there on growing with the table, up to
    1 GB in one of 10 TB.

    Args:
        table_size: bytes of all its live files.
    """
    share = (table_size - _SMALL_TABLE) / (_LARGE_TABLE - _SMALL_TABLE)
    return _SMALLEST_TARGET + round((GIGABYTE - _SMALLEST_TARGET) * min(max(share, 0.0), 1.0))


_SMALLEST_TARGET = 256 * 1024**2
_SMALL_TABLE, _LARGE_TABLE = 2_560 * 1024**3, 10_000 * 1024**3


def bins_of(adds: Iterable[AddFile], rules: Rules) -> list[Bin]:
    """The bins of these live files, partition by partition."""
    wanted = [add for add in adds if add.size < rules.least or _has_many_dead_rows(add, rules.dead_rows)]
    packed = [files for partition in _by_partition(wanted) for files in _packed(partition, rules.target)]
    return [_bin(files) for files in packed if len(files) > 1 or files[0].deletion_vector is not None]


def one_bin_a_partition(adds: Iterable[AddFile]) -> list[Bin]:
    """A bin for each partition, of all its files: what is clustered is clustered together."""
    return [_bin(files) for files in _by_partition(adds)]


def _bin(files: Iterable[AddFile]) -> Bin:
    # Rows that came together stay together.
    return Bin(tuple(sorted(files, key=lambda add: (add.modification_time, add.path))))


def _has_many_dead_rows(add: AddFile, most: float) -> bool:
    vector = add.deletion_vector
    if vector is None:
        return False
    rows = add.num_records
    return rows is None or vector.cardinality > most * rows


def _by_partition(adds: Iterable[AddFile]) -> list[list[AddFile]]:
    found: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for add in adds:
        found.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    return list(found.values())


def _packed(adds: Sequence[AddFile], target: int) -> list[list[AddFile]]:
    packed: list[list[AddFile]] = []
    size = 0
    for add in sorted(adds, key=lambda one: (one.size, one.modification_time, one.path)):
        if not packed or size + add.size > target:
            packed.append([])
            size = 0
        packed[-1].append(add)
        size += add.size
    return packed
