"""How well files are clustered by a column: where the values of each file lie on a line, and how many files a predicate meets there. Pure.

Values of all types become places on a line, by their order alone: the n-th of all bounds lies at n. A file is an interval on the line of each
column, and so a box over all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

__all__ = ["Box", "ColumnLayout", "Interval", "Measured", "measured", "spread"]

Interval: TypeAlias = tuple[float, float] | None
"""Where a file's least and greatest value lie; None where every value is NULL. A file that nobody knows bounds of reaches everywhere."""

_POINTS = 2_000
"""At about so many values predicates are tried."""
_RANGE = 0.1
"""A typical range predicate wants so much of the line."""
_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


@dataclass(frozen=True, slots=True)
class Box:
    """A file.

    Args:
        size: in bytes.
        rows: living ones, as far as the log tells.
        intervals: one for each column.
        modified_ms: since the epoch.
        name: of the file; empty for one that is only thought of.
        bounds: least and greatest value of each column, as they are shown.
    """

    size: int
    rows: int
    intervals: tuple[Interval, ...]
    modified_ms: int = 0
    name: str = ""
    bounds: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """What predicates on one column read, in the mean over values as they are in the rows.

    Args:
        point_files, point_bytes: of ``column = value``; the files that hold a value between their bounds are the depth of the overlap there.
        range_files, range_bytes: of ``column BETWEEN …``, a tenth of the values.
        deepest: of all values tried, the most files that one point predicate reads.
    """

    point_files: float
    point_bytes: float
    range_files: float
    range_bytes: float
    deepest: int


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """How well files are clustered by one column.

    Args:
        name: nested ones as ``a.b``.
        is_key: whether OPTIMIZE would cluster by it.
        now, then: what typical predicates read, and what they would read after OPTIMIZE; None where no file has a value.
    """

    name: str
    is_key: bool
    now: Measured | None
    then: Measured | None


class _Line:
    """Intervals, sorted so that those that meet a stretch are counted by halving: all but those that begin after it or end before it."""

    def __init__(self, intervals: Sequence[tuple[float, float, int]]) -> None:
        begins, ends = sorted((low, size) for low, _, size in intervals), sorted((high, size) for _, high, size in intervals)
        self.begins, self.ends = [place for place, _ in begins], [place for place, _ in ends]
        self.begun, self.ended = ([0, *accumulate(size for _, size in one)] for one in (begins, ends))

    def met(self, low: float, high: float) -> tuple[int, int]:
        """Number and bytes of the intervals that have a place from `low` to `high`."""
        begun, ended = bisect_right(self.begins, high), bisect_left(self.ends, low)
        return begun - ended, self.begun[begun] - self.ended[ended]


def measured(boxes: Sequence[Box], column: int, length: float) -> Measured | None:
    """What predicates on a column read; None where no file has a value of it.

    Args:
        length: of the line.
    """
    held = [(*interval, box.size) for box in boxes if (interval := box.intervals[column]) is not None]
    points = list(_typical(boxes, column, length))
    if not held or not points:
        return None
    line, half = _Line(held), length * _RANGE / 2
    one = [(*line.met(place, place), weight) for place, weight in points]
    some = [(*line.met(place - half, place + half), weight) for place, weight in points]
    total = sum(weight for _, weight in points)
    point_files, point_bytes, range_files, range_bytes = (
        sum(found[which] * found[2] for found in tried) / total for tried in (one, some) for which in (0, 1)
    )
    return Measured(point_files, point_bytes, range_files, range_bytes, max(files for files, _, _ in one))


def _typical(boxes: Sequence[Box], column: int, length: float) -> Iterable[tuple[float, int]]:
    """Places of values as they are in rows, and how many rows each stands for: evenly in each file, of files with bounds."""
    known = [box for box in boxes if (interval := box.intervals[column]) is not None and interval != (0.0, length)] or [
        box for box in boxes if box.intervals[column] is not None
    ]
    step = max(1, len(known) // _POINTS)
    each = max(1, min(50, _POINTS // max(1, len(known))))
    for box in known[::step]:
        interval = box.intervals[column]
        assert interval is not None
        low, high = interval
        for number in range(each):
            yield low + (high - low) * (number + 0.5) / each, max(1, box.rows)


def spread(box: Box, count: int, first: int) -> list[tuple[float | None, ...]]:
    """Rows that a file might have: so many, evenly in its box, each column for itself.

    Args:
        first: the number of the first of all rows of all files, so that no two files have rows in step.
    """
    found = []
    for number in range(first, first + count):
        row: list[float | None] = []
        for place, interval in enumerate(box.intervals):
            share = _halton(number + 1, _PRIMES[place % len(_PRIMES)])
            row.append(None if interval is None else interval[0] + (interval[1] - interval[0]) * share)
        found.append(tuple(row))
    return found


def _halton(number: int, base: int) -> float:
    """The number's digits to this base, mirrored behind the point: evenly in 0 … 1, in each base for itself."""
    share, digit = 0.0, 1.0
    while number:
        digit /= base
        share += digit * (number % base)
        number //= base
    return share
