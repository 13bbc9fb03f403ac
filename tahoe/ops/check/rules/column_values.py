"""The comparison of one file's statistics with its rows (PROTOCOL.md, "Per-file Statistics").

A false statistic hides rows: a filter skips a file whose bounds or null count exclude a match. So a bound must be true of every
live row. If a file has no deletion vector and its bounds are called tight, whole numbers, dates and decimals must be met exactly,
and null counts must be right.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.protocol.statistics.bounds import Leaf
from tahoe.protocol.statistics.file_statistics import FileStatistics
from tahoe.schema.types import DataType, DecimalType, PrimitiveType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_WHOLE = frozenset({"byte", "short", "integer", "long"})
_ABSENT = object()


@dataclass(slots=True)
class ColumnValues:
    """Least and greatest value, nulls and NaN of the live rows of one leaf column, accumulated over batches.

    Values compare as in Spark: NaN is the greatest, texts compare by code points; timestamps are microseconds, dates days.
    """

    leaf: Leaf
    rows: int = 0
    nulls: int = 0
    least: Any = None
    greatest: Any = None
    nan: bool = field(default=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch of the table's logical columns."""
        values = _values(batch, self.leaf)
        self.rows += len(values)
        self.nulls += values.null_count
        if values.null_count == len(values) or not _is_ordered(values.type):
            return
        if pa.types.is_floating(values.type):
            nan = pc.is_nan(values)
            if pc.any(nan).as_py():
                self.nan = True
                values = values.filter(pc.invert(nan), null_selection_behavior="drop")
                if not len(values):
                    return
        bounds = pc.min_max(values)
        least, greatest = _comparable(bounds["min"]), _comparable(bounds["max"])
        self.least = least if self.least is None else min(self.least, least)
        self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)


def contradictions(
    statistics: FileStatistics, columns: Sequence[ColumnValues], *, has_vector: bool, counts_nan: bool
) -> Iterator[str]:
    """Yield one sentence for each statistic that is not true of the rows.

    Args:
        has_vector: whether some rows of the file are deleted: then writers need not have updated the statistics.
        counts_nan: whether the writer treats NaN as the greatest float; for other files the greatest floats are not used.
    """
    exact = statistics.tight_bounds and not has_vector
    trees = (("minValues", statistics.min_values), ("maxValues", statistics.max_values), ("nullCount", statistics.null_count))
    yield from (f"{name} is no object" for name, tree in trees if not isinstance(tree, Mapping))
    for column in columns:
        name = ".".join(part.name for part in column.leaf)
        yield from _about_nulls(name, _stated(statistics.null_count, column.leaf), column, statistics.num_records, exact)
        yield from _about_bounds(name, statistics, column, exact)
        if counts_nan:
            yield from _about_nan(name, statistics, column)


def stated_leaves(statistics: FileStatistics, leaves: Sequence[Leaf]) -> list[Leaf]:
    """Return the leaves with values in the statistics: a bound, or fewer nulls than rows."""

    def is_informative(leaf: Leaf) -> bool:
        nulls = _stated(statistics.null_count, leaf)
        bounds = (_stated(statistics.min_values, leaf), _stated(statistics.max_values, leaf))
        return any(bound not in (None, _ABSENT) for bound in bounds) or (_is_count(nulls) and nulls < statistics.num_records)

    return [leaf for leaf in leaves if is_informative(leaf)]


def _about_nulls(name: str, stated: object, values: ColumnValues, rows: int, exact: bool) -> Iterator[str]:
    if not _is_count(stated):
        return
    if exact and stated != values.nulls:
        yield f"nullCount of column {name} is {stated}, but {values.nulls} of {values.rows} rows are null"
    elif stated == 0 and values.nulls:
        yield f"nullCount of column {name} is 0, but {values.nulls} living rows are null"
    elif stated == rows and values.nulls < values.rows:
        yield f"nullCount of column {name} says that all {rows} rows are null, but {values.rows - values.nulls} living rows are not"


def _about_bounds(name: str, statistics: FileStatistics, values: ColumnValues, exact: bool) -> Iterator[str]:
    data_type = values.leaf[-1].data_type
    least = _bound(_stated(statistics.min_values, values.leaf), data_type)
    greatest = _bound(_stated(statistics.max_values, values.leaf), data_type)
    if values.least is not None:
        if least is not None and not _not_above(least, values.least):
            yield f"minValues of column {name} is {_shown(least)}, but {_shown(values.least)} is in the file"
        # The specification truncates timestamps to milliseconds, and readers add one to the greatest.
        slack = 999 if _is_timestamp(data_type) else 0
        if greatest is not None and not _not_above(values.greatest, greatest + slack if slack else greatest):
            yield f"maxValues of column {name} is {_shown(greatest)}, but {_shown(values.greatest)} is in the file"
        if exact and _is_exact(data_type):
            if least is not None and least < values.least:
                yield f"minValues of column {name} is {_shown(least)} and called tight, but the least value is {_shown(values.least)}"
            if greatest is not None and greatest > values.greatest:
                yield f"maxValues of column {name} is {_shown(greatest)} and called tight, but the greatest is {_shown(values.greatest)}"


def _about_nan(name: str, statistics: FileStatistics, values: ColumnValues) -> Iterator[str]:
    greatest = _bound(_stated(statistics.max_values, values.leaf), values.leaf[-1].data_type)
    if values.nan and isinstance(greatest, float) and not math.isnan(greatest):
        yield f"maxValues of column {name} is {_shown(greatest)}, but NaN, which is greater than all numbers, is in the file"


def _stated(tree: object, leaf: Leaf) -> Any:
    for column in leaf:
        if not isinstance(tree, Mapping) or column.physical_name not in tree:
            return _ABSENT
        tree = tree[column.physical_name]
    return tree


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_exact(data_type: DataType) -> bool:
    return isinstance(data_type, DecimalType) or (isinstance(data_type, PrimitiveType) and data_type.name in {*_WHOLE, "date"})


def _is_timestamp(data_type: DataType) -> bool:
    return isinstance(data_type, PrimitiveType) and data_type.name in ("timestamp", "timestamp_ntz")


def _not_above(low: Any, high: Any) -> bool:
    """Whether `low` ≤ `high`; NaN is the greatest value."""
    if isinstance(high, float) and math.isnan(high):
        return True
    if isinstance(low, float) and math.isnan(low):
        return False
    return bool(low <= high)


def _bound(value: Any, data_type: DataType) -> Any:
    """Convert a bound from the statistics to a comparable value; None if readers cannot use it either."""
    try:
        match data_type:
            case DecimalType():
                return Decimal(value) if _is_number(value) or isinstance(value, str) else None
            case PrimitiveType(name) if name in _BOUNDS:
                return _BOUNDS[name](value)
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _whole(value: Any) -> int | None:
    return int(value) if _is_number(value) and value == int(value) else None


def _double(value: Any) -> float | None:
    if isinstance(value, str):
        return float(value) if value.strip("+-") in ("NaN", "Infinity", "INF", "Inf") else None
    return float(value) if _is_number(value) else None


def _single(value: object) -> float | None:
    number = _double(value)
    if number is None or not math.isfinite(number):
        return number
    single: float = struct.unpack("<f", struct.pack("<f", number))[0]  # rounded, as readers of a 32-bit column do
    return single


def _day(value: object) -> int | None:
    return date.fromisoformat(value).toordinal() - _EPOCH_DAY if isinstance(value, str) else None


def _microseconds(value: object) -> int | None:
    if not isinstance(value, str):
        return None
    time = datetime.fromisoformat(value)
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _local_microseconds(value: object) -> int | None:
    return _microseconds(datetime.fromisoformat(value).replace(tzinfo=None).isoformat()) if isinstance(value, str) else None


_BOUNDS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_WHOLE, _whole),
    "float": _single,
    "double": _double,
    "string": lambda value: value if isinstance(value, str) else None,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "date": _day,
    "timestamp": _microseconds,
    "timestamp_ntz": _local_microseconds,
}


def _is_ordered(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_null(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _values(batch: pa.RecordBatch, leaf: Leaf) -> pa.Array:
    values = batch.column(batch.schema.get_field_index(leaf[0].name))
    for column in leaf[1:]:
        values = pc.struct_field(values, [column.name])  # null where the parent is null
    return values


def _comparable(value: pa.Scalar) -> Any:
    if pa.types.is_date32(value.type) or pa.types.is_timestamp(value.type):
        return value.value
    return value.as_py()


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"
