"""What keeps a table's files in order without Spark: what `tahoe.table.Table` has of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from tahoe.progress import shown

if TYPE_CHECKING:
    from tahoe.clock import Clock
    from tahoe.expr.tree.predicate import Predicate
    from tahoe.ops.layout.optimize_report import Optimized
    from tahoe.txn.commit import Committed
    from tahoe.txn.transaction import Operation, Transaction

__all__ = ["Maintainable"]


class Maintainable(ABC):
    """Files written anew, with the same rows. Others may read and write meanwhile."""

    clock: Clock

    @abstractmethod
    def version(self) -> int:
        """The newest version."""

    @abstractmethod
    def begin(self) -> Transaction:
        """A transaction on the newest version."""

    @abstractmethod
    def commit(self, transaction: Transaction, operation: Operation, *, user_metadata: str | None = None) -> Committed:
        """Commit it."""

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
