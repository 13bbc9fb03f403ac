"""The condition of a DELETE or UPDATE: which rows it is true for, which files may have such rows, which columns it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tahoe.expr.compute.compute import compute_mask
from tahoe.expr.compute.evaluate import evaluate
from tahoe.expr.parse.parse_expression import parse_condition
from tahoe.expr.tree.expression import Expression, columns
from tahoe.expr.tree.implied import to_predicate
from tahoe.expr.tree.predicate import TRUE, Predicate, references
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import FileChange, bitmap, parts_with_positions
from tahoe.protocol.actions import AddFile
from tahoe.protocol.partition import deserialize_column
from tahoe.schema.arrow_values import array, scalar
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from tahoe.txn.transaction import Transaction

__all__ = ["RowCondition", "find_changes", "find_rows", "row_condition", "whole_files"]


@dataclass(frozen=True, slots=True)
class RowCondition:
    """Which rows are meant.

    Args:
        text: as the user gave it; None where every row is meant.
        exact: decides for each row.
        predicate: what skipping and the conflict check can use: true wherever `exact` is, and perhaps elsewhere.
        columns: the top-level columns that `exact` reads.
    """

    text: str | None
    exact: Predicate | Expression
    predicate: Predicate
    columns: tuple[str, ...]

    @property
    def is_for_all_rows(self) -> bool:
        """Whether every row is meant, so that no row needs to be looked at."""
        return self.exact == TRUE

    def mask(self, rows: pa.Table) -> pa.Array:
        """TRUE for the rows that are meant; never NULL."""
        if not isinstance(self.exact, Predicate):
            return compute_mask(self.exact, rows)
        meant = pc.fill_null(evaluate(self.exact, rows), scalar(False))
        return meant.combine_chunks() if isinstance(meant, pa.ChunkedArray) else meant


def row_condition(where: str | Predicate | None, schema: StructType, time_zone: str = "UTC") -> RowCondition:
    """The condition of SQL text, or of a predicate. Raises `InvalidRequest` for text that is not understood."""
    if where is None:
        return RowCondition(None, TRUE, TRUE, ())
    if not isinstance(where, str):
        names = tuple(sorted({schema.field(path[0]).name for path in references(where)}))
        return RowCondition(str(where), where, where, names)
    expression = parse_condition(where, schema, time_zone)
    predicate = to_predicate(expression, None, time_zone) or TRUE
    names = tuple(sorted({name for _, name in columns(expression)}))
    # `true` in any spelling means every row.
    exact = TRUE if not names and predicate == TRUE and compute_mask(expression, _ONE_ROW)[0].as_py() else expression
    return RowCondition(where, exact, predicate, names)


def whole_files(snapshot: Snapshot, condition: RowCondition) -> list[AddFile] | None:
    """The files all of whose rows are meant, where the partition values decide that; None where they do not."""
    partition_columns = {column.name: column for column in snapshot.config.partition_schema}
    if not all(name in partition_columns for name in condition.columns):
        return None
    files = snapshot.files() if condition.is_for_all_rows else snapshot.files_matching(condition.predicate)
    adds = add_files(files)
    if condition.is_for_all_rows or not adds:
        return adds
    values = {
        name: deserialize_column(
            array([add.partition_values[partition_columns[name].physical_name] for add in adds], pa.string()),
            partition_columns[name].data_type,
        )
        for name in condition.columns or list(partition_columns)[:1]
    }
    mask = condition.mask(pa.table(values) if values else pa.table({"": pa.nulls(len(adds))}))
    return [add for add, met in zip(adds, mask.to_pylist(), strict=True) if met]


def find_changes(transaction: Transaction, snapshot: Snapshot, condition: RowCondition) -> list[FileChange]:
    """The rows that are meant, file by file; notes what was looked for."""
    transaction.read(condition.predicate)
    candidates = add_files(snapshot.files_matching(condition.predicate))
    return [change for add in candidates if (change := find_rows(snapshot, add, condition)) is not None]


def find_rows(snapshot: Snapshot, add: AddFile, condition: RowCondition) -> FileChange | None:
    """The rows of one file that are meant, reading only the columns that the condition needs; None for no row."""
    living, dead = 0, bitmap(pa.nulls(0, pa.int64()))
    for rows, positions in parts_with_positions(snapshot, add, condition.columns):
        living += len(positions)
        dead |= bitmap(positions.filter(condition.mask(rows.append_column("", positions))))
    return FileChange(add, living, dead) if len(dead) else None


_ONE_ROW = pa.table({"": pa.nulls(1)})
