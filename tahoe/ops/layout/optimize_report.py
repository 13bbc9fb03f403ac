"""What OPTIMIZE and REORG tell of what they did: to the history, and to whoever ran them, in the reference's words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tahoe.ops.layout.optimize_plan import OptimizePlan, OptimizeRequest
from tahoe.ops.write.rewrite import rewrite_metrics
from tahoe.protocol.actions import AddFile, RemoveFile
from tahoe.txn.transaction import Operation
from tahoe.wording import counted

__all__ = ["Optimized", "metrics_row", "operation_of"]


@dataclass(frozen=True, slots=True)
class Optimized:
    """What an OPTIMIZE did. `print` shows it.

    Args:
        plan: what was to be done to the version that it began with.
        version: the newest commit of it; None where there was nothing to do, or nothing was to be done.
        removed, added: the files that went and that came.
        bins: so many were rewritten; those whose files other writers kept on changing are not among them.
        batches: so many commits were made.
        started_ms, ended_ms: since the epoch.
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
        """The metrics that `OPTIMIZE` answers with, by the reference's names; what it leaves out is None."""
        found = metrics_row(
            self.removed,
            self.added,
            considered=self.plan.considered,
            started_ms=self.started_ms,
            ended_ms=self.ended_ms,
            columns=self.plan.columns,
            columns_with_statistics=self.plan.columns_with_statistics,
        )
        found |= {"numBins": self.bins, "numBatches": self.batches}
        if self.plan.clusters:
            files = {"num": len(self.removed), "size": sum(add.size for add in self.removed)}
            found["zOrderStats"] = {
                "strategyName": "all",  # of all files of a partition
                "inputCubeFiles": {"num": 0, "size": 0},
                "inputOtherFiles": files,
                "inputNumCubes": 0,
                "mergedFiles": files,
                "numOutputCubes": found["partitionsOptimized"],
                "mergedNumCubes": None,
            }
        return found

    def __str__(self) -> str:
        plan = self.plan
        if plan.request.dry_run:
            return (
                f"OPTIMIZE of version {plan.version} of {plan.table} would write {plan.files} of {counted(plan.considered, 'file')} anew "
                f"({plan.size:,} bytes, {counted(len(plan.bins), 'bin')}), as about {counted(plan.new_files, 'file')}."
            )
        if self.version is None:
            return f"There is nothing to optimize in {plan.table}."
        return (
            f"Version {self.version} of {plan.table}: {counted(len(self.removed), 'file')} of "
            f"{sum(add.size for add in self.removed):,} bytes became {counted(len(self.added), 'file')} of "
            f"{sum(add.size for add in self.added):,} bytes."
        )


def operation_of(request: OptimizeRequest, removed: Sequence[AddFile], added: Sequence[AddFile]) -> Operation:
    """What the history says of a commit of OPTIMIZE."""
    shown = request.shown_where
    if shown is None:
        shown = () if request.where is None else (str(request.where),)
    parameters = {"predicate": _json(shown), "zOrderBy": _json(request.zorder_by), "clusterBy": "[]", "auto": request.is_auto}
    return Operation("OPTIMIZE", parameters, rewrite_metrics(removed, added))


def metrics_row(
    removed: Sequence[AddFile | RemoveFile],
    added: Sequence[AddFile],
    *,
    considered: int,
    started_ms: int,
    ended_ms: int,
    columns: int,
    columns_with_statistics: int,
) -> dict[str, Any]:
    """The metrics that OPTIMIZE and REORG answer with; a bin is a file unless the caller knows better.

    Args:
        considered: so many files were looked at.
    """
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
        "totalConsideredFiles": considered,
        "totalFilesSkipped": considered - len(removed),
        "preserveInsertionOrder": False,
        "numFilesSkippedToReduceWriteAmplification": 0,
        "numBytesSkippedToReduceWriteAmplification": 0,
        "startTimeMs": started_ms,
        "endTimeMs": ended_ms,
        "totalClusterParallelism": 0,
        "totalScheduledTasks": 0,
        "autoCompactParallelismStats": None,
        "deletionVectorStats": {
            "numDeletionVectorsRemoved": len(vectors),
            "numDeletionVectorRowsRemoved": sum(vector.cardinality for vector in vectors),
        }
        if vectors
        else None,
        "numTableColumns": columns,
        "numTableColumnsWithStats": columns_with_statistics,
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


def _json(texts: Sequence[str]) -> str:
    return json.dumps(list(texts), separators=(",", ":"), ensure_ascii=False)
