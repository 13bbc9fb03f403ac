"""The row groups of a checkpoint that a scan needs, chosen by the Parquet statistics of its ``stats_parsed`` columns.

The condition of `tahoe.protocol.skipping.stats_predicate` is evaluated for a whole row group: can it be other than FALSE for any of its
files? If the footer lacks the statistics, the row group is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tahoe.base.lazy import pq
from tahoe.expr.tree.predicate import And, Comparison, Constant, In, IsNotNull, IsNull, Not, Or, Predicate, StartsWith
from tahoe.protocol.statistics.footer import shows_nan

_PLACES = {
    "minValues": ("stats_parsed", "minValues"),
    "maxValues": ("stats_parsed", "maxValues"),
    "nullCount": ("stats_parsed", "nullCount"),
    "partitionValues": ("partitionValues_parsed",),
}


def row_groups_to_read(metadata: pq.FileMetaData, condition: Predicate | None) -> list[int]:
    """Return the numbers of the row groups that may contain ``add`` rows for which the condition is not FALSE, ascending.

    Args:
        metadata: of a checkpoint or sidecar, whose column ``add`` is a struct.
        condition: from `stats_predicate`; None selects all row groups with ``add`` rows.
    """
    positions = leaf_positions(metadata)
    selected = []
    for i in range(metadata.num_row_groups):
        group = _Group(metadata.row_group(i), positions, shows_nan(metadata))
        if group.has_files and (condition is None or _possible(condition, group)):
            selected.append(i)
    return selected


def leaf_positions(metadata: pq.FileMetaData) -> dict[str, int]:
    """Return the numbers of a file's leaf columns by their paths. A name with dots can make two leaves look alike; both are left out then."""
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    return {path: i for i, path in enumerate(paths) if paths.count(path) == 1}


@dataclass(frozen=True, slots=True)
class _Range:
    """The values of one leaf in one row group; `nulls` is whether a file may have NULL there."""

    least: Any
    greatest: Any
    nulls: bool


class _Group:
    def __init__(self, group: pq.RowGroupMetaData, positions: dict[str, int], shows_nan: bool) -> None:
        self._group = group
        self._positions = positions
        self._shows_nan = shows_nan
        self._without_file = self._null_count("add.path")
        self.has_files = self._without_file is None or self._without_file < group.num_rows

    def range_of(self, path: tuple[str, ...]) -> _Range | None:
        place = _PLACES.get(path[0])
        position = None if place is None else self._positions.get(".".join(("add", *place, *path[1:])))
        if position is None:
            return None
        chunk = self._group.column(position)
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None or not statistics.has_null_count or self._without_file is None:
            return None
        nulls = statistics.null_count > self._without_file
        if not statistics.has_min_max or chunk.physical_type == "INT96":
            return _Range(None, None, nulls)
        try:
            least, greatest = statistics.min, statistics.max
        except (ValueError, OverflowError):
            return _Range(None, None, nulls)
        if isinstance(greatest, float) and (not self._shows_nan or math.isnan(greatest)):
            greatest = math.inf  # there may be NaN, which is greater than infinity
        return _Range(least, greatest, nulls)

    def _null_count(self, path: str) -> int | None:
        position = self._positions.get(path)
        if position is None:
            return None
        chunk = self._group.column(position)
        statistics = chunk.statistics if chunk.is_stats_set else None
        return statistics.null_count if statistics is not None and statistics.has_null_count else None


def _possible(condition: Predicate, group: _Group) -> bool:
    match condition:
        case Constant(value):
            return value is not False
        case And(parts):
            return all(_possible(part, group) for part in parts)
        case Or(parts):
            return any(_possible(part, group) for part in parts)
        case Not(In() | StartsWith() as leaf):
            values = group.range_of(leaf.column.path)
            return values is None or values.nulls or _not_only(leaf, values)
        case Comparison() | In() | IsNull() | IsNotNull() | StartsWith():
            values = group.range_of(condition.column.path)
            return values is None or values.nulls or _within(condition, values)
    return True


def _within(leaf: Comparison | In | IsNull | IsNotNull | StartsWith, bounds: _Range) -> bool:
    """Whether some value of the range may satisfy the leaf; there is no NULL among them."""
    match leaf:
        case IsNull():
            return False
        case IsNotNull():
            return True
        case Comparison(op, _, literal):
            return _COMPARED[op](bounds, literal.value) if _comparable(bounds, literal.value) else True
        case In(_, literals):
            return any(not _comparable(bounds, each.value) or _COMPARED["="](bounds, each.value) for each in literals)
        case StartsWith(_, prefix):
            if not _comparable(bounds, prefix):
                return True
            return bool(bounds.greatest >= prefix and (bounds.least <= prefix or bounds.least.startswith(prefix)))


def _not_only(leaf: In | StartsWith, bounds: _Range) -> bool:
    if isinstance(leaf, StartsWith):
        if not _comparable(bounds, leaf.prefix):
            return True
        return not (bounds.least.startswith(leaf.prefix) and bounds.greatest.startswith(leaf.prefix))
    values = [literal.value for literal in leaf.literals]
    return not (
        all(_comparable(bounds, value) for value in values) and bounds.least == bounds.greatest and bounds.least in values
    )


_COMPARED: dict[str, Callable[[_Range, Any], bool]] = {
    "<": lambda bounds, value: bool(bounds.least < value),
    "<=": lambda bounds, value: bool(bounds.least <= value),
    ">": lambda bounds, value: bool(bounds.greatest > value) or bounds.greatest == math.inf,
    ">=": lambda bounds, value: bool(bounds.greatest >= value),
    "=": lambda bounds, value: bool(bounds.least <= value <= bounds.greatest),
    "<=>": lambda bounds, value: bool(bounds.least <= value <= bounds.greatest),
    "!=": lambda bounds, value: not (bounds.least == bounds.greatest == value),
}


def _comparable(bounds: _Range, value: object) -> bool:
    """Whether Python can order the bounds and the value, and orders them as Spark does."""
    least = bounds.least
    if least is None or value is None:
        return False
    if isinstance(value, float):
        return isinstance(least, float) and not math.isnan(value) and not math.isnan(least)
    if isinstance(value, datetime):
        return isinstance(least, datetime) and (least.tzinfo is None) == (value.tzinfo is None)
    if isinstance(value, date):
        return type(least) is date
    return type(least) is type(value)
