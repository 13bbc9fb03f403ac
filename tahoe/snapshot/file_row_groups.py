"""Which row groups of a Parquet file may hold rows that a predicate wants, by the statistics in its footer.

Conservative: whatever is not understood, or has no statistics, is kept. The rows are filtered after reading.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tahoe.expr.tree.alternatives import outline
from tahoe.expr.tree.predicate import (
    And,
    Column,
    Comparison,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    normalise,
)
from tahoe.lazy import kept_by_identity, pq

__all__ = ["row_groups_that_may_match"]

LeafOf = Callable[[tuple[str, ...]], tuple[str, ...] | None]
"""The path of a logical column in the file, None where it has none there."""


def row_groups_that_may_match(predicate: Predicate, file: pq.ParquetFile, leaf_of: LeafOf) -> list[int]:
    """Numbers of the row groups that must be read, ascending."""
    metadata = file.metadata
    # Names with dots in them can make two leaves look alike; such columns are not used.
    paths = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    positions = {path: i for i, path in enumerate(paths) if paths.count(path) == 1}
    wanted = _in_short(predicate)

    def bounds_in(group: pq.RowGroupMetaData) -> Callable[[Column], _Bounds | None]:
        def bounds(column: Column) -> _Bounds | None:
            leaf = leaf_of(column.path)
            position = None if leaf is None else positions.get(".".join(leaf))
            return None if position is None else _bounds_of(group.column(position))

        return bounds

    return [i for i in range(metadata.num_row_groups) if _may_match(wanted, bounds_in(metadata.row_group(i)))]


@kept_by_identity
def _in_short(predicate: Predicate) -> Predicate:
    return normalise(outline(predicate))


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What a column chunk says of itself: `least` and `most` are None where it does not say."""

    least: Any
    most: Any
    nulls: int | None
    values: int


def _bounds_of(chunk: pq.ColumnChunkMetaData) -> _Bounds | None:
    statistics = chunk.statistics if chunk.is_stats_set else None
    if statistics is None:
        return None
    nulls = statistics.null_count if statistics.has_null_count else None
    least = most = None
    # INT96 has no order that statistics could follow; a text bound that was cut inside a character does not decode.
    if statistics.has_min_max and chunk.physical_type != "INT96":
        try:
            least, most = statistics.min, statistics.max
        except (UnicodeDecodeError, ValueError, OverflowError):
            least = most = None
    return _Bounds(least, most, nulls, chunk.num_values)


def _may_match(predicate: Predicate, bounds: Callable[[Column], _Bounds | None]) -> bool:
    match predicate:
        case Constant(value):
            return value is True
        case And(parts):
            return all(_may_match(part, bounds) for part in parts)
        case Or(parts):
            return any(_may_match(part, bounds) for part in parts)
        case Comparison() | In() | IsNull() | IsNotNull() | StartsWith():
            found = bounds(predicate.column)
            return found is None or _leaf_may_match(predicate, found)
    return True


def _leaf_may_match(predicate: Comparison | In | IsNull | IsNotNull | StartsWith, bounds: _Bounds) -> bool:
    match predicate:
        case IsNull():
            return bounds.nulls != 0
        case IsNotNull():
            return bounds.nulls is None or bounds.nulls < bounds.values
        case Comparison("<=>", _, literal) if literal.value is None:
            return bounds.nulls != 0
        case Comparison(op, _, literal):
            return _not_only_nulls(bounds) and _in_range(op, literal.value, bounds)
        case In(_, literals):
            return _not_only_nulls(bounds) and any(_in_range("=", literal.value, bounds) for literal in literals)
        case StartsWith(_, prefix):
            if not isinstance(bounds.least, str) or not isinstance(bounds.most, str):
                return True
            # Code points order as UTF-8 bytes do.
            return bounds.least[: len(prefix)] <= prefix <= bounds.most[: len(prefix)]


def _not_only_nulls(bounds: _Bounds) -> bool:
    return bounds.nulls is None or bounds.nulls < bounds.values


def _in_range(op: str, value: Any, bounds: _Bounds) -> bool:
    """Whether some value between the bounds may fulfil `op value`."""
    least, most = _comparable(bounds.least, value), _comparable(bounds.most, value)
    if least is None or most is None:
        return True
    # Statistics leave NaN out, though to SQL it is the greatest value.
    floating = isinstance(least, float)
    if floating and (math.isnan(value) or math.isnan(least) or math.isnan(most)):
        return True
    match op:
        case "=" | "<=>":
            return bool(least <= value <= most)
        case "<":
            return bool(least < value)
        case "<=":
            return bool(least <= value)
        case ">":
            return floating or bool(most > value)
        case ">=":
            return floating or bool(most >= value)
    return floating or not (least == most == value)


def _comparable(bound: Any, value: Any) -> Any:
    """The bound as what Python can order against `value`, None where it cannot."""
    if bound is None or isinstance(value, bytes):
        return None
    if isinstance(value, datetime):
        if type(bound) is not datetime:  # a date; or nanoseconds, which are cut down when read
            return None
        if value.tzinfo is None:
            return bound.replace(tzinfo=None)
        return bound.astimezone(UTC) if bound.tzinfo is not None else bound.replace(tzinfo=UTC)
    if isinstance(value, bool) != isinstance(bound, bool):
        return None
    if isinstance(value, float):
        return float(bound) if isinstance(bound, int | float) else None
    return bound if type(bound) is type(value) else None
