"""REORG TABLE … APPLY (PURGE) with what it answers: one row, the table's place and the metrics of OPTIMIZE (`delta-features`, 2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from tahoe.ops.upkeep.purge import stage_purge
from tahoe.progress import shown
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.storage import hadoop_path
from tahoe.table import Table
from tahoe.txn.transaction import Transaction

__all__ = ["OPTIMIZE_ROW", "purge"]

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


def purge(spark: SparkSession, table: Table, where: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Purge the table (`tahoe.table.Table.purge`), and tell what was done as the reference does: a row of `OPTIMIZE_ROW`.

    Args:
        where: on partition columns; only these partitions.
    """
    transaction = table.begin()
    started = table.clock.now_ms()
    with shown(table.clock) as progress, told_once(spark):
        operation = stage_purge(transaction, where, progress)
    if operation is not None:
        table.commit(transaction, operation)
    metrics = _metrics(transaction, transaction.existing(), started, table.clock.now_ms())
    metrics["totalClusterParallelism"] = spark.sparkContext.defaultParallelism
    return [(hadoop_path(table.url), metrics)]


def _metrics(transaction: Transaction, snapshot: Snapshot, started: int, ended: int) -> dict[str, Any]:
    added = [action for action in transaction.staged if isinstance(action, AddFile)]
    removed = [action for action in transaction.staged if isinstance(action, RemoveFile)]
    vectors = [action.deletion_vector for action in removed if action.deletion_vector is not None]
    columns, live = len(snapshot.schema), snapshot.files().num_rows
    indexed = int(snapshot.config.properties.get("delta.dataSkippingNumIndexedCols"))
    return {
        "numFilesAdded": len(added),
        "numFilesRemoved": len(removed),
        "filesAdded": _sizes([action.size for action in added]),
        "filesRemoved": _sizes([action.size or 0 for action in removed]),
        "partitionsOptimized": len({tuple(sorted((action.partition_values or {}).items())) for action in removed}),
        "numBins": len(removed),
        "numBatches": 1,
        "totalConsideredFiles": live,
        "totalFilesSkipped": live - len(removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": started,
        "endTimeMs": ended,
        "totalScheduledTasks": 0,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": len(vectors),
            "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        }
        if vectors
        else None,
        "numTableColumns": columns,
        "numTableColumnsWithStats": min(indexed, columns),
    }


def _sizes(sizes: Sequence[int]) -> dict[str, float | int | None]:
    total = sum(sizes)
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": total / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": total,
    }
