"""The totals of a version's live files: counts, bytes, deleted records, and the two histograms of a version checksum.

(PROTOCOL.md, "File Size Histogram Schema" and "Deleted Record Counts Histogram Schema".)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.schema.arrow_values import scalar


@dataclass(frozen=True, slots=True)
class FileSizeHistogram:
    """The number of live files in each bin of sizes, and their total size in bytes.

    Args:
        boundaries: the least size of each bin, ascending, the first 0; the last bin has no end.
    """

    boundaries: tuple[int, ...]
    file_counts: tuple[int, ...]
    total_bytes: tuple[int, ...]

    @classmethod
    def of(cls, sizes: pa.ChunkedArray, boundaries: Sequence[int] = ()) -> FileSizeHistogram:
        """Count these sizes, in delta-spark's bins by default."""
        bins = tuple(boundaries) or _BOUNDARIES
        ordered = sizes.combine_chunks().sort()
        sums = pc.cumulative_sum(ordered)
        starts = [bisect_left(range(len(ordered)), low, key=lambda i: ordered[i].as_py()) for low in bins]
        ends = [*starts[1:], len(ordered)]
        before = [sums[position - 1].as_py() if position else 0 for position in (*starts, len(ordered))]
        return cls(
            bins,
            tuple(end - start for start, end in zip(starts, ends, strict=True)),
            tuple(after - low for low, after in pairwise(before)),
        )

    @classmethod
    def empty(cls) -> FileSizeHistogram:
        """Return a histogram of no files, in delta-spark's bins."""
        return cls(_BOUNDARIES, (0,) * len(_BOUNDARIES), (0,) * len(_BOUNDARIES))

    @classmethod
    def from_json_value(cls, value: Mapping[str, Any]) -> FileSizeHistogram:
        """Parse a histogram. Raises ValueError, KeyError or TypeError for an invalid one."""
        histogram = cls(*(tuple(map(int, value[name])) for name in _MEMBERS))
        lengths = {len(histogram.boundaries), len(histogram.file_counts), len(histogram.total_bytes)}
        if len(lengths) != 1 or histogram.boundaries[:1] != (0,) or list(histogram.boundaries) != sorted(histogram.boundaries):
            raise ValueError("a file size histogram must have as many counts and sums as ascending boundaries from 0")
        return histogram

    def to_json_value(self) -> dict[str, Any]:
        """Return the members with the specification's names."""
        return dict(zip(_MEMBERS, map(list, (self.boundaries, self.file_counts, self.total_bytes)), strict=True))

    def after(self, came: Iterable[int], went: Iterable[int]) -> FileSizeHistogram:
        """Return the histogram after files of these sizes were added and removed."""
        counts, sums = list(self.file_counts), list(self.total_bytes)
        for sign, sizes in ((1, came), (-1, went)):
            for size in sizes:
                position = bisect_right(self.boundaries, size) - 1
                counts[position] += sign
                sums[position] += sign * size
        return FileSizeHistogram(self.boundaries, tuple(counts), tuple(sums))


@dataclass(frozen=True, slots=True)
class FileTotals:
    """The totals of a version's live files; None for values that were not counted.

    Args:
        num_deleted_records, num_deletion_vectors: of all live files.
        deleted_record_counts: the number of files in each bin of deleted records.
        sizes: the histogram of the files' sizes.
    """

    num_files: int
    size_bytes: int
    num_deleted_records: int | None = None
    num_deletion_vectors: int | None = None
    deleted_record_counts: tuple[int, ...] | None = None
    sizes: FileSizeHistogram | None = None

    @classmethod
    def empty(cls) -> FileTotals:
        """Return the totals of a table without files."""
        return cls(0, 0, 0, 0, (0,) * len(_DELETED_BINS), FileSizeHistogram.empty())

    @classmethod
    def of(cls, files: pa.Table, *, histograms: bool = True) -> FileTotals:
        """Compute the totals of live files.

        Args:
            files: with the columns ``size`` and ``deletionVector`` of `tahoe.log.replay.FILES_SCHEMA`.
            histograms: whether to compute the histograms too, which sorts the files by size.
        """
        vectors = files.column("deletionVector")
        deleted = pc.struct_field(vectors, "cardinality") if len(vectors) else pa.chunked_array([], pa.int64())
        counts = None
        if histograms:
            counts = FileSizeHistogram.of(pc.fill_null(deleted, scalar(0)), _DELETED_BINS).file_counts
        return cls(
            num_files=files.num_rows,
            size_bytes=pc.sum(files.column("size"), min_count=0).as_py(),
            num_deleted_records=pc.sum(deleted, min_count=0).as_py(),
            num_deletion_vectors=len(vectors) - vectors.null_count,
            deleted_record_counts=counts,
            sizes=FileSizeHistogram.of(files.column("size")) if histograms else None,
        )

    def after(self, adds: Sequence[AddFile], removes: Sequence[RemoveFile]) -> FileTotals | None:
        """Return the totals after files were added and removed; None if a removed file lacks its size.

        Args:
            adds: files that were not in the table.
            removes: files that were in the table.
        """
        came, went = list[int](), list[int]()
        dead = list[int](), list[int]()
        vectors = 0
        for add in adds:  # once: they may be millions
            came.append(add.size)
            dead[0].append(_deleted(add))
            vectors += add.deletion_vector is not None
        for remove in removes:
            if remove.size is None:
                return None
            went.append(remove.size)
            dead[1].append(_deleted(remove))
            vectors -= remove.deletion_vector is not None
        deleted, counted, counts = self.num_deleted_records, self.num_deletion_vectors, self.deleted_record_counts
        return FileTotals(
            num_files=self.num_files + len(came) - len(went),
            size_bytes=self.size_bytes + sum(came) - sum(went),
            num_deleted_records=None if deleted is None else deleted + sum(dead[0]) - sum(dead[1]),
            num_deletion_vectors=None if counted is None else counted + vectors,
            deleted_record_counts=None
            if counts is None
            else FileSizeHistogram(_DELETED_BINS, counts, counts).after(*dead).file_counts,
            sizes=None if self.sizes is None else self.sizes.after(came, went),
        )

    def plus(self, net: FileTotals) -> FileTotals:
        """Return the totals plus a change of the counts, without histograms."""
        return FileTotals(
            self.num_files + net.num_files,
            self.size_bytes + net.size_bytes,
            _sum(self.num_deleted_records, net.num_deleted_records),
            _sum(self.num_deletion_vectors, net.num_deletion_vectors),
        )

    def with_no_vectors(self) -> FileTotals:
        """Return the totals with 0 deletion vectors, for a table that has just enabled them."""
        counts = (self.num_files, *(0,) * (len(_DELETED_BINS) - 1))
        return replace(self, num_deleted_records=0, num_deletion_vectors=0, deleted_record_counts=counts)

    def without_vectors(self) -> FileTotals:
        """Return the totals without the counts of deletion vectors, for tables that do not use them."""
        return replace(self, num_deleted_records=None, num_deletion_vectors=None, deleted_record_counts=None)

    def differences(self, actual: FileTotals) -> list[str]:
        """Describe the differences between `self` and `actual`, with the member names of a version checksum."""
        names = {
            "numFiles": (self.num_files, actual.num_files),
            "tableSizeBytes": (self.size_bytes, actual.size_bytes),
            "numDeletedRecordsOpt": (self.num_deleted_records, actual.num_deleted_records),
            "numDeletionVectorsOpt": (self.num_deletion_vectors, actual.num_deletion_vectors),
            "deletedRecordCountsHistogramOpt": (self.deleted_record_counts, actual.deleted_record_counts),
        }
        if self.sizes is not None and actual.sizes is not None and self.sizes.boundaries == actual.sizes.boundaries:
            names["fileSizeHistogram"] = self.sizes.file_counts, actual.sizes.file_counts
            names["fileSizeHistogram.totalBytes"] = self.sizes.total_bytes, actual.sizes.total_bytes
        return [
            f"{name} {_shown(stated)}, but the log gives {_shown(mine)}"
            for name, (stated, mine) in names.items()
            if stated is not None and mine is not None and stated != mine
        ]


_MEMBERS = ("sortedBinBoundaries", "fileCounts", "totalBytes")
_DELETED_BINS = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 2**31 - 1)
_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30


def _boundaries() -> tuple[int, ...]:
    """Return delta-spark's bins: it compares histograms only if they have the same bins as its own."""
    boundaries = [0, *(_KB << power for power in range(3, 13))]
    for first, last, step in (
        (8, 40, 4),
        (48, 120, 8),
        (124, 144, 4),
        (160, 576, 16),
        (640, 1_408, 64),
        (1_536, 2_048, 128),
        (2_304, 4_096, 256),
    ):
        boundaries += [size * _MB for size in range(first, last + 1, step)]
    return (*boundaries, *(_GB << power for power in range(3, 9)))


_BOUNDARIES = _boundaries()


def _deleted(file: AddFile | RemoveFile) -> int:
    return file.deletion_vector.cardinality if file.deletion_vector is not None else 0


def _sum(left: int | None, right: int | None) -> int | None:
    return None if left is None or right is None else left + right


def _shown(value: int | tuple[int, ...]) -> str:
    return str(value) if isinstance(value, int) else str({i: count for i, count in enumerate(value) if count})
