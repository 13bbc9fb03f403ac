"""Cross-check of a data file's footer with the log's statistics of the file.

One writer made both from one file. If they contradict each other, the file was replaced by another or bits of its footer have changed.
The comparison costs microseconds: the number of rows, columns that have values in the log's statistics but are missing from the file, and
the bounds of integers and short strings in files of few row groups. Missing or unknown statistics contradict nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc, pq
from tahoe.protocol.statistics.stats_json import parse_statistics
from tahoe.schema.arrow_values import array, scalar

_MOST_ROW_GROUPS = 4
_MOST_COLUMNS = 16
# Longer texts are cut in statistics, by each writer in its own way.
_LONGEST_TEXT = 31


def contradiction(
    footer: pq.FileMetaData, stats: str | None, columns: Mapping[str, str | None], *, has_vector: bool
) -> str | None:
    """Describe the first difference between the footer and the log's statistics; None if they agree.

    Args:
        stats: JSON text as in the log.
        columns: physical name → name in the file, or None if the file lacks it, of the columns to read, without partition columns.
        has_vector: whether rows of the file are deleted; the bounds may be those of the remaining rows.
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


def _other_bounds(footer: pq.FileMetaData, stats: Mapping[str, object], columns: Mapping[str, str | None]) -> str | None:
    positions = {footer.schema.column(index).path: index for index in range(footer.num_columns)}
    least, greatest = _object(stats.get("minValues")), _object(stats.get("maxValues"))
    stated = [name for name in columns if name in least and name in greatest and columns[name] in positions]
    for name in stated[:_MOST_COLUMNS]:
        footer_bounds = _bounds(footer, positions[str(columns[name])])
        if footer_bounds is None:
            continue
        for extreme, mine, theirs in (("least", footer_bounds[0], least[name]), ("greatest", footer_bounds[1], greatest[name])):
            if _is_comparable(mine, theirs) and mine != theirs:
                return f"the {extreme} value of its column '{name}' is {mine!r}, but the table's log says {theirs!r}"
    return None


def _bounds(footer: pq.FileMetaData, column: int) -> tuple[Any, Any] | None:
    """Return the least and the greatest value of a column over its row groups; None if one of them has no bounds."""
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


def _is_comparable(mine: object, theirs: object) -> bool:
    if isinstance(mine, str) and isinstance(theirs, str):
        return len(mine) <= _LONGEST_TEXT and len(theirs) <= _LONGEST_TEXT and not theirs.endswith(_TIE_BREAKERS)
    return type(mine) is int and type(theirs) is int


# Writers append these characters to a truncated greatest string, so that it remains an upper bound.
_TIE_BREAKERS = ("\ufffd", "\uffff", "\U0010ffff")


# -- many files at once ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one column in the footers of many files.

    Args:
        name: in the log's statistics.
        data_type: in the files.
        least, greatest: the bytes in the footers, one value for each file.
    """

    name: str
    data_type: pa.DataType
    least: Sequence[bytes]
    greatest: Sequence[bytes]


def certainly_equal(rows: Sequence[int], bounds: Sequence[Bounds], stats: Sequence[str | None]) -> bool:
    """Whether `contradiction` surely finds no difference in any of many files.

    Args:
        rows: of each file, by its footer.
        bounds: of columns, all of which the files have.
        stats: of each file, as in the log.
    """
    compared = [column for column in bounds if _is_whole_number(column.data_type) or _is_text(column.data_type)][:_MOST_COLUMNS]
    values = pa.struct([(column.name, pa.int64() if _is_whole_number(column.data_type) else pa.string()) for column in compared])
    shape = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values)])
    stated = parse_statistics(array(stats, pa.string()), shape)
    if not _are_equal(array(rows, pa.int64()), pc.struct_field(stated, "numRecords")):
        return False
    for column in compared:
        for side, footer_values in (("minValues", column.least), ("maxValues", column.greatest)):
            theirs = pc.struct_field(stated, [side, column.name])
            if _is_whole_number(column.data_type):
                mine = _whole_numbers(footer_values)
            else:
                mine = array(footer_values, pa.binary()).cast(pa.string())
                short = pc.and_(_is_short(mine), _is_short(theirs))
                mine, theirs = mine.filter(short), theirs.filter(short)
            if not _are_equal(mine, theirs):
                return False
    return True


def _are_equal(mine: pa.Array, theirs: pa.ChunkedArray) -> bool:
    """Whether all values are equal; values that the log lacks count as equal."""
    return bool(pc.all(pc.equal(mine, theirs), min_count=0).as_py())


def _whole_numbers(texts: Sequence[bytes]) -> pa.Array:
    data_type = pa.int32() if len(texts[0]) == 4 else pa.int64()  # every one has the size of its type
    return pa.Array.from_buffers(data_type, len(texts), [None, pa.py_buffer(b"".join(texts))]).cast(pa.int64())


def _is_short(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.fill_null(pc.less_equal(pc.utf8_length(texts), scalar(_LONGEST_TEXT)), scalar(False))


def _is_whole_number(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(data_type))


def _is_text(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_string(data_type) or pa.types.is_large_string(data_type))


# -- parts -----------------------------------------------------------------------------------------------------------------------


def _object(value: object) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}  # `tahoe check` reports corrupt statistics
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
