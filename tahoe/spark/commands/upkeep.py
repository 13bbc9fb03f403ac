"""OPTIMIZE and REORG on Spark, with what they answer: one row, the table's place and the metrics (`delta-features`, 2.4).

    the core plans the bins ─► an executor writes each anew, as the core does ─► the core commits, and redoes what others changed

Data files go from storage to an executor and back; only actions reach the driver. An executor holds some row groups of a bin at a time, and
lets rows that are clustered wait on its disk.
"""

# ruff: noqa: N802, N803 - the names of the builder are delta-spark's

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import InvalidRequest, StorageFailure, TahoeError, Unsupported
from tahoe.ops.layout.bins import Bin
from tahoe.ops.layout.optimize import Written, optimize, rewritten_here
from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.layout.optimize_report import Optimized, metrics_row
from tahoe.ops.upkeep.purge import stage_purge
from tahoe.progress import shown
from tahoe.protocol.properties import parse_size
from tahoe.snapshot.scan import BareVersion
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.commands.checked_arguments import check_kind
from tahoe.spark.commands.row_changes import refuse_connect, user_metadata_of
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.spark.names.settings import look_at_settings
from tahoe.store.location import decode_path
from tahoe.table import Table
from tahoe.txn.transaction import Transaction

__all__ = ["OPTIMIZE_ROW", "DeltaOptimizeBuilder", "optimize_table", "purge"]

_SIZES = "struct<min: bigint, max: bigint, avg: double, totalFiles: bigint, totalSize: bigint>"
_CUBE = "struct<num: bigint, size: bigint>"
_CLUSTER = "struct<numFiles: bigint, size: bigint>"
OPTIMIZE_ROW = f"""path string, metrics struct<
    numFilesAdded: bigint, numFilesRemoved: bigint, filesAdded: {_SIZES}, filesRemoved: {_SIZES}, partitionsOptimized: bigint,
    zOrderStats: struct<strategyName: string, inputCubeFiles: {_CUBE}, inputOtherFiles: {_CUBE}, inputNumCubes: bigint,
        mergedFiles: {_CUBE}, numOutputCubes: bigint, mergedNumCubes: bigint>,
    clusteringStats: struct<inputZCubeFiles: {_CLUSTER}, inputOtherFiles: {_CLUSTER}, inputNumZCubes: bigint, mergedFiles: {_CLUSTER},
        numOutputZCubes: bigint>,
    numBins: bigint, numBatches: bigint, totalConsideredFiles: bigint, totalFilesSkipped: bigint, preserveInsertionOrder: boolean,
    numFilesSkippedToReduceWriteAmplification: bigint, numBytesSkippedToReduceWriteAmplification: bigint,
    startTimeMs: bigint, endTimeMs: bigint, totalClusterParallelism: bigint, totalScheduledTasks: bigint,
    autoCompactParallelismStats: struct<maxClusterActiveParallelism: bigint, minClusterActiveParallelism: bigint,
        maxSessionActiveParallelism: bigint, minSessionActiveParallelism: bigint>,
    deletionVectorStats: struct<numDeletionVectorsRemoved: bigint, numDeletionVectorRowsRemoved: bigint>,
    numTableColumns: bigint, numTableColumnsWithStats: bigint>"""
"""The columns that OPTIMIZE and REORG answer with."""

Row = tuple[str, dict[str, Any]]
Value = TypeVar("Value")

_PREFIX = "spark.databricks.delta.optimize."


def optimize_table(
    spark: SparkSession,
    table: Table,
    conditions: Sequence[str] = (),
    zorder_by: Sequence[str] = (),
    *,
    is_full: bool = False,
) -> list[Row]:
    """Write files anew as OPTIMIZE says, and tell what was done: a row of `OPTIMIZE_ROW`.

    Args:
        spark: a classic session; its settings ``spark.databricks.delta.optimize.…`` count.
        conditions: SQL texts on partition columns, all of which hold for the partitions that are meant.
        zorder_by: columns by which rows are clustered.
        is_full: files that are clustered already are to be clustered anew, which only tables with ``CLUSTER BY`` know.

    Raises: as `tahoe.ops.layout.optimize.optimize`; `Unsupported` for Spark Connect, and for a table in the memory of this process.
    """
    refuse_connect(spark, "OPTIMIZE")
    look_at_settings(spark)
    if table.url.startswith("memory:"):
        raise Unsupported(
            f"Executors cannot reach {table.url}, a store of this Python process; use tahoe.Table(…).optimize().",
            code="TAHOE_STORE_WITHOUT_SPARK",
        )
    if is_full:
        raise InvalidRequest(
            f"OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns; table {table.url} has none. "
            "Leave FULL out.",
            code="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            table=table.url,
        )
    return _row(spark, table, _optimized(spark, table, _request(spark, conditions, zorder_by)).metrics)


def _optimized(spark: SparkSession, table: Table, request: OptimizeRequest) -> Optimized:
    commit = partial(table.commit, user_metadata=user_metadata_of(spark))
    with shown_jobs(spark, table.clock), told_once(spark):
        return optimize(table.begin, commit, request, partial(_on_executors, spark))


class DeltaOptimizeBuilder:
    """Says which partitions are meant, and executes OPTIMIZE. Made by `DeltaTable.optimize`."""

    def __init__(self, spark: SparkSession, table: Table, conditions: tuple[str, ...] = ()) -> None:
        self._spark = spark
        self._table = table
        self._conditions = conditions

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only the partitions for which this is true, and what `where` said before.

        Args:
            partitionFilter: SQL text on partition columns.
        """
        check_kind(partitionFilter, "Partition filter", str)
        self._conditions = (*self._conditions, partitionFilter)
        return self

    def executeCompaction(self) -> DataFrame:
        """Write files anew as few large ones.

        Returns:
            One row: ``path``, and ``metrics`` of what was done.

        Raises: see `tahoe.ops.layout.optimize.optimize`.
        """
        return self._execute(())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Write all files of these partitions anew, their rows clustered by columns, so that conditions on any of them skip files.

        Args:
            cols: names of columns, or a list of them.

        Returns:
            As `executeCompaction`.
        """
        return self._execute(_names(cols))

    def explain(self, *cols: str | list[str] | tuple[str, ...]) -> Optimized:
        """What `executeCompaction` would do now, or with columns `executeZOrderBy`; ``print`` shows it, and nothing is done."""
        refuse_connect(self._spark, "OPTIMIZE")
        request = _request(self._spark, self._conditions, _names(cols))
        return _optimized(self._spark, self._table, replace(request, dry_run=True))

    def _execute(self, zorder_by: Sequence[str]) -> DataFrame:
        rows = optimize_table(self._spark, self._table, self._conditions, zorder_by)
        return self._spark.createDataFrame(rows, OPTIMIZE_ROW)


def _names(cols: Sequence[str | list[str] | tuple[str, ...]]) -> list[str]:
    names = cols[0] if len(cols) == 1 and isinstance(cols[0], (list, tuple)) else cols
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Z-order column must be str. Found {name} with type {type(name)}")
    return [str(name) for name in names]


def purge(spark: SparkSession, table: Table, where: str | None = None) -> list[Row]:
    """Purge the table (`tahoe.table.Table.purge`), and tell what was done as the reference does: a row of `OPTIMIZE_ROW`.

    Args:
        where: on partition columns; only these partitions.
    """
    transaction = table.begin()
    started = table.clock.now_ms()
    with shown(table.clock) as progress, told_once(spark):
        operation = stage_purge(transaction, where, progress, shown_where=None if where is None else _shown(spark, where))
    if operation is not None:
        table.commit(transaction, operation)
    return _row(spark, table, _purged(transaction, transaction.existing(), started, table.clock.now_ms()))


def _row(spark: SparkSession, table: Table, metrics: dict[str, Any]) -> list[Row]:
    return [(hadoop_path(table.url), metrics | {"totalClusterParallelism": spark.sparkContext.defaultParallelism})]


def _purged(transaction: Transaction, snapshot: Snapshot, started: int, ended: int) -> dict[str, Any]:
    indexed, columns = int(snapshot.config.properties.get("delta.dataSkippingNumIndexedCols")), len(snapshot.schema)
    return metrics_row(
        transaction.removes,
        transaction.adds,
        considered=snapshot.files().num_rows,
        started_ms=started,
        ended_ms=ended,
        columns=columns,
        columns_with_statistics=min(indexed, columns) if indexed >= 0 else columns,
    )


# -- what is asked for -------------------------------------------------------------------------------------------------------


def _shown(spark: SparkSession, condition: str) -> str:
    """As the reference tells a condition that is not resolved."""
    return str(spark._jsparkSession.sessionState().sqlParser().parseExpression(condition).toString())


def _request(spark: SparkSession, conditions: Sequence[str], zorder_by: Sequence[str]) -> OptimizeRequest:
    def setting(name: str, parse: Callable[[str], Value], default: Value) -> Value:
        text = spark.conf.get(_PREFIX + name, None)
        try:
            return default if text is None else parse(str(text))
        except ValueError as error:
            raise InvalidRequest(
                f"The setting {_PREFIX}{name} = '{text}' is no value for it; unset it, or set it to a number.",
                code="DELTA_ILLEGAL_OPTION",
                option=_PREFIX + name,
            ) from error

    return OptimizeRequest(
        where=" AND ".join(f"({condition})" for condition in conditions) if conditions else None,
        shown_where=tuple(_shown(spark, condition) for condition in conditions),
        zorder_by=tuple(zorder_by),
        target_file_size=setting("maxFileSize", parse_size, None),
        min_file_size=setting("minFileSize", parse_size, None),
        max_deleted_rows_ratio=setting("maxDeletedRowsRatio", float, 0.05),
        batch_size=setting("batchSize", parse_size, None),
        threads=1,  # in each task
        need_statistics=setting("zorder.checkStatsCollection.enabled", lambda text: text.strip().lower() != "false", True),
        time_zone=str(spark.conf.get("spark.sql.session.timeZone")),
    )


# -- executors ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """Writes a bin anew, wherever it is sent."""

    version: BareVersion
    plan: OptimizePlan

    def __call__(self, one: Bin) -> Written | TahoeError:
        """What was written. An error is an answer too, so that it comes back as it is, and others are known to be taken back."""
        try:
            return next(rewritten_here(SYSTEM_CLOCK, self.version, [one], self.plan))
        except TahoeError as error:
            return error


def _on_executors(spark: SparkSession, snapshot: Snapshot, bins: Sequence[Bin], plan: OptimizePlan) -> Iterator[Written]:
    """As `rewritten_here`, each bin by a task of its own."""
    task = _Task(BareVersion(snapshot.store, snapshot.version, snapshot.config), replace(plan, bins=()))
    answers: list[Written | TahoeError] = spark.sparkContext.parallelize(bins, len(bins)).map(task).collect()
    failed = next((answer for answer in answers if isinstance(answer, TahoeError)), None)
    written = [answer for answer in answers if isinstance(answer, Written)]
    if failed is not None:
        for add in (add for one in written for add in one.added):
            with suppress(StorageFailure):
                snapshot.store.delete(decode_path(add.path, snapshot.store.url))
        raise failed
    return iter(written)
