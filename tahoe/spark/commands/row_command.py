"""The frame of DELETE, UPDATE and MERGE on Spark: each runs in one commit, once, and again if a concurrent commit
rearranged its rows, or executors that stored them are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import TahoeError, Unsupported
from tahoe.ops.rows.row_changes import RowsChanged, Staged, observed_rows
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.row_changes import TableVersion
from tahoe.spark.commands.source_rows import retry_if_lost
from tahoe.spark.jvm.bridge import is_classic
from tahoe.spark.jvm.errors import quiet_errors
from tahoe.spark.jvm.job_progress import job_progress
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.settings import look_at_settings, settings_read_once
from tahoe.spark.scan.own_reads import recorded_reads
from tahoe.spark.scan.relation import Alias
from tahoe.spark.write.enforce import in_session_zone
from tahoe.spark.write.idempotent import applied_once
from tahoe.txn.rearranged import retry_if_rearranged
from tahoe.txn.transaction import Transaction


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """The table that a command changes.

    Args:
        alias: a name for the table in expressions.
        options: Hadoop options for the table's storage.
    """

    spark: SparkSession
    table: Table
    alias: Alias | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def at(self, snapshot: Snapshot) -> TableVersion:
        """Return the version that the command changes."""
        return TableVersion(self.spark, snapshot, self.alias, self.options)


def refuse_connect(spark: SparkSession, operation: str) -> None:
    """Raise `Unsupported` for a Spark Connect session, which gives no access to its JVM."""
    if not is_classic(spark):
        raise Unsupported(
            f"{operation} on a Spark Connect session is not supported by this version of Tahoe. "
            "Use tahoe.Table(path), or a classic session.",
            code="TAHOE_SPARK_CONNECT",
            operation=operation,
        )


def run_row_command(target: CommandTarget, operation: str, stage: Callable[[Transaction], Staged]) -> RowsChanged:
    """Stage a change of rows and commit it.

    Runs once for each transaction number that the session sets (`applied_once`), and repeats if a concurrent commit only rearranged the
    rows, or executors that stored rows are lost.
    """
    spark, table = target.spark, target.table

    def run() -> RowsChanged:
        transaction = in_session_zone(spark, table.begin())
        with applied_once(spark, transaction) as is_new:
            with recorded_reads(spark, transaction):
                staged = stage(transaction) if is_new else Staged(None)
            return table.commit_rows(transaction, staged)

    with job_progress(spark, table.clock), quiet_errors(spark), settings_read_once(spark):
        look_at_settings(spark)
        try:
            with reading(table):
                return observed_rows(operation.lower(), table.url, lambda: retry_if_rearranged(partial(retry_if_lost, run)))
        except TahoeError as error:
            raise error.located(table=table.url) from error.__cause__
