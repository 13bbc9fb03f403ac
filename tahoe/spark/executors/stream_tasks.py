"""The rows of a stream's batches, and the task that writes them to a table that numbers them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.ops.rows.insert import WriteOptions, prepare_schema
from tahoe.ops.rows.stream_batch import demands
from tahoe.protocol.config import TableConfig
from tahoe.protocol.features import ENFORCED
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.executors.data_source_tasks import Target, WrittenFiles, filled_in, written_files
from tahoe.spark.executors.evaluated_rules import EvaluatedRules
from tahoe.store.log_store import LogStore
from tahoe.txn.transaction import Transaction


@dataclass(frozen=True)
class BatchRows:
    """The rows of a stream's batches, and how they are written; sent to tasks as a value.

    Args:
        schema: of the rows, without the columns of flags.
        columns: the rows' columns as a PySpark schema, if tasks get rows instead of Arrow batches.
        max_rows_per_file, compression: arguments of `tahoe.ops.write.writer.write_arrow`.
        time_zone: of the session; None if it is unknown.
    """

    schema: StructType
    columns: Any
    options: WriteOptions
    max_rows_per_file: int | None
    compression: str | None
    time_zone: str | None
    evaluated: EvaluatedRules

    def config(self, transaction: Transaction) -> TableConfig:
        """Return the table's configuration, with the changes that the rows require."""
        transaction.enforces = ENFORCED
        return prepare_schema(transaction, self.schema, self.options)

    def target(self, config: TableConfig, store: LogStore) -> Target:
        """Return the target of their files, in a table with this configuration."""
        return Target(
            self.evaluated.left_by(config),
            store,
            filled_in(config, self.schema.names, None, self.time_zone),
            self.max_rows_per_file,
            self.compression,
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
