"""The number of a version's rows and their least and greatest values, from the log's statistics, without opening a data file.

The result is None if any file leaves it open: a file without statistics, or with bounds that are not tight, or a type whose bounds are
shortened in the log (strings, timestamps) or lack values (floats, for which NaN is the greatest to Spark).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tahoe.base.lazy import pc
from tahoe.protocol.skipping import partition_column, statistics_of
from tahoe.schema.arrow import to_arrow_type
from tahoe.schema.arrow_values import scalar
from tahoe.schema.types import StructField

_EXACT = ("byte", "short", "integer", "long", "date")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of the values of a column; None for both if all values are null.

    Args:
        least, greatest: Python values.
    """

    least: Any
    greatest: Any


@dataclass(frozen=True)
class RowStatistics:
    """The rows of some files of one version.

    Args:
        files: the files of the rows (`tahoe.log.replay.FILES_SCHEMA`).
        partition_columns: names of the partition columns, whose values the log has for whole files.
    """

    files: pa.Table
    partition_columns: Sequence[str]

    def count(self) -> int | None:
        """The number of live rows; None if the log does not have it."""
        live = self._living
        return None if live is None else int(pc.sum(live, min_count=0).as_py())

    def count_of(self, column: StructField) -> int | None:
        """Return the number of non-null values of a top-level column; None if the log does not have it."""
        if column.name in self.partition_columns:
            live = self._living
            has_value = partition_column(self.files, column).is_valid()
            return None if live is None else int(pc.sum(live.filter(has_value), min_count=0).as_py())
        if self._has_vectors:
            return None
        statistics = self._statistics(column, "nullCount")
        rows, nulls = (pc.struct_field(statistics, path) for path in (["numRecords"], ["nullCount", column.physical_name]))
        if rows.null_count or nulls.null_count:
            return None
        return int(pc.sum(pc.subtract(rows, nulls), min_count=0).as_py())

    def bounds(self, column: StructField) -> Bounds | None:
        """Return the least and the greatest value of a top-level column; None if the log does not have them."""
        if str(column.data_type) not in _EXACT:
            return None
        if column.name in self.partition_columns:
            live = self._living
            return None if live is None else _least_and_greatest([partition_column(self.files, column).filter(_any(live))] * 2)
        if self._has_vectors:
            return None
        statistics = self._statistics(column, "minValues", "maxValues", "nullCount")
        name = column.physical_name
        rows, nulls, least, greatest, tight = (
            pc.struct_field(statistics, path)
            for path in (["numRecords"], ["nullCount", name], ["minValues", name], ["maxValues", name], ["tightBounds"])
        )
        are_exact = pc.and_(pc.and_(least.is_valid(), greatest.is_valid()), pc.fill_null(tight, scalar(True)))
        only_nulls = pc.fill_null(pc.equal(rows, nulls), scalar(False))
        if not pc.all(pc.or_(are_exact, only_nulls), min_count=0).as_py():
            return None
        with_values = pc.invert(only_nulls)
        return _least_and_greatest([least.filter(with_values), greatest.filter(with_values)])

    def living_files(self) -> pa.Table | None:
        """Return the files with live rows, or None if the log does not determine them; their partition values are those of the table."""
        live = self._living
        return None if live is None else self.files.filter(_any(live))

    def first(self, count: int) -> pa.Table | None:
        """Return the first files of the log that contain at least `count` live rows; None if too few files have a known number of rows."""
        live = self._live_rows
        enough = pc.greater_equal(pc.cumulative_sum(pc.fill_null(live, scalar(0))), scalar(count))
        place = pc.index(enough, scalar(True)).as_py()
        return None if place < 0 else self.files.slice(0, place + 1)

    # -- parts -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _has_vectors(self) -> bool:
        return bool(self.files["deletionVector"].null_count < len(self.files))

    @cached_property
    def _live_rows(self) -> pa.ChunkedArray:
        """See `live_row_counts`."""
        return live_row_counts(self.files)

    @cached_property
    def _living(self) -> pa.ChunkedArray | None:
        return None if self._live_rows.null_count else self._live_rows

    def _statistics(self, column: StructField, *kinds: str) -> pa.ChunkedArray:
        values, name = to_arrow_type(column.data_type), column.physical_name
        members = [(kind, pa.struct([(name, pa.int64() if kind == "nullCount" else values)])) for kind in kinds]
        return statistics_of(self.files, pa.struct([("numRecords", pa.int64()), ("tightBounds", pa.bool_()), *members]))


def _any(live: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.greater(live, scalar(0))


def _least_and_greatest(of: Sequence[pa.ChunkedArray | pa.Array]) -> Bounds:
    least, greatest = of
    return Bounds(pc.min(least).as_py(), pc.max(greatest).as_py())


def live_row_counts(files: pa.Table) -> pa.ChunkedArray:
    """Return the number of live rows of each file; null if the log does not have it.

    Args:
        files: `tahoe.log.replay.FILES_SCHEMA`.
    """
    rows = pc.struct_field(statistics_of(files, pa.struct([("numRecords", pa.int64())])), ["numRecords"])
    rows = pc.if_else(pc.less(rows, 0), scalar(None, pa.int64()), rows)
    vectors = files["deletionVector"]
    if vectors.null_count == len(files):
        return rows
    dead = pc.struct_field(vectors, ["cardinality"]).cast(pa.int64())
    return pc.subtract(rows, pc.fill_null(dead, scalar(0)))
