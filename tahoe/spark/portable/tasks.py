"""The messages between Spark and the processes of a portable data source: files to read, and files that were written."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import WriterCommitMessage

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.protocol.column_values.identity import further, identity_columns
from tahoe.protocol.config import TableConfig
from tahoe.spark.executors.data_source_tasks import WrittenFiles
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
