"""`Scan`: snapshot + predicate + columns → the files to read as `ReadTask` values; readable as Arrow without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import pyarrow as pa

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.html import html_pairs, html_part
from tahoe.base.lazy import cached_property, pc
from tahoe.expr.tree.expression import Expression, columns
from tahoe.expr.tree.predicate import Predicate, references
from tahoe.log.replay import add_files, files_table
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.protocol.row_tracking import ENABLED, materialized_columns
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import StructType
from tahoe.snapshot.arrow_reader import BATCH_ROWS, INTO_MEMORY, NO_EXTRA_COLUMNS, USUAL, ExtraColumns, FileReadOptions, ReadTask
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.read_ahead import read_ahead
from tahoe.snapshot.read_errors import located_batches
from tahoe.snapshot.small_files import joined, together
from tahoe.store.files_ahead import with_files_ahead
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore

ROW_ID = "_row_id"
"""The column of `Scan` and `Table.to_arrow` with a row's stable id; on Spark ``_metadata.row_id``."""
ROW_COMMIT_VERSION = "_row_commit_version"
"""Their column with the version that inserted or last changed a row; on Spark ``_metadata.row_commit_version``."""
MOST_BYTES_AHEAD = 16 * 1024 * 1024
"""The greatest size of the rows that were read ahead and wait for the caller."""


class ScannedVersion(Protocol):
    """Interface of a version to a scan. `tahoe.snapshot.snapshot.Snapshot` implements it, but creates scans and cannot be imported here."""

    @property
    def store(self) -> LogStore:
        """Where the table is."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def config(self) -> TableConfig:
        """Protocol and metadata."""

    @property
    def schema(self) -> StructType:
        """The logical schema."""

    def files_matching(self, predicate: Predicate | None) -> pa.Table:
        """Return the live files that may contain rows for which `predicate` is true; all of them for None."""

    def naming_origins(self) -> AbstractContextManager[None]:
        """Add the version and the log file of the faulty action to the errors about the log's contents that are raised inside."""


@dataclass(frozen=True)
class BareVersion:
    """A version without its file list, to read files that are already known; a plain value that can be sent to another process."""

    store: LogStore
    version: int
    config: TableConfig

    @property
    def schema(self) -> StructType:
        """The logical schema."""
        return self.config.schema

    def files_matching(self, predicate: Predicate | None) -> pa.Table:
        """Return no files: the caller passes the files to read."""
        return files_table(())

    def naming_origins(self) -> AbstractContextManager[None]:
        """Add nothing to errors: the log's files are not known here."""
        return nullcontext()


@dataclass(frozen=True)
@checked_arguments
class Scan:
    """A read of some rows and columns of one version.

    Args:
        predicate: rows for which it is not true may be left out; the Arrow reader leaves out all of them.
        columns: logical names in the order of the result; None for all.
        row_ids: add `ROW_ID` and `ROW_COMMIT_VERSION`, longs, after the columns; for tables with row tracking.
        condition: the full condition, applied to the rows for which `predicate` is true; None if `predicate` expresses all of it.
    """

    snapshot: ScannedVersion
    predicate: Predicate | None = None
    columns: tuple[str, ...] | None = None
    row_ids: bool = False
    condition: Expression | None = None

    def _repr_html_(self) -> str:
        rows = {
            "table": self.snapshot.store.url,
            "version": str(self.snapshot.version),
            "columns": ", ".join(column.name for column in self.schema),
            "files": f"{len(self.files()):,}",
            "bytes": f"{pc.sum(self.files()['size'], min_count=0).as_py():,}",
        }
        return html_part(html_pairs(rows, title="Scan"))

    @cached_property
    def schema(self) -> StructType:
        """The logical schema of the result. An unknown column is `InvalidRequest`."""
        schema = self.snapshot.schema
        return schema if self.columns is None else schema.select(list(self.columns))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The schema of the batches: `schema`, and the row tracking columns if `row_ids` is set."""
        schema = to_arrow_schema(self.schema)
        if not self.row_ids:
            return schema
        for name in (ROW_ID, ROW_COMMIT_VERSION):
            if self.snapshot.schema.find(name) is not None:
                raise InvalidRequest(
                    f"Table {self.snapshot.store.url} has a column '{name}' itself, so row ids cannot be read beside it. Rename the column.",
                    code="TAHOE_RESERVED_COLUMN_NAME",
                    table=self.snapshot.store.url,
                    column=name,
                )
            schema = schema.append(pa.field(name, pa.int64()))
        return schema

    def files(self) -> pa.Table:
        """Return the live files that may contain matching rows (`tahoe.log.replay.FILES_SCHEMA`)."""
        return self.snapshot.files_matching(self.predicate)

    def add_files(self) -> list[AddFile]:
        """Return the files of `files` as `add` actions."""
        return add_files(self.files())

    def tasks(self) -> list[ReadTask]:
        """Return one task a file, for `tahoe.snapshot.arrow_reader`; plain values that can be sent to another process."""
        return [self._task(add) for add in self.add_files()]

    def to_batches(self, limit: int | None = None) -> pa.RecordBatchReader:
        """Return the matching rows as a stream, file by file, in `arrow_schema`; a few files are read ahead, within `MOST_BYTES_AHEAD`.

        The reader raises read errors unchanged. Reading pauses while no batch is requested, and dropping the reader frees its memory.
        (Arrow's `close()` has no effect on a reader whose batches come from Python: use ``contextlib.closing(scan.batches())`` to end the
        read at a definite point.)

        Args:
            limit: the greatest number of rows; files that are not needed for them are not read.
        """
        return pa.RecordBatchReader.from_batches(self.arrow_schema, self.batches(limit))

    def batches(self, limit: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the batches of `to_batches`, without an Arrow reader."""
        if limit is not None and limit < 0:
            raise InvalidRequest(f"limit must be 0 or more, found {limit}.", code="DELTA_ILLEGAL_OPTION")
        return self._batches(self.tasks()) if limit is None else self._first_rows(limit)

    def _first_rows(self, limit: int) -> Iterator[pa.RecordBatch]:
        if not limit:
            return
        # Few rows are likely to be in the first file: nothing is read ahead for them.
        with closing(self._batches(self.tasks(), ahead=limit > BATCH_ROWS)) as batches:
            for batch in batches:
                yield batch.slice(0, limit)
                limit -= batch.num_rows
                if limit <= 0:
                    return

    def read(self, adds: Sequence[AddFile]) -> pa.Table:
        """Read the matching rows of these files only."""
        batches = self._batches([self._task(add) for add in adds], options=INTO_MEMORY)
        return pa.Table.from_batches(batches, self.arrow_schema)

    def batches_of(self, adds: Sequence[AddFile]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of these files only, in their order."""
        return self._batches([self._task(add) for add in adds])

    def read_with_positions(self, add: AddFile, position_column: str) -> Iterator[pa.RecordBatch]:
        """Read all live rows of one file, regardless of the predicate; the last column, a long, has their positions in the file."""
        extra = ExtraColumns(row_index_column=position_column)
        batches = self._data_files.read(self._task(add), self.schema, extra=extra, options=INTO_MEMORY)
        return self._located(batches, add.path)

    def read_row_ids(self, add: AddFile) -> pa.Table:
        """Read the row id and the row commit version of each live row of one file, under the names of the materialized columns.

        Raises `InvalidRequest` if the table does not track rows.
        """
        tracking = replace(self, row_ids=True)._row_tracking
        names = tracking.materialized_row_id_column, tracking.materialized_row_commit_version_column
        batches = self._data_files.read(self._task(add), StructType(()), extra=ExtraColumns(*names, *names))
        schema = pa.schema([pa.field(str(name), pa.int64()) for name in names])
        return pa.Table.from_batches(self._located(batches, add.path), schema)

    def read_to_move(
        self,
        adds: Sequence[AddFile],
        *,
        ahead: bool = True,
        most_row_groups: int | None = None,
        then: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Read all live rows of these files, file by file, to write them to other files.

        If the table tracks rows, the batches include the materialized columns of row ids and row commit versions.

        Args:
            ahead: read some files in parallel, within `MOST_BYTES_AHEAD`.
            most_row_groups: read only so many row groups of each file, evenly spaced from its beginning to its end.
            then: transforms each batch, in the thread that has read it.
        """
        names = materialized_columns(self.snapshot.config)
        tracking = NO_EXTRA_COLUMNS if names is None else ExtraColumns(*(2 * (names.row_id, names.row_commit_version)))
        tasks = [self._task(add) for add in adds]
        files = DataFiles(_files_ahead(self.snapshot.store, tasks), self.snapshot.config, ahead and _is_uneven(tasks))
        # The first row is not urgent here, and writing has a cost for each batch.
        moved = [partial(self._moved_together, files, some, tracking, most_row_groups) for some in together(tasks)]
        streams = moved if then is None else [partial(_each, then, stream) for stream in moved]
        return self._in_order(streams, tasks) if ahead else joined(streams)

    def _moved_together(
        self, files: DataFiles, tasks: Sequence[ReadTask], tracking: ExtraColumns, most_row_groups: int | None
    ) -> Iterator[pa.RecordBatch]:
        rows = files.tiny.rows(tasks) if tracking == NO_EXTRA_COLUMNS and most_row_groups is None else None
        if rows is not None:
            return iter(rows)
        return joined([partial(self._moved, files, task, tracking, most_row_groups) for task in tasks])

    def _moved(
        self, files: DataFiles, task: ReadTask, tracking: ExtraColumns, most_row_groups: int | None
    ) -> Iterator[pa.RecordBatch]:
        rows = files.read(task, self.schema, extra=tracking, options=FileReadOptions(most_row_groups=most_row_groups))
        return self._located(rows, task.name)

    def to_arrow(self) -> pa.Table:
        """Read all matching rows. Timestamps are in microseconds, ``timestamp`` in UTC."""
        return pa.Table.from_batches(self._batches(self.tasks(), options=INTO_MEMORY), self.arrow_schema)

    def _batches(
        self, tasks: Sequence[ReadTask], *, ahead: bool = True, options: FileReadOptions = USUAL
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows of the tasks in their order; a few files are read ahead in parallel if that is faster."""
        # A new `DataFiles`, so that its cached vectors are freed after the last row.
        store = _files_ahead(self.snapshot.store, tasks) if ahead else self.snapshot.store
        files = DataFiles(store, self.snapshot.config, not ahead or _is_uneven(tasks))
        names = self.arrow_schema.names
        read_schema = self._read_schema()
        streams = [partial(self._read, files, task, read_schema, options) for task in tasks]
        with closing(self._in_order(streams, tasks, ahead=ahead)) as batches:
            for batch in batches:
                yield batch if batch.num_columns == len(names) else batch.select(names)

    def _in_order(
        self, streams: Sequence[Callable[[], Iterator[pa.RecordBatch]]], tasks: Sequence[ReadTask], *, ahead: bool = True
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the batches of the streams, each of one or more tasks, read ahead if that is faster."""
        worth_it = max(_BYTES_WORTH_THREADS, _BYTES_WORTH_A_THREAD * len(tasks))
        small = self.snapshot.store.url.startswith(_NEAR) and sum(task.size or 0 for task in tasks) <= worth_it
        if small or not ahead or len(streams) == 1:
            return (batch for stream in streams for batch in stream())
        return read_ahead(streams, threads=_THREADS, most_open=_THREADS, most_bytes=MOST_BYTES_AHEAD)

    def _read_schema(self) -> StructType:
        """Return the schema to read: the columns of the result, and those that predicate and condition need."""
        needed = {path[0] for path in references(self.predicate)} if self.predicate is not None else set()
        needed |= {name for _, name in columns(self.condition)} if self.condition is not None else set()
        names = {column.name for column in self.schema}
        extra = [self.snapshot.schema.field(name) for name in sorted(needed)]
        more = tuple({column.name: column for column in extra if column.name not in names}.values())
        return StructType((*self.schema.fields, *more))

    def _read(self, files: DataFiles, task: ReadTask, schema: StructType, options: FileReadOptions) -> Iterator[pa.RecordBatch]:
        batches = files.read(task, schema, self.predicate, self._row_tracking, options)
        return self._located(batches if self.condition is None else self._fulfilling(batches, self.condition), task.name)

    def _fulfilling(self, batches: Iterator[pa.RecordBatch], condition: Expression) -> Iterator[pa.RecordBatch]:
        from tahoe.expr.compute.compute import compute_mask

        for batch in batches:
            yield batch.filter(compute_mask(condition, pa.Table.from_batches([batch])))

    def _located(self, batches: Iterator[pa.RecordBatch], file: str) -> Iterator[pa.RecordBatch]:
        return located_batches(batches, self.snapshot.store.url, self.snapshot.version, file)

    @property
    def _data_files(self) -> DataFiles:
        return DataFiles(self.snapshot.store, self.snapshot.config)

    @cached_property
    def _row_tracking(self) -> ExtraColumns:
        if not self.row_ids:
            return NO_EXTRA_COLUMNS
        columns = materialized_columns(self.snapshot.config)
        if columns is None:
            raise InvalidRequest(
                f"Table {self.snapshot.store.url} does not track rows, so they have no ids. Set {ENABLED} = true first.",
                code="TAHOE_ROW_TRACKING_NOT_ENABLED",
                table=self.snapshot.store.url,
            )
        return ExtraColumns(ROW_ID, ROW_COMMIT_VERSION, columns.row_id, columns.row_commit_version)

    def _task(self, add: AddFile) -> ReadTask:
        return read_task(self.snapshot, add)


def read_task(version: ScannedVersion, add: AddFile) -> ReadTask:
    """Return the task that reads a file of a version."""
    with version.naming_origins():
        name = decode_path(add.path, version.store.url, outside=True)
    return ReadTask(
        name=name,
        size=add.size,
        partition_values=dict(add.partition_values),
        deletion_vector=add.deletion_vector,
        base_row_id=add.base_row_id,
        default_row_commit_version=add.default_row_commit_version,
        stats=add.stats,
    )


def _each(
    then: Callable[[pa.RecordBatch], pa.RecordBatch], stream: Callable[[], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    return map(then, stream())


def _is_uneven(tasks: Sequence[ReadTask]) -> bool:
    """Whether reading files side by side leaves processors without work: there are few files, or one is larger than its share."""
    sizes = [task.size or 0 for task in tasks]
    return sum(sizes) < _THREADS * max(sizes, default=0)


def _files_ahead(store: LogStore, tasks: Sequence[ReadTask]) -> LogStore:
    return with_files_ahead(store, ((task.name, task.size) for task in tasks))


# Reading a few small local files is faster than starting threads.
_NEAR = ("file:", "memory:")
_BYTES_WORTH_THREADS = 1 << 20
# For smaller files most of the time is spent in Python, which runs in one thread at a time.
_BYTES_WORTH_A_THREAD = 16 << 10
_THREADS = os.cpu_count() or 1
