"""The options of a read, each defined once for all methods of `Table` that return rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from tahoe.base.clock import Moment
from tahoe.base.lazy import late_modules

if TYPE_CHECKING:
    from datetime import date, datetime

    import duckdb

    from tahoe.expr import row_condition
    from tahoe.expr.condition_forms import Condition
    from tahoe.expr.tree.predicate import Predicate
    from tahoe.snapshot.scan import Scan
    from tahoe.snapshot.snapshot import Snapshot
else:
    # Reads without a filter do not need the parser of conditions.
    (row_condition,) = late_modules("tahoe.expr", "row_condition")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The rows and columns to read.

    Args:
        filter: SQL text such as ``month = 3 and dep_delay > 60``, or a predicate. It allows the same expressions as the condition of a
            DELETE: ``dep_delay + arr_delay > 60`` is true for the same rows as on Spark, although it cannot skip files.
        columns: names in the order of the result; None for all.
        version, timestamp: the version to read, by its number or as of a time; the newest by default.
        row_ids: add ``_row_id``, which a row keeps until it is deleted, and ``_row_commit_version``, the version that inserted or last
            changed it; for tables with ``delta.enableRowTracking``.
    """

    filter: Condition | None = None
    columns: Sequence[str] | None = None
    _: KW_ONLY
    version: int | None = None
    timestamp: str | date | datetime | None = None
    row_ids: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions(ReadOptions):
    """A read that may end early.

    Args:
        limit: the greatest number of rows.
    """

    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuckdbOptions(BatchOptions):
    """A read by DuckDB.

    Args:
        connection: the connection of the relation; None for DuckDB's default connection.
    """

    connection: duckdb.DuckDBPyConnection | None = None


def scan_of(snapshot: Snapshot, options: ReadOptions, moment: Moment) -> Scan:
    """Return the scan of a version with the options' filter, columns and row ids.

    Args:
        moment: the time of the read, for ``current_date()`` and the like in the filter, and its time zone.
    """
    if options.filter is None:
        return snapshot.scan(None, options.columns, row_ids=options.row_ids)
    condition = row_condition.row_condition(options.filter, snapshot.schema, moment.time_zone, moment.ms)
    predicate = None if condition.is_for_all_rows else condition.predicate
    return snapshot.scan(predicate, options.columns, row_ids=options.row_ids, condition=condition.beyond_predicate)


def skipping_of(filter: Condition | None, snapshot: Snapshot, moment: Moment) -> Predicate | None:
    """Return the predicate that skips files for a user's filter. Raises `InvalidRequest` for text that cannot be parsed."""
    if filter is None:
        return None
    return row_condition.row_condition(filter, snapshot.schema, moment.time_zone, moment.ms).predicate
