"""Statistics of each column, from the statistics of the live files in the log; no data file is read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from tahoe.base.html import html_part, html_table
from tahoe.base.lazy import pc
from tahoe.base.wording import counted
from tahoe.protocol.skipping import partition_column, statistics_of
from tahoe.protocol.statistics.bounds import has_bounds
from tahoe.protocol.statistics.collect import stats_arrow_type
from tahoe.schema.types import StructField, leaves
from tahoe.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """The statistics of one column, over all live files.

    Args:
        column: a nested column is written as ``a.b``.
        files: the number of files with statistics of the column; partition columns have them in all files.
        nulls: the number of null values in these files, deleted rows included; None if no file has it, and for partition columns.
        least, greatest: the bounds in these files, as Python values. Bounds of strings may be shortened, and those of files with deleted rows
            may be too wide. None if a file with values lacks them.
    """

    column: str
    data_type: str
    files: int
    nulls: int | None
    least: Any
    greatest: Any


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """The statistics of a version.

    Args:
        files: the number of live files.
        files_without: the number of files without a row count.
        rows: the live rows of the other files.
    """

    table: str
    version: int
    files: int
    files_without: int
    rows: int
    columns: tuple[ColumnStatistics, ...]

    def _repr_html_(self) -> str:
        names = [field.name for field in fields(ColumnStatistics)]
        title = f"{counted(self.rows, 'row')} in version {self.version} of {self.table}"
        return html_part(html_table(names, [[getattr(column, name) for name in names] for column in self.columns], title=title))


def statistics_in_log(snapshot: Snapshot) -> TableStatistics:
    """Return the statistics in the log of a version."""
    files = snapshot.files()
    columns = list(leaves(snapshot.schema))
    statistics = statistics_of(files, stats_arrow_type(snapshot.schema, columns))  # parsed once for all columns
    rows = pc.struct_field(statistics, ["numRecords"])
    deleted = pc.fill_null(pc.struct_field(files["deletionVector"], ["cardinality"]).cast(pa.int64()), 0)
    live = pc.sum(pc.subtract(rows, deleted), min_count=0).as_py()
    described = tuple(_statistics(snapshot, files, statistics, leaf) for leaf in columns)
    return TableStatistics(snapshot.store.url, snapshot.version, len(files), rows.null_count, live, described)


def _statistics(
    snapshot: Snapshot, files: pa.Table, statistics: pa.ChunkedArray, leaf: tuple[StructField, ...]
) -> ColumnStatistics:
    name, data_type = ".".join(column.name for column in leaf), leaf[-1].data_type
    if len(leaf) == 1 and name in snapshot.partition_columns:
        values = partition_column(files, leaf[0])
        bounds = (pc.min(values).as_py(), pc.max(values).as_py()) if has_bounds(data_type) else (None, None)
        return ColumnStatistics(name, str(data_type), len(files), None, *bounds)
    path = [column.physical_name for column in leaf]
    nulls = pc.struct_field(statistics, ["nullCount", *path])
    known = len(nulls) - nulls.null_count
    count = pc.sum(nulls).as_py() if known else None
    if not has_bounds(data_type):
        return ColumnStatistics(name, str(data_type), known, count, None, None)
    least, greatest = (pc.struct_field(statistics, [member, *path]) for member in ("minValues", "maxValues"))
    return ColumnStatistics(
        name,
        str(data_type),
        known,
        count,
        *_extremes(least, greatest, pc.equal(nulls, pc.struct_field(statistics, ["numRecords"]))),
    )


def _extremes(least: pa.ChunkedArray, greatest: pa.ChunkedArray, only_nulls: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the bounds of all files; a bound that a file with values lacks is unknown."""
    with_values = pc.invert(pc.fill_null(only_nulls, False))
    lows, highs = least.filter(with_values), greatest.filter(with_values)
    return None if lows.null_count else pc.min(lows).as_py(), None if highs.null_count else pc.max(highs).as_py()
