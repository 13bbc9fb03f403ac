"""`Readable`: the methods of `tahoe.api.table.Table` that return rows: Arrow, batches, pandas, Polars, DuckDB, the PyCapsule interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

from tahoe.base.argument_checks import checked_arguments

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
        """Return the rows for which `filter` is true; files that cannot contain any are not read.

        Args:
            filter: SQL text such as ``month = 3 and dep_delay > 60``, or a predicate. It allows the same expressions as the condition of a
                DELETE: ``dep_delay + arr_delay > 60`` is true for the same rows as on Spark, although it cannot skip files.
            columns: names in the order of the result; None for all.
            row_ids: add ``_row_id``, which a row keeps until it is deleted, and ``_row_commit_version``, the version that inserted or
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
        """Return the rows of `to_arrow` as a stream of batches in file order, for tables larger than memory.

        A few files are read ahead in parallel, up to about 16 MB of rows; reading pauses while no batch is requested. Dropping an
        unfinished reader (``del reader``) frees its memory; Arrow's own ``close()`` has no effect on it.

        Args:
            limit: the greatest number of rows.
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
        """Return the rows of `to_batches` as a relation of DuckDB (`pip install duckdb`), which reads them when it is queried.

        The version is fixed now, and each query reads it again as a stream. DuckDB does not push filters or columns into a stream: pass
        `filter` and `columns` here to read less.

        Args:
            connection: the connection of the relation; None for DuckDB's default connection.
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
    """Return the predicate that skips files for a user's filter. Raises `InvalidRequest` for text that cannot be parsed."""
    if filter is None:
        return None
    from tahoe.expr.row_condition import row_condition

    return row_condition(filter, snapshot.schema).predicate
