"""What travels between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from tahoe.exceptions import StorageFailure
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
    """The files of each task, in their order."""
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
    """Delete a file that no commit names; what storage keeps is left to VACUUM."""
    with suppress(StorageFailure):
        store.delete(decode_path(add.path, store.url))


def filled_in(config: TableConfig, columns: Iterable[str], now_ms: int | None) -> FilledIn:
    """What tasks fill in of the columns that rows lack.

    Args:
        columns: that the rows bring.
        now_ms: when the statement runs; None where that is not known, as in a stream, whose batches are all written by one writer.

    Raises:
        Unsupported: ``TAHOE_COLUMN_NOT_FILLED_IN``: a default that is the time of the statement where nobody knows it, or depends on the
            session's time zone, which a data source is not told.
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
    """Note in the transaction that commits them how far the tasks came with identity columns.

    Args:
        config: of the table as tasks numbered its rows.
    """
    came = [one.furthest for one in files]
    for one in identity_columns(config.schema, config.table):
        values = [furthest[one.physical_name] for furthest in came if one.physical_name in furthest]
        if values:
            transaction.number(one.physical_name, further(one.step, values))
