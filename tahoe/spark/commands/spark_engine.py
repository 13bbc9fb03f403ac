"""The engine of DELETE, UPDATE and partial overwrites on Spark: finds the rows that a condition selects, and copies the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tahoe.expr.tree.predicate import all_of, references
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import FileChange, all_rows
from tahoe.protocol.actions import AddCDCFile, AddFile
from tahoe.spark.commands.conditions import ResolvedCondition
from tahoe.spark.commands.row_changes import TableRows, changes_of, of_kind
from tahoe.spark.scan.relation import named


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """The `tahoe.ops.rows.engine.Engine` of a DELETE on Spark."""

    rows: TableRows
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

    def copy_rows(self, changes: Sequence[FileChange]) -> list[AddFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return self.rows.copy(changes)

    def write_change_data(self, changes: Sequence[FileChange]) -> list[AddCDCFile]:
        """See `tahoe.ops.rows.engine.Engine`."""
        return self.rows.write_change_data(of_kind(self.rows.version.deleted_rows(changes), "delete"))


def whole_files(condition: ResolvedCondition) -> list[AddFile] | None:
    """Return the files whose rows are all selected, if the partition values decide that, otherwise None."""
    if not condition.meaning.exact:
        return None
    predicate, snapshot = all_of(condition.meaning.predicates), condition.version.snapshot
    if not {path[0] for path in references(predicate)} <= set(snapshot.partition_columns):
        return None
    return add_files(snapshot.files_matching(predicate))
