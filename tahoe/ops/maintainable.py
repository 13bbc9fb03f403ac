"""What keeps a table's files in order without Spark: what `tahoe.table.Table` has of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tahoe.argument_checks import checked_arguments
from tahoe.progress import shown

if TYPE_CHECKING:
    from datetime import date, datetime

    import pyarrow as pa

    from tahoe.clock import Clock
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
    """Files written anew, old ones deleted, old versions brought back. Others may read and write meanwhile."""

    clock: Clock
    store: LogStore

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """The newest version."""

    @abstractmethod
    def version(self) -> int:
        """The newest version."""

    @abstractmethod
    def begin(self) -> Transaction:
        """A transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit it."""

    @abstractmethod
    def held_versions(self, snapshot: Snapshot, now_ms: int) -> Sequence[int]:
        """Older versions that readers may hold who do not look into the log."""

    def checkpoint(self) -> int:
        """Write a checkpoint of the newest version, and return that version."""
        from tahoe.txn.hooks import checkpoint_snapshot

        snapshot = self.snapshot()
        with shown(self.clock) as progress:
            checkpoint_snapshot(snapshot, self.clock, progress)
        return snapshot.version

    def purge(self, where: Condition | None = None) -> int:
        """Write files with dead rows or dropped columns anew without them; the version that has it, or the newest where none needs it.

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
        """Write small files, and files with many deleted rows, anew as few large ones; others may read and write meanwhile.

        A table that says by which columns it is clustered (`cluster_by`) is clustered by them: new files, and what is clustered together
        so far where it is not large yet.

        Args:
            where: on partition columns; only these partitions.
            zorder_by: columns by which rows are clustered, so that conditions on any of them skip files; every file is written anew then.
            full: of a clustered table: cluster files anew too that are clustered by other columns than today's.
            dry_run: tell what would be done, and do nothing. For the others see `tahoe.ops.layout.optimize_plan.OptimizeRequest`.

        Returns: what was done, with the metrics of the SQL statement; see `tahoe.ops.layout.optimize_report.Optimized`.
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
        """How well the table is clustered by each column, and what OPTIMIZE would gain; a notebook draws it. No data file is read.

        Args:
            by: columns that OPTIMIZE would cluster by, where the table does not say so itself.
            axes: the two columns over which files are drawn; by default the first two.
            target_file_size: that OPTIMIZE would be asked for.
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
        """Delete the files that no version needs which may still be read; others may read and write meanwhile.

        Args:
            retention_hours: files that went so long ago stay; None for the table's ``delta.deletedFileRetentionDuration``, 7 days unless
                it says otherwise.
            dry_run: tell which files would go, and which versions could not be read afterwards; delete nothing.
            retention_check: refuse less than the table's own retention.
            lite: find the files in the log, without listing the table; what dead writers left stays.
            inventory: rows ``path``, ``length``, ``isDir``, ``modificationTime`` in the place of a listing.
            logs: whether to commit ``VACUUM START`` and ``VACUUM END``, by which the history tells of it and slow writers are warned;
                None: but for long retentions on S3, yes.

        Returns: what was done; errors are those of `tahoe.ops.upkeep.vacuum.vacuum`.
        """
        from tahoe.ops.upkeep.vacuum import vacuum
        from tahoe.ops.upkeep.vacuum_plan import VacuumRequest

        request = VacuumRequest(retention_hours, retention_check, lite, inventory, logs, dry_run=dry_run)
        with shown(self.clock) as progress:
            return vacuum(self.begin, self.commit, request, self.held_versions, progress)

    def fsck(self, *, dry_run: bool = False, user_metadata: str | None = None) -> Repaired:
        """Remove from the log the files that are gone from storage, so that the rest can be read; see `tahoe.ops.repair.fsck`.

        Args:
            dry_run: tell what would be removed, and remove nothing.
        """
        from tahoe.ops.repair.fsck import fsck

        commit = partial(self.commit, user_metadata=user_metadata)
        with shown(self.clock) as progress:
            return fsck(self.begin, commit, dry_run=dry_run, progress=progress)

    def compute_statistics(
        self, where: Condition | None = None, *, dry_run: bool = False, user_metadata: str | None = None
    ) -> Analyzed:
        """Make the statistics of the files anew of their rows; see `tahoe.ops.repair.statistics`.

        Args:
            where: on partition columns; only these partitions.
            dry_run: tell how many files need other ones, and change nothing.
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
        """Make the newest version be as an older one was, by number or by time: rows, schema and properties.

        Args:
            ignore_missing_files: restore although files of that version are gone; reads of their rows fail then.
            dry_run: tell what would be done, and do nothing.

        Returns: what was done, with the metrics of the SQL statement; errors are those of `tahoe.ops.upkeep.restore.restore`.
        """
        from tahoe.ops.upkeep.restore import RestoreRequest, restore

        request = RestoreRequest(version, timestamp, ignore_missing_files, dry_run)
        with shown(self.clock) as progress:
            return restore(self.begin(), partial(self.commit, user_metadata=user_metadata), request, progress)

    def set_properties(self, properties: Mapping[str, str], *, files_per_commit: int | None = None) -> int:
        """Set table properties; the version that has them.

        Row tracking gives ids to the files that are there, and ``delta.columnMapping.mode = none`` writes them anew: see
        `tahoe.ops.features.file_properties`.

        Args:
            files_per_commit: so many files get row ids in one commit; by default as many as in the reference.

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
        """Let the table lose a feature, so that readers and writers that do not know it can use it; others may read and write meanwhile.

        Args:
            name: of the feature, as `Table.detail` lists it.
            truncate_history: have older versions that show the feature leave the log first (the first call ends with an error that says
                when to call again); else they are hidden behind checkpoints, and the feature ``checkpointProtection`` keeps these.
            dry_run: tell what would be written anew, what the protocol would be and who could read the table then; change nothing.
            is_fast: False: hide nothing, and wait until the log has lost these versions by itself.

        Returns: what was done; errors are those of `tahoe.ops.features.drop_feature.drop_feature`.
        """
        from tahoe.ops.features.drop_feature import DropRequest, drop_feature

        request = DropRequest(name, truncate_history, is_fast, dry_run)
        with shown(self.clock) as progress:
            return drop_feature(self.begin, partial(self.commit, user_metadata=user_metadata), request, progress)

    def compat(self) -> list[EngineCompat]:
        """Which other engines can read and write the newest version, and what is in the way, as far as their makers say."""
        from tahoe.ops.features.compat import compat_of

        return compat_of(self.snapshot().config)

    def repair_log(self, *, dry_run: bool = False) -> LogRepair:
        """Write the checkpoint, the checksum and ``_last_checkpoint`` of the newest version anew, where they are damaged or missing.

        Args:
            dry_run: tell what is wrong, and do nothing.

        Returns: what was wrong and was done; errors are those of `tahoe.ops.repair_log.repair_log`.
        """
        from tahoe.ops.repair_log import repair_log

        with shown(self.clock) as progress:
            return repair_log(self.store, self.clock, dry_run=dry_run, progress=progress)
