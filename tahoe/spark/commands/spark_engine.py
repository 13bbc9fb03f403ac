"""The engines of DELETE, UPDATE and partial overwrites on Spark: find the rows that a condition selects, and copy the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pyspark.sql import DataFrame

from tahoe.expr.tree.predicate import all_of, references
from tahoe.log.replay import add_files
from tahoe.ops.rows.engine import Engine
from tahoe.ops.rows.row_changes import FileChange, all_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.spark.commands.conditions import ResolvedCondition
from tahoe.spark.commands.row_changes import TableRows, changes_of, of_kind
from tahoe.spark.scan.relation import named


class CommandRows(Protocol):
    """The rows of a command, in a classic session (`TableRows`) or in one of Spark Connect (`tahoe.spark.connect.remote_rows.RemoteRows`)."""

    def changed(self, changes: Sequence[FileChange]) -> DataFrame:
        """Return the rows of the changes."""

    def copy(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """Write the remaining rows of the changed files to new files, and stage these."""

    def written(self, adds: Sequence[AddFile]) -> DataFrame:
        """Return the rows of files that the transaction has just written."""

    def write_change_data(self, rows: DataFrame) -> list[AddCDCFile]:
        """Write rows with their ``_change_type`` to change data files, and stage these."""


Rows = TypeVar("Rows", bound=CommandRows)


@dataclass(frozen=True, slots=True)
class RowsEngine(Generic[Rows]):
    """The part of an engine that writes; subclasses find rows."""

    rows: Rows

    def copy_rows(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return self.rows.copy(changes)

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return self.rows.write_change_data(of_kind(self.rows.changed(changes), "delete"))


def write_update_data(rows: CommandRows, changes: Sequence[FileChange], updated: Sequence[AddFile]) -> list[AddCDCFile]:
    """Write the changed rows, before and after an update, to change data files.

    Args:
        updated: the files with the rows after the update: a non-deterministic expression must not be evaluated again.
    """
    before = of_kind(rows.changed(changes), "update_preimage")
    after = of_kind(rows.written(updated), "update_postimage")
    return rows.write_change_data(before.unionByName(after, allowMissingColumns=True))


@dataclass(frozen=True, slots=True)
class Replacement(RowsEngine[CommandRows]):
    """The `tahoe.ops.rows.engine.Engine` of an overwrite of some rows, which are deleted as in DELETE.

    Args:
        adds: the new files, about to be staged.
        search: finds the replaced rows; None if `matches` are these rows.
    """

    adds: Sequence[AddFile]
    search: Engine | None
    matches: Sequence[FileChange] = ()

    def find_rows(self) -> Sequence[FileChange]:
        """Return the replaced rows."""
        return self.matches if self.search is None else self.search.find_rows()

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """Write the replaced rows and the new rows."""
        deleted = of_kind(self.rows.changed(changes), "delete")
        inserted = of_kind(self.rows.written(self.adds), "insert")
        return self.rows.write_change_data(deleted.unionByName(inserted, allowMissingColumns=True))


@dataclass(frozen=True, slots=True)
class SparkEngine(RowsEngine[TableRows]):
    """The `tahoe.ops.rows.engine.Engine` of a DELETE on Spark."""

    condition: ResolvedCondition

    def find_rows(self) -> Sequence[FileChange]:
        """Return the selected rows of each file: scans the columns in the condition once, and registers the read predicate."""
        condition, snapshot = self.condition.condition, self.condition.version.snapshot
        predicate = all_of(self.condition.meaning.predicates)
        self.rows.transaction.read(predicate)
        whole = whole_files(self.condition)
        if whole is not None:
            return [all_rows(snapshot, add) for add in whole]
        candidates = snapshot.files_matching(predicate)
        if not len(candidates):
            return []
        version = self.condition.version
        rows = named(version.with_positions(candidates), version.alias)
        return changes_of(snapshot, candidates, rows if condition is None else rows.where(condition)).changes


def whole_files(condition: ResolvedCondition) -> list[AddFile] | None:
    """Return the files whose rows are all selected, if the partition values decide that, otherwise None."""
    if not condition.meaning.exact:
        return None
    predicate, snapshot = all_of(condition.meaning.predicates), condition.version.snapshot
    if not {path[0] for path in references(predicate)} <= set(snapshot.partition_columns):
        return None
    return add_files(snapshot.files_matching(predicate))
