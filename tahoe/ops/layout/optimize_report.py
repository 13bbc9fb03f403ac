"""The results of OPTIMIZE and REORG: the metrics for the history and for the caller, under delta-spark's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tahoe.base.html import ShownAsText
from tahoe.base.json_values import compact_json
from tahoe.base.wording import counted
from tahoe.ops.layout.optimize_plan import OptimizePlan
from tahoe.ops.write.rewrite import rewrite_metrics
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.txn.transaction import Operation


@dataclass(frozen=True, slots=True)
class Optimized(ShownAsText):
    """The result of an OPTIMIZE; `str` gives a readable summary.

    Args:
        plan: the plan for the version at the start.
        version: the version of its last commit; None if there was nothing to do, and for a dry run.
        removed, added: the removed and the new files.
        bins: the number of rewritten bins, without those whose files other writers changed repeatedly.
        batches: the number of commits.
        started_ms, ended_ms: the start and the end in milliseconds since the epoch.
    """

    plan: OptimizePlan
    version: int | None
    removed: tuple[AddFile, ...] = field(default=(), repr=False)
    added: tuple[AddFile, ...] = field(default=(), repr=False)
    bins: int = 0
    batches: int = 0
    started_ms: int = 0
    ended_ms: int = 0

    @property
    def metrics(self) -> dict[str, Any]:
        """The metrics that `OPTIMIZE` returns, under delta-spark's names; metrics that delta-spark omits are None."""
        plan = self.plan
        run = OptimizeRun(plan.considered, self.started_ms, self.ended_ms, plan.columns, plan.columns_with_statistics)
        metrics = metrics_row(self.removed, self.added, run)
        metrics |= {"numBins": self.bins, "numBatches": self.batches}
        cubes = self.plan.cubes
        if cubes is not None:
            metrics["clusteringStats"] = {
                "inputZCubeFiles": _files(*cubes.cube_files),
                "inputOtherFiles": _files(*cubes.other_files),
                "inputNumZCubes": cubes.cubes,
                "mergedFiles": _files(len(self.removed), sum(add.size for add in self.removed)),
                "numOutputZCubes": self.bins,
            }
        elif self.plan.clusters:
            files = {"num": len(self.removed), "size": sum(add.size for add in self.removed)}
            metrics["zOrderStats"] = {
                "strategyName": "all",  # of all files of a partition
                "inputCubeFiles": {"num": 0, "size": 0},
                "inputOtherFiles": files,
                "inputNumCubes": 0,
                "mergedFiles": files,
                "numOutputCubes": metrics["partitionsOptimized"],
                "mergedNumCubes": None,
            }
        return metrics

    def __str__(self) -> str:
        plan = self.plan
        if plan.request.dry_run:
            return (
                f"OPTIMIZE of version {plan.version} of {plan.table} would rewrite {plan.files} of {counted(plan.considered, 'file')} "
                f"({plan.size:,} bytes, {counted(len(plan.bins), 'bin')}), as about {counted(plan.new_files, 'file')}."
            )
        if self.version is None:
            return f"There is nothing to optimize in {plan.table}."
        return (
            f"Version {self.version} of {plan.table}: {counted(len(self.removed), 'file')} of "
            f"{sum(add.size for add in self.removed):,} bytes became {counted(len(self.added), 'file')} of "
            f"{sum(add.size for add in self.added):,} bytes."
        )


def operation_of(plan: OptimizePlan, removed: Sequence[AddFile], added: Sequence[AddFile]) -> Operation:
    """Return the history entry for a commit of OPTIMIZE."""
    request, cluster_by = plan.request, plan.cluster_by
    conditions = request.shown_where
    if conditions is None:
        conditions = () if request.where is None else (str(request.where),)
    parameters = {
        "predicate": compact_json(conditions),
        "zOrderBy": compact_json(request.zorder_by),
        "clusterBy": compact_json(cluster_by),
        "auto": request.is_auto,
        **({"isFull": request.full} if cluster_by else {}),
    }
    return Operation("OPTIMIZE", parameters, rewrite_metrics(removed, added))


@dataclass(frozen=True, slots=True)
class OptimizeRun:
    """The facts of one OPTIMIZE or REORG that its metrics show beside the files.

    Args:
        considered: the number of files in the selected partitions.
        columns: the number of the table's columns.
    """

    considered: int
    started_ms: int
    ended_ms: int
    columns: int
    columns_with_statistics: int


def metrics_row(removed: Sequence[AddFile | RemoveFile], added: Sequence[AddFile], run: OptimizeRun) -> dict[str, Any]:
    """Return the metrics of OPTIMIZE and REORG. Each removed file counts as a bin; the caller may overwrite ``numBins``."""
    vectors = [add.deletion_vector for add in removed if add.deletion_vector is not None]
    return {
        "numFilesAdded": len(added),
        "numFilesRemoved": len(removed),
        "filesAdded": _sizes([add.size for add in added]),
        "filesRemoved": _sizes([add.size or 0 for add in removed]),
        "partitionsOptimized": len({tuple(sorted((add.partition_values or {}).items())) for add in removed}),
        "zOrderStats": None,
        "clusteringStats": None,
        "numBins": len(removed),
        "numBatches": 1,
        "totalConsideredFiles": run.considered,
        "totalFilesSkipped": run.considered - len(removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": run.started_ms,
        "endTimeMs": run.ended_ms,
        "totalClusterParallelism": 0,
        "totalScheduledTasks": 0,
        "autoCompactParallelismStats": None,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": len(vectors),
            "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        }
        if vectors
        else None,
        "numTableColumns": run.columns,
        "numTableColumnsWithStats": run.columns_with_statistics,
    }


def _files(number: int, size: int) -> dict[str, int]:
    return {"numFiles": number, "size": size}


def _sizes(sizes: Sequence[int]) -> dict[str, float | int | None]:
    total = sum(sizes)
    return {
        "min": min(sizes, default=None),
        "max": max(sizes, default=None),
        "avg": total / len(sizes) if sizes else 0.0,
        "totalFiles": len(sizes),
        "totalSize": total,
    }
