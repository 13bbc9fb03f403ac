"""`Maintainable`, the maintenance methods of `tahoe.api.table.Table`, without Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.progress import shown

if TYPE_CHECKING:
    from datetime import date, datetime

    import pyarrow as pa

    from tahoe.base.clock import Clock
    from tahoe.expr.condition_forms import Condition
    from tahoe.ops.features.compat import EngineCompat
    from tahoe.ops.features.drop_report import FeatureDrop
    from tahoe.ops.layout.optimize_report import Optimized
    from tahoe.ops.layout.table_layout import TableLayout
    from tahoe.ops.repair.fsck import Repaired
    from tahoe.ops.repair.statistics import Analyzed
    from tahoe.ops.repair_log import LogRepair
    from tahoe.ops.upkeep.restore import Restored
    from tahoe.ops.upkeep.vacuum import Vacuumed
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.log_store import LogStore
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Maintainable"]


@checked_arguments
class Maintainable(ABC):
    """Rewrites files, deletes unneeded ones and restores versions, safely beside concurrent readers and writers."""

    clock: Clock
    store: LogStore

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the newest version's snapshot."""

    @abstractmethod
    def version(self) -> int:
        """The newest version."""

    @abstractmethod
    def begin(self) -> Transaction:
        """Return a transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit a transaction."""

    @abstractmethod
    def held_versions(self, snapshot: Snapshot, now_ms: int) -> Sequence[int]:
        """Return older versions that readers outside the log may still be using."""

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version, and return that version."""
        from tahoe.txn.hooks import checkpoint_snapshot

        snapshot = self.snapshot()
        with shown(self.clock) as progress:
            checkpoint_snapshot(snapshot, self.clock, progress)
        return snapshot.version

    def purge(self, where: Condition | None = None) -> int:
        """Rewrite files with deleted rows or dropped columns without them; return the new version, or the newest if no file needs it.

        Args:
            where: on partition columns; only these partitions.
        """
        from tahoe.ops.upkeep.purge import stage_purge

        transaction = self.begin()
        with shown(self.clock) as progress:
            operation = stage_purge(transaction, where, progress)
        return self.version() if operation is None else self.commit(transaction, operation).version

    def optimize(
        self,
        where: Condition | None = None,
        *,
        zorder_by: Sequence[str] = (),
        curve: str = "kd",
        target_file_size: int | None = None,
        min_file_size: int | None = None,
        max_deleted_rows_ratio: float = 0.05,
        full: bool = False,
        min_cube_size: int | None = None,
        target_cube_size: int | None = None,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Optimized:
        """Rewrite small files, and files with many deleted rows, as few large ones; others may read and write concurrently.

        A table with clustering columns (`cluster_by`) is clustered by them: new files, and existing clusters that are not large yet.

        Args:
            where: on partition columns; only these partitions.
            zorder_by: columns to cluster the rows by, so that conditions on any of them skip files; every file is rewritten then.
            full: for a clustered table: also rewrite files that are clustered by other columns than the current ones.
            dry_run: report the effect and commit nothing. For the other arguments see `tahoe.ops.layout.optimize_plan.OptimizeRequest`.

        Returns: the result, with the metrics of the SQL statement; see `tahoe.ops.layout.optimize_report.Optimized`.
        """
        from tahoe.ops.layout.cubes import LEAST_BYTES, TARGET_BYTES
        from tahoe.ops.layout.optimize import optimize, rewritten_here
        from tahoe.ops.layout.optimize_plan import OptimizeRequest

        request = OptimizeRequest(
            where,
            None,
            tuple(zorder_by),
            curve,
            target_file_size,
            min_file_size,
            max_deleted_rows_ratio,
            dry_run=dry_run,
            is_full=full,
            min_cube_size=LEAST_BYTES if min_cube_size is None else min_cube_size,
            target_cube_size=TARGET_BYTES if target_cube_size is None else target_cube_size,
        )
        commit, rewrite = partial(self.commit, user_metadata=user_metadata), partial(rewritten_here, self.clock)
        with shown(self.clock) as progress:
            return optimize(self.begin, commit, request, rewrite, progress)

    def layout(self, by: Sequence[str] = (), *, axes: Sequence[str] = (), target_file_size: int | None = None) -> TableLayout:
        """Return how well the table is clustered by each column, and the gain of OPTIMIZE; a notebook draws it. No data file is read.

        Args:
            by: columns that OPTIMIZE would cluster by, for a table without clustering columns.
            axes: the two columns over which files are drawn; by default the first two.
            target_file_size: the target size of OPTIMIZE.
        """
        from tahoe.ops.layout.table_layout import layout_of

        return layout_of(self.snapshot(), by, axes, target_file_size)

    def vacuum(
        self,
        retention_hours: float | None = None,
        *,
        dry_run: bool = False,
        retention_check: bool = True,
        lite: bool = False,
        inventory: pa.Table | None = None,
        logs: bool | None = None,
    ) -> Vacuumed:
        """Delete the files that no readable version needs; others may read and write concurrently.

        Args:
            retention_hours: files removed within this time stay; None for the table's ``delta.deletedFileRetentionDuration``, 7 days by
                default.
            dry_run: report which files would be deleted, and which versions would become unreadable; delete nothing.
            retention_check: refuse less than the table's own retention.
            lite: find the files in the log, without listing the table; leftovers of crashed writers stay.
            inventory: rows ``path``, ``length``, ``isDir``, ``modificationTime`` instead of a listing.
            logs: whether to commit ``VACUUM START`` and ``VACUUM END``, which record it in the history and warn slow writers;
                None: yes, except for long retentions on S3.

        Returns: the result; errors are those of `tahoe.ops.upkeep.vacuum.vacuum`.
        """
        from tahoe.ops.upkeep.vacuum import vacuum
        from tahoe.ops.upkeep.vacuum_plan import VacuumRequest

        request = VacuumRequest(retention_hours, retention_check, lite, inventory, logs, dry_run=dry_run)
        with shown(self.clock) as progress:
            return vacuum(self.begin, self.commit, request, self.held_versions, progress)

    def fsck(self, *, dry_run: bool = False, user_metadata: str | None = None) -> Repaired:
        """Remove from the log the files that are missing from storage, so that the rest can be read; see `tahoe.ops.repair.fsck`.

        Args:
            dry_run: report the files and remove nothing.
        """
        from tahoe.ops.repair.fsck import fsck

        commit = partial(self.commit, user_metadata=user_metadata)
        with shown(self.clock) as progress:
            return fsck(self.begin, commit, dry_run=dry_run, progress=progress)

    def compute_statistics(
        self, where: Condition | None = None, *, dry_run: bool = False, user_metadata: str | None = None
    ) -> Analyzed:
        """Recompute the statistics of the files from their rows; see `tahoe.ops.repair.statistics`.

        Args:
            where: on partition columns; only these partitions.
            dry_run: report how many files have wrong statistics, and change nothing.
        """
        from tahoe.ops.repair.statistics import collected_here, compute_statistics

        commit = partial(self.commit, user_metadata=user_metadata)
        with shown(self.clock) as progress:
            return compute_statistics(self.begin, commit, collected_here, where, dry_run=dry_run, progress=progress)

    def restore(
        self,
        version: int | None = None,
        timestamp: str | date | datetime | None = None,
        *,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Restored:
        """Restore an older version, by number or by timestamp: its rows, schema and properties.

        Args:
            ignore_missing_files: restore although files of that version are missing; reads of their rows fail then.
            dry_run: report the effect and commit nothing.

        Returns: the result, with the metrics of the SQL statement; errors are those of `tahoe.ops.upkeep.restore.restore`.
        """
        from tahoe.ops.upkeep.restore import RestoreRequest, restore

        request = RestoreRequest(version, timestamp, ignore_missing_files, dry_run)
        with shown(self.clock) as progress:
            return restore(self.begin(), partial(self.commit, user_metadata=user_metadata), request, progress)

    def set_properties(self, properties: Mapping[str, str], *, files_per_commit: int | None = None) -> int:
        """Set table properties; return the new version.

        Row tracking assigns ids to the existing files, and ``delta.columnMapping.mode = none`` rewrites them: see
        `tahoe.ops.features.file_properties`.

        Args:
            files_per_commit: the number of files that get row ids in one commit; by default as many as in the reference.

        Raises: see `tahoe.ops.tables.alter.stage_set_properties`.
        """
        from tahoe.ops.features.file_properties import FILES_PER_COMMIT, set_properties

        at_once = FILES_PER_COMMIT if files_per_commit is None else files_per_commit
        with shown(self.clock) as progress:
            return set_properties(self.begin, self.commit, properties, progress, files_per_commit=at_once)

    def unset_properties(self, names: Sequence[str], *, if_exists: bool = False) -> int:
        """Unset table properties. Raises `InvalidRequest` for one that is not set, unless `if_exists`."""
        from tahoe.ops.features.file_properties import unset_properties

        with shown(self.clock) as progress:
            return unset_properties(self.begin, self.commit, names, progress, if_exists=if_exists)

    def drop_feature(
        self,
        name: str,
        *,
        truncate_history: bool = False,
        dry_run: bool = False,
        is_fast: bool = True,
        user_metadata: str | None = None,
    ) -> FeatureDrop:
        """Drop a table feature, so that readers and writers without it can use the table; others may read and write concurrently.

        Args:
            name: of the feature, as `Table.detail` lists it.
            truncate_history: remove older versions that use the feature from the log first (the first call ends with an error that says
                when to call again); else checkpoints hide them, and the feature ``checkpointProtection`` keeps these.
            dry_run: report which files would be rewritten, the new protocol, and who could read the table then; change nothing.
            is_fast: False: hide nothing, and wait until these versions expire from the log.

        Returns: the result; errors are those of `tahoe.ops.features.drop_feature.drop_feature`.
        """
        from tahoe.ops.features.drop_feature import DropRequest, drop_feature

        request = DropRequest(name, truncate_history, is_fast, dry_run)
        with shown(self.clock) as progress:
            return drop_feature(self.begin, partial(self.commit, user_metadata=user_metadata), request, progress)

    def compat(self) -> list[EngineCompat]:
        """Return which other engines can read and write the newest version, and the obstacles, according to their documentation."""
        from tahoe.ops.features.compat import compat_of

        return compat_of(self.snapshot().config)

    def repair_log(self, *, dry_run: bool = False) -> LogRepair:
        """Rewrite the checkpoint, the checksum and ``_last_checkpoint`` of the newest version if they are corrupt or missing.

        Args:
            dry_run: report the findings and write nothing.

        Returns: the findings and the repairs; errors are those of `tahoe.ops.repair_log.repair_log`.
        """
        from tahoe.ops.repair_log import repair_log

        with shown(self.clock) as progress:
            return repair_log(self.store, self.clock, dry_run=dry_run, progress=progress)
