"""Measure how well files are clustered by a column, from the value range of each file: how many files does a predicate read? Pure.

Values of all types are mapped to positions on a line, by their order alone: the n-th of all bounds is at n. A file is an interval on the line
of each column, and so a box over all columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

Interval: TypeAlias = tuple[float, float] | None
"""The positions of a file's minimum and maximum; None if all values are NULL. A file without bounds covers the whole line."""

_POINTS = 2_000
"""The approximate number of values at which predicates are evaluated."""
_RANGE = 0.1
"""The part of the line that a typical range predicate selects."""
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


@dataclass(frozen=True, slots=True)
class Box:
    """A file.

    Args:
        size: in bytes.
        rows: the number of live rows according to the log.
        intervals: one interval for each column.
        modified_ms: the modification time in milliseconds since the epoch.
        name: the name of the file; empty for a predicted file.
        bounds: the minimum and the maximum of each column, as strings for display.
    """

    size: int
    rows: int
    intervals: tuple[Interval, ...]
    modified_ms: int = 0
    name: str = ""
    bounds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PredicateCost:
    """The files and bytes that predicates on one column read, averaged over the values in the rows.

    Args:
        point_files, point_bytes: for ``column = value``; the number of files whose bounds include a value is the overlap depth there.
        range_files, range_bytes: for ``column BETWEEN …``, a tenth of the values.
        deepest: the greatest number of files that a point predicate reads, of all evaluated values.
    """

    point_files: float
    point_bytes: float
    range_files: float
    range_bytes: float
    deepest: int


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The clustering quality of one column.

    Args:
        name: the column; a nested one as ``a.b``.
        is_key: whether OPTIMIZE would cluster by it.
        now, then: the reads of typical predicates now and after OPTIMIZE; None if no file has a value.
    """

    name: str
    is_key: bool
    now: PredicateCost | None
    then: PredicateCost | None


class _Line:
    """Sorted intervals. Those that intersect a range are counted by binary search: all but those that begin after it or end before it."""

    def __init__(self, intervals: Sequence[tuple[float, float, int]]) -> None:
        begins, ends = sorted((low, size) for low, _, size in intervals), sorted((high, size) for _, high, size in intervals)
        self.begins, self.ends = [place for place, _ in begins], [place for place, _ in ends]
        self.begun, self.ended = ([0, *accumulate(size for _, size in ends_and_sizes)] for ends_and_sizes in (begins, ends))

    def met(self, low: float, high: float) -> tuple[int, int]:
        """Return the number and the bytes of the intervals that intersect `low` … `high`."""
        begun, ended = bisect_right(self.begins, high), bisect_left(self.ends, low)
        return begun - ended, self.begun[begun] - self.ended[ended]


def measured(boxes: Sequence[Box], column: int, length: float) -> PredicateCost | None:
    """Return the files and bytes that predicates on a column read; None if no file has a value of it.

    Args:
        length: the length of the column's line.
    """
    intervals = [(*interval, box.size) for box in boxes if (interval := box.intervals[column]) is not None]
    points = list(_typical(boxes, column, length))
    if not intervals or not points:
        return None
    line, half = _Line(intervals), length * _RANGE / 2
    by_point = [(*line.met(place, place), weight) for place, weight in points]
    by_range = [(*line.met(place - half, place + half), weight) for place, weight in points]
    total = sum(weight for _, weight in points)
    point_files, point_bytes, range_files, range_bytes = (
        sum(counts[which] * counts[2] for counts in tried) / total for tried in (by_point, by_range) for which in (0, 1)
    )
    return PredicateCost(point_files, point_bytes, range_files, range_bytes, max(files for files, _, _ in by_point))


def _typical(boxes: Sequence[Box], column: int, length: float) -> Iterable[tuple[float, int]]:
    """Yield sample positions, evenly spread within each file with bounds, and a weight for each: the file's row count."""
    bounded = [box for box in boxes if (interval := box.intervals[column]) is not None and interval != (0.0, length)] or [
        box for box in boxes if box.intervals[column] is not None
    ]
    step = max(1, len(bounded) // _POINTS)
    each = max(1, min(50, _POINTS // max(1, len(bounded))))
    for box in bounded[::step]:
        interval = box.intervals[column]
        assert interval is not None
        low, high = interval
        for number in range(each):
            yield low + (high - low) * (number + 0.5) / each, max(1, box.rows)


def spread(box: Box, count: int, first: int) -> list[tuple[float | None, ...]]:
    """Return `count` hypothetical rows of a file, evenly spread in its box, each column independently.

    Args:
        first: the index of the first row among the rows of all files, so that the sequences of two files differ.
    """
    rows = []
    for number in range(first, first + count):
        row: list[float | None] = []
        for place, interval in enumerate(box.intervals):
            share = _halton(number + 1, _PRIMES[place % len(_PRIMES)])
            row.append(None if interval is None else interval[0] + (interval[1] - interval[0]) * share)
        rows.append(tuple(row))
    return rows


def _halton(number: int, base: int) -> float:
    """Return the number's digits in this base mirrored at the decimal point (Halton sequence): evenly spread in 0 … 1."""
    share, digit = 0.0, 1.0
    while number:
        digit /= base
        share += digit * (number % base)
        number //= base
    return share
