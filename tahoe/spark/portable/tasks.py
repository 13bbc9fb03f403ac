"""The messages between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.ops.write.completion import Defaults, refuse_incomplete
from tahoe.protocol.column_values.default_values import constant_default
from tahoe.protocol.column_values.identity import further, identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.spark.executors.data_source_tasks import FilledIn, WrittenFiles
from tahoe.spark.portable.sent import opened
from tahoe.spark.write.task_files import take_back
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Transaction

_UNIFORM_SECONDS = 60.0
_CATALOG_SECONDS = 5.0  # a catalog may never answer


def discard(store: LogStore, messages: list[WriterCommitMessage | None]) -> None:
    """Delete the files of tasks, which no commit references; if deleting fails, VACUUM deletes them."""
    take_back(store, (add for written in opened(messages, WrittenFiles) for add in written.adds))


def finish_conversions(url: str) -> None:
    """Wait for the Iceberg conversions that a commit started, in a process that ends immediately."""
    UNIFORM_RUNTIME.drain(_UNIFORM_SECONDS, _CATALOG_SECONDS, url)


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


def note_numbers(transaction: Transaction, config: TableConfig, files: Iterable[WrittenFiles]) -> None:
    """Record in the committing transaction the greatest identity values of the tasks.

    Args:
        config: of the table with which tasks numbered its rows.
    """
    greatest = [written.furthest for written in files]
    for column in identity_columns(config.schema, config.table):
        values = [furthest[column.physical_name] for furthest in greatest if column.physical_name in furthest]
        if values:
            transaction.number(column.physical_name, further(column.step, values))
