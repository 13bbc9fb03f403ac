"""Whether a data file's footer and the statistics that the log has of the file speak of the same rows.

Both were made from one file by one writer, so where they contradict each other, another file lies in its place or bits of its footer have
changed. What is compared costs microseconds: the number of rows, columns that the log knows values of and the file lacks, and the
bounds of whole numbers and short texts in files of few row groups. Whatever is not understood, or not there, contradicts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tahoe.lazy import pq

__all__ = ["contradiction"]

_MOST_ROW_GROUPS = 4
_MOST_COLUMNS = 16
# Longer texts are cut in statistics, by each writer in its own way.
_LONGEST_TEXT = 31


def contradiction(
    footer: pq.FileMetaData, stats: str | None, columns: Mapping[str, str | None], *, has_vector: bool
) -> str | None:
    """What the footer and the log's statistics say differently, in words; None where they agree.

    Args:
        stats: JSON text as in the log.
        columns: of the columns that are read, not those of partitions: physical name → name in the file, None where it has none.
        has_vector: whether rows of the file are deleted; bounds may be those of the rest.
    """
    statistics = _object(stats)
    rows = _count(statistics.get("numRecords"))
    if rows is None:
        return None
    if rows != footer.num_rows:
        return f"it has {footer.num_rows} rows, but the table's log says {rows}"
    nulls = _object(statistics.get("nullCount"))
    for name, in_file in columns.items():
        counted = _count(nulls.get(name))
        if in_file is None and counted is not None and counted < rows:
            return f"it has no column '{name}', of which the table's log knows {rows - counted} values"
    if has_vector or statistics.get("tightBounds") is False or footer.num_row_groups > _MOST_ROW_GROUPS:
        return None
    return _other_bounds(footer, statistics, columns)


def _other_bounds(footer: pq.FileMetaData, stats: Mapping[str, Any], columns: Mapping[str, str | None]) -> str | None:
    positions = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    least, greatest = _object(stats.get("minValues")), _object(stats.get("maxValues"))
    stated = [name for name in columns if name in least and name in greatest and columns[name] in positions]
    for name in stated[:_MOST_COLUMNS]:
        held = _bounds(footer, positions[str(columns[name])])
        if held is None:
            continue
        for what, mine, theirs in (("least", held[0], least[name]), ("greatest", held[1], greatest[name])):
            if _is_comparable(mine, theirs) and mine != theirs:
                return f"the {what} value of its column '{name}' is {mine!r}, but the table's log says {theirs!r}"
    return None


def _bounds(footer: pq.FileMetaData, column: int) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column by its row groups; None where one does not tell."""
    bounds = []
    for index in range(footer.num_row_groups):
        chunk = footer.row_group(index).column(column)
        try:
            statistics = chunk.statistics if chunk.is_stats_set else None
            if statistics is None or not statistics.has_min_max:
                return None
            bounds.append((statistics.min, statistics.max))
        except (ValueError, OverflowError, NotImplementedError):
            return None  # a text bound that was cut inside a character does not decode
    if not bounds or not all(isinstance(value, type(bounds[0][0])) for pair in bounds for value in pair):
        return None
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _is_comparable(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, str) and isinstance(theirs, str):
        return len(mine) <= _LONGEST_TEXT and len(theirs) <= _LONGEST_TEXT and not theirs.endswith(_TIE_BREAKERS)
    return type(mine) is int and type(theirs) is int


# What writers put behind the greatest text that they have cut, so that it stays greatest.
_TIE_BREAKERS = ("\ufffd", "\uffff", "\U0010ffff")


def _object(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}  # damaged statistics are told by `tahoe check`
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
