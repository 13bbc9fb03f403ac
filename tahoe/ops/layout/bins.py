"""Group the files that OPTIMIZE rewrites into bins. Pure.

    live files of the selected partitions ─ small, or with many deleted rows ─► bins of one partition, each at most of the target size

As in delta-spark, files below the minimum size, or with a larger ratio of deleted rows than allowed, are packed by size, smallest first. A
bin of a single file is left unchanged unless the file has a deletion vector. For clustering, each partition is one bin of all its files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tahoe.base.packing import packed
from tahoe.protocol.actions import AddFile

GIGABYTE = 1024**3


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that select files for rewriting.

    Args:
        target: the greatest size of a bin in bytes; a single larger file still forms a bin.
        least: files with fewer bytes are rewritten.
        dead_rows: files with a larger ratio of deleted rows are rewritten too.
    """

    target: int = GIGABYTE
    least: int = GIGABYTE
    dead_rows: float = 0.05


@dataclass(frozen=True, slots=True)
class Bin:
    """Files of one partition that are rewritten together, in the order of their rows in the new file."""

    adds: tuple[AddFile, ...]

    @property
    def size(self) -> int:
        """The total size of its files in bytes."""
        return sum(add.size for add in self.adds)


def target_for_rewrites(table_size: int) -> int:
    """Return the target file size in bytes for a table that is rewritten often: 256 MB up to a table size of 2.56 TB, then growing linearly
    to 1 GB at 10 TB.

    Args:
        table_size: the total size of the live files in bytes.
    """
    share = (table_size - _SMALL_TABLE) / (_LARGE_TABLE - _SMALL_TABLE)
    return _SMALLEST_TARGET + round((GIGABYTE - _SMALLEST_TARGET) * min(max(share, 0.0), 1.0))


_SMALLEST_TARGET = 256 * 1024**2
_SMALL_TABLE, _LARGE_TABLE = 2_560 * 1024**3, 10_000 * 1024**3


def bins_of(adds: Iterable[AddFile], rules: Rules) -> list[Bin]:
    """Return the bins of these live files, partition by partition."""
    candidates = [add for add in adds if add.size < rules.least or has_many_dead_rows(add, rules.dead_rows)]
    by_size = [sorted(files, key=lambda add: (add.size, add.modification_time, add.path)) for files in _by_partition(candidates)]
    bins = [files for partition in by_size for files in packed(partition, lambda add: add.size, rules.target)]
    return [_bin(files) for files in bins if len(files) > 1 or files[0].deletion_vector is not None]


def one_bin_a_partition(adds: Iterable[AddFile]) -> list[Bin]:
    """Return one bin for each partition with all its files, for clustering."""
    return [_bin(files) for files in _by_partition(adds)]


def _bin(files: Iterable[AddFile]) -> Bin:
    # Rows that were written together stay together.
    return Bin(tuple(sorted(files, key=lambda add: (add.modification_time, add.path))))


def has_many_dead_rows(add: AddFile, most: float) -> bool:
    """Whether the ratio of a file's deleted rows is greater than `most`, or unknown."""
    vector = add.deletion_vector
    if vector is None:
        return False
    rows = add.num_records
    return rows is None or vector.cardinality > most * rows


def _by_partition(adds: Iterable[AddFile]) -> list[list[AddFile]]:
    grouped: dict[tuple[tuple[str, str | None], ...], list[AddFile]] = {}
    for add in adds:
        grouped.setdefault(tuple(sorted(add.partition_values.items())), []).append(add)
    return list(grouped.values())
