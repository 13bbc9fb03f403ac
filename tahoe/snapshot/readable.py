"""The ways to read what has a snapshot: Arrow, batches, pandas, Polars, DuckDB, the PyCapsule interface. `tahoe.table.Table` has them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

from tahoe.argument_checks import checked_arguments

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from tahoe.expr.condition_forms import Condition
    from tahoe.expr.tree.predicate import Predicate
    from tahoe.snapshot.scan import Scan
    from tahoe.snapshot.snapshot import Snapshot

__all__ = ["Readable", "skipping_of"]


@checked_arguments
class Readable(ABC):
    """Rows of a snapshot, in the forms that others take. All methods read one version, the newest unless another is named."""

    @abstractmethod
    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """The newest version, or an old one by number or by time."""

    def to_arrow(
        self,
        filter: Condition | None = None,
        columns: Sequence[str] | None = None,
        *,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        row_ids: bool = False,
    ) -> pa.Table:
        """The rows for which `filter` is true; files that cannot hold any are not read.

        Args:
            filter: SQL text such as ``month = 3 and dep_delay > 60``, or a predicate. It may hold what the condition of a DELETE may:
                ``dep_delay + arr_delay > 60`` is true for the same rows as on Spark, though no file can be left out by it.
            columns: names in the order wanted; None for all.
            row_ids: add ``_row_id``, which a row keeps as long as it lives, and ``_row_commit_version``, the version that inserted or
                last changed it; for tables with ``delta.enableRowTracking``.
        """
        return self._scan(filter, columns, version, timestamp, row_ids).to_arrow()

    def to_batches(
        self,
        filter: Condition | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        row_ids: bool = False,
    ) -> pa.RecordBatchReader:
        """As `to_arrow`, as a stream of batches in file order: for tables larger than memory.

        A few files are read ahead side by side, within some 16 MB of rows; a reader that nobody asks reads no further. What is left in the
        middle is freed when the reader is dropped (``del reader``); Arrow's own ``close()`` does nothing for it.

        Args:
            limit: at most so many rows.
        """
        return self._scan(filter, columns, version, timestamp, row_ids).to_batches(limit)

    def to_pandas(
        self,
        filter: Condition | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        row_ids: bool = False,
    ) -> pd.DataFrame:
        """As `to_batches`, as a frame of pandas (`pip install pandas`): all rows in memory, with a plain index from 0."""
        from tahoe.snapshot.to_frames import to_pandas

        return to_pandas(self._scan(filter, columns, version, timestamp, row_ids), limit)

    def to_polars(
        self,
        filter: Condition | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        row_ids: bool = False,
    ) -> pl.LazyFrame:
        """As `to_batches`, as a lazy frame of Polars (`pip install polars`): nothing is read before `collect`.

        The version is fixed now. Only the columns that a query needs are read; of its filters, comparisons of a column with a constant and
        tests for null leave out files and rows, and Polars does the rest.
        """
        from tahoe.snapshot.to_frames import to_polars

        return to_polars(self._scan(filter, columns, version, timestamp, row_ids), limit)

    def to_duckdb(
        self,
        filter: Condition | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        row_ids: bool = False,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> duckdb.DuckDBPyRelation:
        """As `to_batches`, as a relation of DuckDB (`pip install duckdb`): nothing is read before it is asked for.

        The version is fixed now, and each query reads it anew as a stream. DuckDB hands a stream neither filters nor columns: give here
        what need not be read.

        Args:
            connection: whose relation it is; None for DuckDB's default one.
        """
        from tahoe.snapshot.to_frames import to_duckdb

        return to_duckdb(self._scan(filter, columns, version, timestamp, row_ids), limit, connection)

    def __arrow_c_schema__(self) -> object:
        """The newest version's Arrow schema by the PyCapsule interface."""
        from tahoe.snapshot.to_frames import ScanStream

        return ScanStream(self.snapshot().scan()).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The newest version's rows by Arrow's PyCapsule interface, so that libraries take a table as it is: ``pa.table(table)``,
        ``pl.DataFrame(table)``, and DuckDB's ``SELECT * FROM flights``."""
        from tahoe.snapshot.to_frames import ScanStream

        return ScanStream(self.snapshot().scan()).__arrow_c_stream__(requested_schema)

    def _scan(
        self,
        filter: Condition | None,
        columns: Sequence[str] | None,
        version: int | None,
        timestamp: str | date | datetime | None,
        row_ids: bool,
    ) -> Scan:
        snapshot = self.snapshot(version, timestamp)
        if filter is None:
            return snapshot.scan(None, columns, row_ids=row_ids)
        from tahoe.expr.row_condition import row_condition

        condition = row_condition(filter, snapshot.schema)
        predicate = None if condition.is_for_all_rows else condition.predicate
        return snapshot.scan(predicate, columns, row_ids=row_ids, condition=condition.beyond_predicate)


def skipping_of(filter: Condition | None, snapshot: Snapshot) -> Predicate | None:
    """What files are skipped by for a filter as users give it. Raises `InvalidRequest` for text that is not understood."""
    if filter is None:
        return None
    from tahoe.expr.row_condition import row_condition

    return row_condition(filter, snapshot.schema).predicate
