"""Maintenance without Spark: functions that are methods of `Table`. All are safe beside concurrent readers and writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tahoe.base.html import Listing
from tahoe.base.lazy import late_modules
from tahoe.base.method_options import ChangeOptions, arguments_of, values_of
from tahoe.base.progress import shown
from tahoe.ops.tables.requests import (
    AnalyzeOptions,
    DropRequest,
    OpenTable,
    OptimizeOptions,
    RestoreOptions,
    VacuumRequest,
)

if TYPE_CHECKING:
    from tahoe.expr.condition_forms import Condition
    from tahoe.ops import repair_log as repair_log_module
    from tahoe.ops.features import compat as compat_module
    from tahoe.ops.features import drop_feature as drop_feature_module
    from tahoe.ops.features import file_properties
    from tahoe.ops.features.drop_report import FeatureDrop
    from tahoe.ops.layout import optimize as optimize_module
    from tahoe.ops.layout import optimize_plan, table_layout
    from tahoe.ops.layout.optimize_report import Optimized
    from tahoe.ops.repair import fsck as fsck_module
    from tahoe.ops.repair import statistics
    from tahoe.ops.upkeep import purge as purge_module
    from tahoe.ops.upkeep import restore as restore_module
    from tahoe.ops.upkeep import vacuum as vacuum_module
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.txn import hooks
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction
else:
    (repair_log_module,) = late_modules("tahoe.ops", "repair_log")
    compat_module, drop_feature_module, file_properties = late_modules(
        "tahoe.ops.features", "compat", "drop_feature", "file_properties"
    )
    optimize_module, optimize_plan, table_layout = late_modules("tahoe.ops.layout", "optimize", "optimize_plan", "table_layout")
    fsck_module, statistics = late_modules("tahoe.ops.repair", "fsck", "statistics")
    purge_module, restore_module, vacuum_module = late_modules("tahoe.ops.upkeep", "purge", "restore", "vacuum")
    (hooks,) = late_modules("tahoe.txn", "hooks")


class MaintainedTable(OpenTable, Protocol):
    """A table whose older versions may still be in use outside its log."""

    def pinned_versions(self, snapshot: Snapshot, now_ms: int) -> Sequence[int]:
        """Return older versions that readers outside the log may still be using."""


def checkpoint(self: MaintainedTable) -> int:
    """Write a checkpoint of the newest version, and return that version."""
    snapshot = self.snapshot()
    with shown(self.clock) as progress:
        hooks.checkpoint_snapshot(snapshot, self.clock, progress)
    return snapshot.version


def purge(self: MaintainedTable, where: Condition | None = None) -> int:
    """Rewrite files with deleted rows or dropped columns without them; return the new version, or the newest if no file needs it.

    Args:
        where: on partition columns; only these partitions.
    """
    transaction = self.begin()
    with shown(self.clock) as progress:
        operation = purge_module.stage_purge(transaction, where, progress)
    return self.snapshot().version if operation is None else self.commit(transaction, operation).version


@arguments_of(OptimizeOptions)
def optimize(self: MaintainedTable, options: OptimizeOptions) -> Optimized:
    """Rewrite small files, and files with many deleted rows, as few large ones; others may read and write concurrently.

    A table with clustering columns (`cluster_by`) is clustered by them: new files, and existing clusters that are not large yet.

    Returns: the result, with the metrics of the SQL statement; see `tahoe.ops.layout.optimize_report.Optimized`.
    """
    request = optimize_plan.OptimizeRequest(**values_of(options, OptimizeOptions))
    rewrite = partial(optimize_module.rewritten_here, self.clock)
    with shown(self.clock) as progress:
        return optimize_module.optimize(self.begin, _commit_with(self, options), request, rewrite, progress)


def layout(
    self: MaintainedTable, by: Sequence[str] = (), *, axes: Sequence[str] = (), target_file_size: int | None = None
) -> table_layout.TableLayout:
    """Return how well the table is clustered by each column, and the gain of OPTIMIZE; a notebook draws it. No data file is read.

    Args:
        by: columns that OPTIMIZE would cluster by, for a table without clustering columns.
        axes: the two columns over which files are drawn; by default the first two.
        target_file_size: the target size of OPTIMIZE.
    """
    return table_layout.layout_of(self.snapshot(), by, axes, target_file_size)


@arguments_of(VacuumRequest)
def vacuum(self: MaintainedTable, request: VacuumRequest) -> vacuum_module.Vacuumed:
    """Delete the files that no readable version needs; others may read and write concurrently.

    Returns: the result; errors are those of `tahoe.ops.upkeep.vacuum.vacuum`.
    """
    with shown(self.clock) as progress:
        return vacuum_module.vacuum(self.begin, self.commit, request, self.pinned_versions, progress)


@arguments_of(ChangeOptions)
def fsck(self: MaintainedTable, options: ChangeOptions) -> fsck_module.Repaired:
    """Remove from the log the files that are missing from storage, so that the rest can be read; see `tahoe.ops.repair.fsck`."""
    with shown(self.clock) as progress:
        return fsck_module.fsck(self.begin, _commit_with(self, options), dry_run=options.dry_run, progress=progress)


@arguments_of(AnalyzeOptions)
def compute_statistics(self: MaintainedTable, options: AnalyzeOptions) -> statistics.Analyzed:
    """Recompute the statistics of the files from their rows; see `tahoe.ops.repair.statistics`.

    With `dry_run`, the result has the number of files with wrong statistics.
    """
    begin, commit, collect = self.begin, _commit_with(self, options), statistics.collected_here
    with shown(self.clock) as progress:
        return statistics.compute_statistics(begin, commit, collect, options.where, dry_run=options.dry_run, progress=progress)


@arguments_of(RestoreOptions)
def restore(self: MaintainedTable, options: RestoreOptions) -> restore_module.Restored:
    """Restore an older version, by number or by timestamp: its rows, schema and properties.

    Returns: the result, with the metrics of the SQL statement; errors are those of `tahoe.ops.upkeep.restore.restore`.
    """
    request = restore_module.RestoreRequest(**values_of(options, RestoreOptions))
    with shown(self.clock) as progress:
        return restore_module.restore(self.begin(), _commit_with(self, options), request, progress)


def set_properties(self: MaintainedTable, properties: Mapping[str, str], *, files_per_commit: int | None = None) -> int:
    """Set table properties; return the new version, or the newest if `properties` is empty.

    Row tracking assigns ids to the existing files, and ``delta.columnMapping.mode = none`` rewrites them: see
    `tahoe.ops.features.file_properties`.

    Args:
        files_per_commit: the number of files that get row ids in one commit; by default as many as in the reference.

    Raises: see `tahoe.ops.tables.alter.stage_set_properties`.
    """
    count = file_properties.FILES_PER_COMMIT if files_per_commit is None else files_per_commit
    with shown(self.clock) as progress:
        return file_properties.set_properties(self.begin, self.commit, properties, progress, files_per_commit=count)


def unset_properties(self: MaintainedTable, names: Sequence[str], *, if_exists: bool = False) -> int:
    """Unset table properties. Raises `InvalidRequest` for one that is not set, unless `if_exists`."""
    with shown(self.clock) as progress:
        return file_properties.unset_properties(self.begin, self.commit, names, progress, if_exists=if_exists)


@arguments_of(DropRequest)
def drop_feature(self: MaintainedTable, request: DropRequest) -> FeatureDrop:
    """Drop a table feature, so that readers and writers without it can use the table; others may read and write concurrently.

    With `dry_run`, the result has the files that would be rewritten, the new protocol, and who could read the table then.

    Returns: the result; errors are those of `tahoe.ops.features.drop_feature.drop_feature`.
    """
    with shown(self.clock) as progress:
        return drop_feature_module.drop_feature(self.begin, _commit_with(self, request), request, progress)


def compat(self: MaintainedTable) -> Listing[compat_module.EngineCompat]:
    """Return which other engines can read and write the newest version, and the obstacles, according to their documentation."""
    return Listing(compat_module.compat_of(self.snapshot().config))


def repair_log(self: MaintainedTable, *, dry_run: bool = False) -> repair_log_module.LogRepair:
    """Rewrite the checkpoint, the checksum and ``_last_checkpoint`` of the newest version if they are corrupt or missing.

    Args:
        dry_run: report the findings and write nothing.

    Returns: the findings and the repairs; errors are those of `tahoe.ops.repair_log.repair_log`.
    """
    with shown(self.clock) as progress:
        return repair_log_module.repair_log(self.store, self.clock, dry_run=dry_run, progress=progress)


def _commit_with(table: OpenTable, options: ChangeOptions) -> Callable[[Transaction, Operation], Committed]:
    return partial(table.commit, user_metadata=options.user_metadata)
