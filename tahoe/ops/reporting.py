"""Reports without Spark: functions that are methods of `Table`. They read the log, and rows only where they say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tahoe.base.lazy import late_modules
from tahoe.base.progress import shown
from tahoe.ops.tables.requests import OpenTable

if TYPE_CHECKING:
    from tahoe.ops.reports import column_statistics as column_statistics_module
    from tahoe.ops.reports import storage_use as storage_use_module
    from tahoe.ops.reports import version_diff
else:
    column_statistics_module, storage_use_module, version_diff = late_modules(
        "tahoe.ops.reports", "column_statistics", "storage_use", "version_diff"
    )


def diff(
    self: OpenTable, start: int, end: int | None = None, *, rows: bool = False, key: Sequence[str] = (), limit: int = 20
) -> version_diff.VersionDiff:
    """Return the difference between two versions: schema, properties, files and rows.

    Args:
        start, end: the versions; `end` is by default the newest.
        rows: compare the rows of the files that only one of the versions has; they must fit in memory.
        key: columns that identify a row, to recognize updated rows; implies `rows`.
        limit: the maximum number of sample rows.

    Raises `InvalidRequest`: a key column that a version lacks, or a key that does not identify the rows (`TAHOE_DIFF_KEY`).
    """
    newest = self.snapshot()
    after = newest if end is None else self.snapshot(end)
    comparison = version_diff.RowComparison(key, limit) if rows or key else None
    with shown(self.clock) as progress:
        return version_diff.diff_of(self.snapshot(start), after, comparison, progress)


def column_statistics(self: OpenTable, version: int | None = None) -> column_statistics_module.TableStatistics:
    """Return the number of rows, and each column's nulls and bounds, as the log has them; by default of the newest version."""
    return column_statistics_module.statistics_in_log(self.snapshot(version))


def storage_use(self: OpenTable) -> storage_use_module.StorageUse:
    """Return the number and size of the files below the table's folder, by kind; lists the folder once."""
    with shown(self.clock) as progress:
        return storage_use_module.storage_use(self.snapshot(), progress)
