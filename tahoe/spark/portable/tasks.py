"""The messages between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from tahoe.base.exceptions import StorageFailure
from tahoe.ops.write.completion import Defaults, refuse_incomplete
from tahoe.protocol.actions import AddFile
from tahoe.protocol.column_values.default_values import constant_default
from tahoe.protocol.column_values.identity import further, identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.arrow_reader import ReadTask
from tahoe.snapshot.changes import ChangedFile
from tahoe.spark.executors.data_source_tasks import FilledIn, WrittenFiles
from tahoe.store.location import decode_path
from tahoe.store.log_store import LogStore
from tahoe.stream.streamed_commit import IndexedFile
from tahoe.txn.transaction import Transaction

__all__ = ["binned", "discard", "filled_in", "note_numbers"]

_TASK_BYTES = 128 * 1024 * 1024


_Sized = TypeVar("_Sized", ReadTask, ChangedFile, IndexedFile)


def binned(files: Iterable[_Sized]) -> Iterator[tuple[_Sized, ...]]:
    """Yield the files of each task, in their order."""
    files_of_bin: list[_Sized] = []
    size = 0
    for file in files:
        more = file.size or 0
        if files_of_bin and size + more > _TASK_BYTES:
            yield tuple(files_of_bin)
            files_of_bin, size = [], 0
        files_of_bin.append(file)
        size += more
    if files_of_bin:
        yield tuple(files_of_bin)


def discard(store: LogStore, add: AddFile) -> None:
    """Delete a file that no commit references; if deleting fails, VACUUM deletes it."""
    with suppress(StorageFailure):
        store.delete(decode_path(add.path, store.url))


def filled_in(config: TableConfig, columns: Iterable[str], now_ms: int | None) -> FilledIn:
    """Return the values that tasks fill in for missing columns.

    Args:
        columns: the columns of the rows.
        now_ms: the time of the statement; None if it is unknown, as in a stream, where one writer writes all batches.

    Raises:
        Unsupported: ``TAHOE_COLUMN_NOT_FILLED_IN``: a default that is the time of the statement if it is unknown, or depends on the
            session's time zone, which a data source does not get.
    """
    given = {name.lower() for name in columns}
    known = [found for column in config.schema if (found := constant_default(column, config.table, now_ms)) is not None]
    identities = identity_columns(config.schema, config.table)
    remedy = "Write with a classic session, or without Spark (tahoe.Table.append)."
    filled = {one.column.name for one in known} | {one.name for one in identities}
    refuse_incomplete(config, given | filled, "A write by way of Spark's Python data source", remedy)
    defaults = Defaults(tuple(one for one in known if one.column.name.lower() not in given))
    return FilledIn(defaults, tuple(one for one in identities if one.name.lower() not in given), config.table)


def note_numbers(transaction: Transaction, config: TableConfig, files: Iterable[WrittenFiles]) -> None:
    """Record in the committing transaction the greatest identity values of the tasks.

    Args:
        config: of the table with which tasks numbered its rows.
    """
    came = [one.furthest for one in files]
    for one in identity_columns(config.schema, config.table):
        values = [furthest[one.physical_name] for furthest in came if one.physical_name in furthest]
        if values:
            transaction.number(one.physical_name, further(one.step, values))
