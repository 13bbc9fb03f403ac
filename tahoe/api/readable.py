"""`Readable`: the methods of `Table` that return rows: as Arrow data, batches, pandas, Polars, DuckDB, or by the PyCapsule interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.clock import Moment
from tahoe.base.lazy import late_modules
from tahoe.base.method_options import arguments_of
from tahoe.snapshot.read_options import BatchOptions, DuckdbOptions, ReadOptions, scan_of

if TYPE_CHECKING:
    from datetime import date, datetime

    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from tahoe.base.clock import Clock
    from tahoe.snapshot import to_frames
    from tahoe.snapshot.scan import Scan
    from tahoe.snapshot.snapshot import Snapshot
else:
    (to_frames,) = late_modules("tahoe.snapshot", "to_frames")


@checked_arguments
class Readable(ABC):
    """Rows of a snapshot in the forms of other libraries: a base class of `Table` and of `TableInTransaction`."""

    clock: Clock
    time_zone: str

    @abstractmethod
    def snapshot(self, version: int | None = None, timestamp: str | date | datetime | None = None) -> Snapshot:
        """Return the newest version, or an older one by number or by time."""

    @arguments_of(ReadOptions)
    def to_arrow(self, options: ReadOptions) -> pa.Table:
        """Return the rows for which `filter` is true; files that cannot contain any are not read."""
        return self._scan(options).to_arrow()

    @arguments_of(BatchOptions)
    def to_batches(self, options: BatchOptions) -> pa.RecordBatchReader:
        """Return the rows of `to_arrow` as a stream of batches in file order, for tables larger than memory.

        A few files are read ahead in parallel, up to about 16 MB of rows; reading pauses while no batch is requested. Dropping an
        unfinished reader (``del reader``) frees its memory; Arrow's own ``close()`` has no effect on it.
        """
        return self._scan(options).to_batches(options.limit)

    @arguments_of(BatchOptions)
    def to_pandas(self, options: BatchOptions) -> pd.DataFrame:
        """As `to_batches`, as a frame of pandas (`pip install pandas`): all rows in memory, with a plain index from 0."""
        return to_frames.to_pandas(self._scan(options), options.limit)

    @arguments_of(BatchOptions)
    def to_polars(self, options: BatchOptions) -> pl.LazyFrame:
        """As `to_batches`, as a lazy frame of Polars (`pip install polars`): nothing is read before `collect`.

        The version is fixed now. Only the columns that a query needs are read; of its filters, comparisons of a column with a constant and
        tests for null leave out files and rows, and Polars does the rest.
        """
        return to_frames.to_polars(self._scan(options), options.limit)

    @arguments_of(DuckdbOptions)
    def to_duckdb(self, options: DuckdbOptions) -> duckdb.DuckDBPyRelation:
        """Return the rows of `to_batches` as a relation of DuckDB (`pip install duckdb`), which reads them when it is queried.

        The version is fixed now, and each query reads it again as a stream. DuckDB does not push filters or columns into a stream: pass
        `filter` and `columns` here to read less.
        """
        return to_frames.to_duckdb(self._scan(options), options.limit, options.connection)

    def __arrow_c_schema__(self) -> object:
        """Return the newest version's Arrow schema by the PyCapsule interface."""
        return to_frames.ScanStream(self.snapshot().scan()).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the newest version's rows by Arrow's PyCapsule interface, so that libraries accept a table: ``pa.table(table)``,
        ``pl.DataFrame(table)``, and DuckDB's ``SELECT * FROM flights``."""
        return to_frames.ScanStream(self.snapshot().scan()).__arrow_c_stream__(requested_schema)

    def _scan(self, options: ReadOptions) -> Scan:
        return scan_of(self.snapshot(options.version, options.timestamp), options, self._moment())

    def _moment(self) -> Moment:
        return Moment(self.clock.now_ms(), self.time_zone)
