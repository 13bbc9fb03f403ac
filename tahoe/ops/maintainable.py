"""What keeps a table's files in order without Spark: what `tahoe.table.Table` has of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tahoe.progress import shown

if TYPE_CHECKING:
    from datetime import date, datetime

    import pyarrow as pa

    from tahoe.clock import Clock
    from tahoe.expr.tree.predicate import Predicate
    from tahoe.ops.layout.optimize_report import Optimized
    from tahoe.ops.repair_log import LogRepair
    from tahoe.ops.upkeep.restore import Restored
    from tahoe.ops.upkeep.vacuum import Vacuumed
    from tahoe.snapshot.snapshot import Snapshot
    from tahoe.store.log_store import LogStore
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Maintainable"]


class Maintainable(ABC):
    """Files written anew, old ones deleted, old versions brought back. Others may read and write meanwhile."""

    clock: Clock
    store: LogStore

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

    def purge(self, where: str | Predicate | None = None) -> int:
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
        where: str | Predicate | None = None,
        *,
        zorder_by: Sequence[str] = (),
        curve: str = "kd",
        target_file_size: int | None = None,
        min_file_size: int | None = None,
        max_deleted_rows_ratio: float = 0.05,
        dry_run: bool = False,
        user_metadata: str | None = None,
    ) -> Optimized:
        """Write small files, and files with many deleted rows, anew as few large ones; others may read and write meanwhile.

        Args:
            where: on partition columns; only these partitions.
            zorder_by: columns by which rows are clustered, so that conditions on any of them skip files; every file is written anew then.
            dry_run: tell what would be done, and do nothing. For the others see `tahoe.ops.layout.optimize_plan.OptimizeRequest`.

        Returns: what was done, with the metrics of the SQL statement; see `tahoe.ops.layout.optimize_report.Optimized`.
        """
        from tahoe.ops.layout.optimize import optimize, rewritten_here
        from tahoe.ops.layout.optimize_plan import OptimizeRequest

        request = OptimizeRequest(
            where, None, tuple(zorder_by), curve, target_file_size, min_file_size, max_deleted_rows_ratio, dry_run=dry_run
        )
        commit, rewrite = partial(self.commit, user_metadata=user_metadata), partial(rewritten_here, self.clock)
        with shown(self.clock) as progress:
            return optimize(self.begin, commit, request, rewrite, progress)

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

    def repair_log(self, *, dry_run: bool = False) -> LogRepair:
        """Write the checkpoint, the checksum and ``_last_checkpoint`` of the newest version anew, where they are damaged or missing.

        Args:
            dry_run: tell what is wrong, and do nothing.

        Returns: what was wrong and was done; errors are those of `tahoe.ops.repair_log.repair_log`.
        """
        from tahoe.ops.repair_log import repair_log

        with shown(self.clock) as progress:
            return repair_log(self.store, self.clock, dry_run=dry_run, progress=progress)
