"""Writes the rows of a batch in a Spark job and commits them once (`tahoe.ops.rows.stream_batch`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame

from tahoe.api.table import Table
from tahoe.ops.rows.stream_batch import Batch, CommitsTable, commit_batch
from tahoe.ops.write.completion import Completion
from tahoe.protocol.actions import AddFile
from tahoe.protocol.config import TableConfig
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.write.enforce import enforced, session_time_zone
from tahoe.spark.write.fitting import casts_of_inserts, columns_of
from tahoe.spark.write.writer import write_files
from tahoe.txn.transaction import Transaction


def write_batch(
    table: Table, query: str, number: int, data: DataFrame, request: Insert, *, reads_target: bool = False
) -> int | None:
    """Write the rows and commit; return the version, or None if the table already has the batch.

    Args:
        query, number, reads_target: see `tahoe.ops.rows.stream_batch.Batch`.
        data: the rows, which a separate job may write.

    Raises: see `tahoe.ops.rows.stream_batch.commit_batch`.
    """

    def write(transaction: Transaction, config: TableConfig) -> Sequence[AddFile]:
        completion = Completion(transaction, data.columns, session_time_zone(data.sparkSession))
        rows = enforced(data, config, completion=completion, casts=casts_of_inserts(data.sparkSession))
        with job_progress(data.sparkSession, transaction.clock):
            return write_files(rows, config, transaction, request.files, completion=completion)

    commit = partial(table.commit, user_metadata=request.user_metadata)
    batch = Batch(query, number, columns_of(data), reads_target)
    return commit_batch(CommitsTable(table.url, table.begin, commit), batch, request.options, write)
