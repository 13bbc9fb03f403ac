"""The engine of a DELETE, an UPDATE or an overwrite of some rows: it finds rows and writes new files, with Arrow or with Spark.

An engine belongs to one operation. The functions that stage the operation compute the actions, for every engine alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tahoe.base.progress import Progress, tracked
from tahoe.expr.row_condition import RowCondition
from tahoe.ops.rows.conditions import find_changes
from tahoe.ops.rows.row_changes import FileChange, change_rows, reading_ahead, remaining_rows, write_change_data, write_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.protocol.config import TableConfig
from tahoe.snapshot.snapshot import Snapshot
from tahoe.txn.transaction import Transaction


@dataclass(frozen=True, slots=True)
class RowOperation:
    """A DELETE or UPDATE on a transaction.

    Args:
        snapshot: the version that it changes.
        condition: the text of its condition, for the history; None without a condition.
        started: the start in milliseconds since the epoch; the time until the rows are found counts as scan time.
    """

    transaction: Transaction
    snapshot: Snapshot
    condition: str | None
    started: int


class Engine(Protocol):
    """Finds the rows of an operation, and writes files."""

    def find_rows(self) -> Sequence[FileChange]:
        """Return the changed rows of each file, and register the search with the transaction."""

    def copy_rows(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the remaining rows of these files to new files, and stage these."""

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """Write the rows for the change data feed, after all other rows, and stage the files."""


class UpdateEngine(Engine, Protocol):
    """The engine of an UPDATE."""

    def write_updated(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the changed rows with their new values, and without deletion vectors (`uses_vectors`) also the other rows of their
        files; stage the new files.
        """


@dataclass(frozen=True, slots=True)
class ArrowEngine:
    """The `Engine` of a DELETE in this process, without Spark.

    Args:
        config: of the table after the commit.
        progress: called with the numbers of files searched and of files rewritten.
    """

    transaction: Transaction
    snapshot: Snapshot
    config: TableConfig
    condition: RowCondition
    progress: Progress

    def find_rows(self) -> Sequence[FileChange]:
        """See `Engine`."""
        return find_changes(self.transaction, self.snapshot, self.condition, self.progress)

    def copy_rows(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """See `Engine`."""
        rows = remaining_rows(self.snapshot_of(changes), tracked(changes, self.progress, "files rewritten"))
        return write_rows(self.transaction, self.config, rows, copied=True)

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """See `Engine`."""
        return write_change_data(self.transaction, self.config, change_rows(self.snapshot_of(changes), changes, "delete"))

    def snapshot_of(self, changes: Iterable[FileChange]) -> Snapshot:
        """Return the snapshot for reading the files of these changes in their order."""
        return reading_ahead(self.snapshot, [change.add for change in changes])
