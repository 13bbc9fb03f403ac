"""The rows of a stream's batches, and the task that writes them to a table that numbers them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.ops.rows.insert import WriteOptions, prepare_schema
from tahoe.ops.rows.stream_batch import demands
from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.executors.data_source_tasks import Target, WrittenFiles, filled_in, written_files
from tahoe.spark.executors.evaluated_rules import EvaluatedRules
from tahoe.spark.executors.file_settings import config_of_files, options_of_files
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Transaction


@dataclass(frozen=True)
class BatchRows:
    """The rows of a stream's batches, and how they are written; sent to tasks as a value.

    Args:
        schema: of the rows, without the columns of flags.
        columns: the rows' columns as a PySpark schema, if tasks get rows instead of Arrow batches.
        files: the requested number of rows in a file, and compression.
        settings: of the session, for files (`tahoe.spark.executors.file_settings`).
        time_zone: of the session; None if it is unknown.
    """

    schema: StructType
    columns: Any
    options: WriteOptions
    files: WriterOptions
    settings: Mapping[str, str]
    time_zone: str | None
    evaluated: EvaluatedRules

    def config(self, transaction: Transaction) -> TableConfig:
        """Return the table's configuration, with the changes that the rows require."""
        transaction.enforces = ENFORCED
        return prepare_schema(transaction, self.schema, self.options)

    def target(self, config: TableConfig, store: LogStore) -> Target:
        """Return the target of their files, in a table with this configuration."""
        files = options_of_files(self.files, self.settings)
        return Target(
            config_of_files(self.evaluated.left_by(config), self.settings),
            store,
            filled_in(config, self.schema.names, None, self.time_zone),
            files.max_rows_per_file,
            files.compression,
            demands(config),
            self.columns,
            self.time_zone or "UTC",
            self.evaluated.checks,
        )


def numbered_files(batches: BatchRows, store: LogStore, items: Iterator[Any]) -> WrittenFiles:
    """Write the rows of one task to a table with identity columns: each batch continues the values of the previous one.

    Args:
        items: Arrow batches, or rows if `batches.columns` is set.
    """
    config = batches.config(Transaction(store, Snapshot.at(store), SYSTEM_CLOCK))
    return written_files(batches.target(config, store), items)
