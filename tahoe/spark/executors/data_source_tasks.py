"""The tasks of the portable data source: read rows of files, and write rows to files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Any, Protocol, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.lazy import pc
from tahoe.expr.tree.predicate import Predicate
from tahoe.ops.write.completion import Defaults, TaskCompletion, refuse_incomplete
from tahoe.ops.write.writer import WriterOptions, write_arrow
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.default_values import constant_default
from tahoe.protocol.column_values.identity import IdentityColumn, identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import violated
from tahoe.schema.arrow import to_arrow_schema
from tahoe.schema.types import StructType
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import ChangedFile, changed_rows
from tahoe.snapshot.data_reader import DataFiles
from tahoe.snapshot.read_errors import located_batches
from tahoe.snapshot.scan import BareVersion, Scan
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile

_ROWS = 10_000
_MOST_BYTES, _LEAST_BYTES = 128 * 1024 * 1024, 4 * 1024 * 1024
"""Of the files of one task. A task for less costs more than it saves."""
_SLACK = 1.1
"""So that files of nearly one size do not need one more task than there are cores."""
_USUAL_CORES = 16
"""The number of cores of a server whose number is not known."""


class _Sized(Protocol):
    @property
    def size(self) -> int | None:
        """The size in bytes."""


_File = TypeVar("_File", bound=_Sized)


def binned(files: Iterable[_File], cores: int = _USUAL_CORES) -> Iterator[tuple[_File, ...]]:
    """Yield the files of each task, in their order.

    Args:
        cores: for which there are enough tasks, unless the files are small.
    """
    files, files_of_bin = list(files), list[_File]()
    most = min(_MOST_BYTES, max(_LEAST_BYTES, round(sum(file.size or 0 for file in files) / cores * _SLACK)))
    size = 0
    for file in files:
        more = file.size or 0
        if files_of_bin and size + more > most:
            yield tuple(files_of_bin)
            files_of_bin, size = [], 0
        files_of_bin.append(file)
        size += more
    if files_of_bin:
        yield tuple(files_of_bin)


def rows_of_files(
    files: DataFiles, schema: StructType, predicate: Predicate | None, version: int, tasks: Iterable[ReadTask]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files of a snapshot."""
    target = to_arrow_schema(schema)
    for task in tasks:
        for batch in located_batches(files.read(task, schema, predicate), files.store.url, version, task.name):
            yield batch if batch.schema.equals(target) else batch.cast(target)


def rows_of_changes(
    store: LogStore, config: TableConfig, times: Mapping[int, int], files: tuple[ChangedFile, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a change data feed. The arguments are those of `tahoe.snapshot.changes.changed_rows`."""
    yield from changed_rows(store, config, times, files)


def rows_of_batch(read: BareVersion, files: tuple[Any, ...], times: Mapping[int, int] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files of a stream's batch, or their changes.

    Args:
        files: instances of `IndexedFile`, or of `ChangedFile` if `times` has the commit timestamps of their versions.
    """
    if times is not None:
        yield from changed_rows(read.store, read.config, times, files)
        return
    target, indexed = to_arrow_schema(read.schema), tuple[IndexedFile, ...](files)
    for version, of_version in groupby(indexed, lambda file: file.version):
        scan = Scan(BareVersion(read.store, version, read.config))
        for batch in scan.batches_of([file.action for file in of_version if isinstance(file.action, AddFile)]):
            yield batch if batch.schema.equals(target) else batch.cast(target)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """A CHECK constraint whose condition Spark has evaluated for each row.

    Args:
        column: of the rows: whether the condition is true; never null.
        name, text: of the constraint.
        reads: the columns whose values an error shows.
    """

    column: str
    name: str
    text: str
    reads: tuple[str, ...]


def checked_rows(
    schema: pa.Schema, batches: Iterator[pa.RecordBatch], checks: Sequence[RowCheck], table: str
) -> pa.RecordBatchReader:
    """Return rows without the columns of checks.

    Args:
        schema: of the batches.
        table: its URL, for messages.

    Raises `InvariantViolation` while the rows are read: for the first one that breaks a constraint.
    """
    names = {check.column for check in checks}
    kept = pa.schema([column for column in schema if column.name not in names])
    return pa.RecordBatchReader.from_batches(kept, (_fulfilling(batch, checks, table) for batch in batches))


def _fulfilling(rows: pa.RecordBatch, checks: Sequence[RowCheck], table: str) -> pa.RecordBatch:
    for check in checks:
        broken = pc.index(rows.column(check.column), False).as_py()
        if broken >= 0:
            values = {name.lower(): column[broken].as_py() for name, column in zip(rows.schema.names, rows.columns, strict=True)}
            raise violated(table, check.name, check.text, {name: values.get(name.lower()) for name in check.reads})
    return rows.drop_columns([check.column for check in checks]) if checks else rows


@dataclass(frozen=True)
class Target:
    """The target of written files.

    Args:
        max_rows_per_file, compression: arguments of `tahoe.ops.write.writer.write_arrow`.
        demands: the table's requirements, for the message.
        rows: the columns as a PySpark schema, if the input is rows instead of Arrow batches.
        time_zone: of the session.
        checks: their columns are not written.
    """

    config: TableConfig
    store: LogStore
    filled_in: FilledIn
    max_rows_per_file: int | None
    compression: str | None
    demands: object = None
    rows: Any = None
    time_zone: str = "UTC"
    checks: tuple[RowCheck, ...] = ()


def written_files(target: Target, items: Iterator[Any]) -> WrittenFiles:
    """Write the rows of one task."""
    batches = items if target.rows is None else _batches(items, target.rows)
    first = next(batches, None)
    if first is None:
        return WrittenFiles(())
    completion = target.filled_in.of_this_task()
    adds = write_arrow(
        target.config,
        target.store,
        checked_rows(first.schema, chain((first,), batches), target.checks, target.config.table),
        SYSTEM_CLOCK,
        WriterOptions(target.max_rows_per_file, target.compression, completion=completion, time_zone=target.time_zone),
    )
    return WrittenFiles(tuple(adds), target.demands, completion.furthest)


def _batches(rows: Iterator[Any], columns: Any) -> Iterator[pa.RecordBatch]:
    from pyspark.sql.conversion import LocalDataToArrowConversion

    while block := list(islice(rows, _ROWS)):
        yield from LocalDataToArrowConversion.convert(block, columns, use_large_var_types=False).to_batches()


@dataclass(frozen=True)
class WrittenFiles(WriterCommitMessage):
    """The files that one task has written.

    Args:
        demands: the table's requirements when they were written.
        furthest: the greatest identity values of the task, by physical name.
    """

    adds: tuple[AddFile, ...]
    demands: object = None
    furthest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FilledIn:
    """The values that tasks fill in; sent to them as a value.

    Args:
        defaults, identities: of the columns that rows lack.
        table: the table's URL, for errors.
    """

    defaults: Defaults
    identities: tuple[IdentityColumn, ...]
    table: str

    def of_this_task(self) -> TaskCompletion:
        """Return the completion for the calling task. Spark writes each partition of a query in one task, and commits one attempt of it."""
        return TaskCompletion(self.defaults, self.identities, _this_task() if self.identities else 0, self.table)


def filled_in(config: TableConfig, columns: Iterable[str], now_ms: int | None, time_zone: str | None = None) -> FilledIn:
    """Return the values that tasks fill in for missing columns.

    Args:
        columns: the columns of the rows.
        now_ms: the time of the statement; None if it is unknown, as in a stream, where one writer writes all batches.
        time_zone: of the session; None if it is unknown.

    Raises:
        Unsupported: ``TAHOE_COLUMN_NOT_FILLED_IN``: a default that is the time of the statement if it is unknown, or depends on the
            session's time zone if that is unknown.
    """
    present = {name.lower() for name in columns}
    constants = [
        value for column in config.schema if (value := constant_default(column, config.table, now_ms, time_zone)) is not None
    ]
    identities = identity_columns(config.schema, config.table)
    remedy = "Write with a classic session, or without Spark (tahoe.Table.append)."
    filled = {default.column.name for default in constants} | {column.name for column in identities}
    refuse_incomplete(config, present | filled, "A write by way of Spark's Python data source", remedy)
    defaults = Defaults(tuple(default for default in constants if default.column.name.lower() not in present))
    return FilledIn(defaults, tuple(column for column in identities if column.name.lower() not in present), config.table)


def _this_task() -> int:
    context = TaskContext.get()
    assert context is not None, "rows are numbered by tasks of Spark"
    return context.partitionId()
