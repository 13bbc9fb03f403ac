"""Find the rows that a condition selects, file by file, and the files that it selects as a whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.base.progress import Progress, silent, tracked
from tahoe.expr.condition_forms import Condition
from tahoe.expr.row_condition import RowCondition, row_condition
from tahoe.log.replay import add_files
from tahoe.ops.rows.row_changes import FileChange, bitmap, parts_with_positions, reading_ahead
from tahoe.protocol.actions import AddFile
from tahoe.protocol.partition import deserialize_column
from tahoe.schema.arrow_values import array
from tahoe.schema.types import StructField, StructType
from tahoe.snapshot.read_errors import naming
from tahoe.snapshot.snapshot import Snapshot
from tahoe.store.side_by_side import in_threads

if TYPE_CHECKING:
    from tahoe.txn.transaction import Transaction


_OF_PARTITIONS = {
    "DELTA_COLUMN_NOT_FOUND": "DELTA_NON_PARTITION_COLUMN_REFERENCE",
    "PARSE_SYNTAX_ERROR": "DELTA_FAILED_RECOGNIZE_PREDICATE",
}
"""Error codes for conditions on partitions, by the codes of the same errors in other conditions."""
_ONLY_BY_ENGINE = (
    "TAHOE_EXPRESSION_NOT_ALLOWED",
    "TAHOE_EXPRESSION_TOO_LONG",
    "TAHOE_EXPRESSION_TOO_DEEP",
    "PARSE_SYNTAX_ERROR",
)


class PartitionFilter(Protocol):
    """An engine that evaluates conditions on partitions which Tahoe does not evaluate itself, such as those on the current time."""

    def agrees(self, condition: RowCondition) -> bool:
        """Return whether a condition means to the engine what it means to Tahoe."""

    def __call__(self, where: str, columns: StructType, partitions: Sequence[tuple[Any, ...]]) -> Collection[int]:
        """Return the places of the partitions that fulfill a condition.

        Args:
            where: SQL text.
            columns: the partition columns.
            partitions: one value for each column, as a Python object.

        Raises `InvalidRequest` (``DELTA_NON_PARTITION_COLUMN_REFERENCE``) for a condition on other columns.
        """


def whole_files(snapshot: Snapshot, condition: RowCondition) -> list[AddFile] | None:
    """Return the files that are selected as a whole if partition values alone decide the condition; None if they do not."""
    partition_columns = {column.name: column for column in snapshot.config.partition_schema}
    if not all(name in partition_columns for name in condition.columns):
        return None
    files = snapshot.files() if condition.is_for_all_rows else snapshot.files_matching(condition.predicate)
    adds = add_files(files)
    if condition.is_for_all_rows or not adds:
        return adds
    values = {
        name: _typed([add.partition_values[partition_columns[name].physical_name] for add in adds], partition_columns[name])
        for name in condition.columns or list(partition_columns)[:1]
    }
    mask = condition.mask(pa.table(values) if values else pa.table({"": pa.nulls(len(adds))}))
    return [add for add, met in zip(adds, mask.to_pylist(), strict=True) if met]


def _typed(texts: Sequence[str | None], column: StructField) -> pa.Array:
    return deserialize_column(array(texts, pa.string()), column.data_type)


@dataclass(frozen=True, slots=True)
class SelectedPartitions:
    """The partitions that a condition selects.

    Args:
        condition: its text, for the history; None for all partitions.
        adds: the live files of the partitions.
    """

    condition: str | None
    adds: list[AddFile]


def select_partitions(
    snapshot: Snapshot,
    where: Condition | None,
    moment: Moment,
    *,
    engine: PartitionFilter | None = None,
) -> SelectedPartitions:
    """Return the selected partitions; all partitions without a condition.

    Args:
        where: SQL text or a predicate, on partition columns only.
        moment: the time and time zone of the statement.
        engine: evaluates the texts that Tahoe does not evaluate or that have another meaning for it, and all with the current time, since
            it has a clock of its own. Without one, the first are refused.

    Raises `InvalidRequest`: ``DELTA_NON_PARTITION_COLUMN_REFERENCE`` for a condition on other columns, ``DELTA_FAILED_RECOGNIZE_PREDICATE``
        for text that cannot be parsed.
    """
    try:
        condition = row_condition(where, snapshot.schema, moment.time_zone, moment.ms if engine is None else None)
        partitioned = snapshot.partition_columns
    except InvalidRequest as error:
        if engine is not None and isinstance(where, str) and error.code in _ONLY_BY_ENGINE:
            return SelectedPartitions(where, _selected_by(engine, snapshot, where))
        raise error.recoded(_OF_PARTITIONS.get(error.code, error.code)) from error.__cause__
    if engine is not None and isinstance(where, str) and not engine.agrees(condition):
        return SelectedPartitions(where, _selected_by(engine, snapshot, where))
    rest = [name for name in condition.columns if name not in partitioned]
    if rest:
        raise InvalidRequest(
            f"Predicate references non-partition column '{rest[0]}'. Only the partition columns may be referenced: "
            f"[{', '.join(partitioned)}] (table {snapshot.config.table}). Leave the column out of the condition.",
            code="DELTA_NON_PARTITION_COLUMN_REFERENCE",
            table=snapshot.config.table,
            column=rest[0],
        )
    return SelectedPartitions(condition.text, whole_files(snapshot, condition) or [])


def _selected_by(engine: PartitionFilter, snapshot: Snapshot, where: str) -> list[AddFile]:
    columns, adds = snapshot.config.partition_schema, add_files(snapshot.files())
    stored = [tuple(add.partition_values[column.physical_name] for column in columns) for add in adds]
    partitions = list(dict.fromkeys(stored))
    values = [_typed([texts[place] for texts in partitions], column).to_pylist() for place, column in enumerate(columns)]
    selected = {partitions[place] for place in engine(where, columns, list(zip(*values, strict=True)) if values else [()])}
    return [add for add, texts in zip(adds, stored, strict=True) if texts in selected]


def find_changes(
    transaction: Transaction, snapshot: Snapshot, condition: RowCondition, progress: Progress = silent
) -> list[FileChange]:
    """Return the selected rows, file by file; register the condition with the transaction for conflict detection."""
    transaction.read(condition.predicate)
    candidates = add_files(snapshot.files_matching(condition.predicate))
    find = partial(find_rows, reading_ahead(snapshot, candidates), condition=condition)
    searched = in_threads(snapshot.store, find, candidates, sum(add.size for add in candidates))
    return [change for change in tracked(searched, progress, "files searched", len(candidates)) if change is not None]


def find_rows(snapshot: Snapshot, add: AddFile, condition: RowCondition) -> FileChange | None:
    """Return the selected rows of a file, reading only the columns that the condition needs; None if there are none."""
    living, dead = 0, bitmap(pa.nulls(0, pa.int64()))
    for rows, positions in parts_with_positions(snapshot, add, condition.columns):
        living += len(positions)
        with naming(snapshot.store.url, snapshot.version, add.path):
            dead |= bitmap(positions.filter(condition.mask(rows.append_column("", positions))))
    return FileChange(add, living, dead) if len(dead) else None
