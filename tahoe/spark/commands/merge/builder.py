"""`DeltaMergeBuilder`: builds a MERGE on Spark clause by clause, with delta-spark's method names."""

# ruff: noqa: N802 - the names are delta-spark's

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.merge.explained import MergeExplained
from tahoe.ops.rows.row_changes import RowsChanged
from tahoe.spark.commands.checked_arguments import checked_expression, checked_expressions, wrong_argument
from tahoe.spark.commands.merge.merge import explain_merge, merge
from tahoe.spark.commands.merge.statement import MergeRequest
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.jvm.local_rows import Result

RESULT = StructType(
    [
        StructField("num_affected_rows", LongType()),
        StructField("num_updated_rows", LongType()),
        StructField("num_deleted_rows", LongType()),
        StructField("num_inserted_rows", LongType()),
    ]
)
"""The columns of the result of `DeltaMergeBuilder.execute`."""


def merge_builder(
    target: CommandTarget, source: object, condition: object, builder: type[DeltaMergeBuilder] | None = None
) -> DeltaMergeBuilder:
    """Return the builder for `DeltaTable.merge`.

    Args:
        builder: its class, if it is not `DeltaMergeBuilder`.

    Raises:
        WrongArgument: an argument has the wrong type; the message is delta-spark's.
    """
    if source is None:
        raise wrong_argument("'source' in merge cannot be None", "source")
    if not isinstance(source, DataFrame):
        raise wrong_argument("Type of 'source' in merge must be DataFrame.", "source")
    on = checked_expression(condition)
    if on is None:
        raise wrong_argument("'condition' in merge cannot be None", "condition")
    return (builder or DeltaMergeBuilder)(target, MergeRequest(source, on))


class DeltaMergeBuilder:
    """Builds a MERGE. `execute` runs it, `explain` only evaluates it. Each other method returns a new builder with one more clause.

    Clauses are tried in the order in which they are added. For each row the first clause of its kind whose condition is true applies; only
    the last clause of a kind may have no condition. A condition or a value is SQL text or a column expression. In ``whenMatched…`` they see
    both sides, in ``whenNotMatched…`` only the source, in ``whenNotMatchedBySource…`` only the target.
    """

    def __init__(self, target: CommandTarget, request: MergeRequest) -> None:
        self._target = target
        self._request = request

    def __repr__(self) -> str:
        return f"DeltaMergeBuilder({self._target.table!r}, {len(self._request.clauses)} clauses)"

    def whenMatchedUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Update matched rows.

        Args:
            set: column, or nested field as ``a.b`` → value over both sides. Required.
        """
        return with_clause(self, Kind.MATCHED, Action.UPDATE, condition, checked_expressions(set, "set", "whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Update matched rows with the source's values, column by column of the same name."""
        return with_clause(self, Kind.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return with_clause(self, Kind.MATCHED, Action.DELETE, condition, ())

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Insert a row for each source row without a match.

        Args:
            values: column → value over the source; other columns are null or generated. Required.
        """
        return with_clause(
            self, Kind.NOT_MATCHED, Action.INSERT, condition, checked_expressions(values, "values", "whenNotMatchedInsert")
        )

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert each source row without a match, column by column of the same name."""
        return with_clause(self, Kind.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Update target rows that no source row matches.

        Args:
            set: column, or nested field as ``a.b`` → value over the target. Required.
        """
        values = checked_expressions(set, "set", "whenNotMatchedBySourceUpdate")
        return with_clause(self, Kind.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete target rows that no source row matches."""
        return with_clause(self, Kind.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, ())

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the clauses add columns that only the source has."""
        return type(self)(self._target, replace(self._request, schema_evolution=True))

    def execute(self) -> DataFrame:
        """Run the MERGE; return one row with the row counts. See `tahoe.spark.commands.merge.merge.merge` for the errors."""
        result = Result(self._target.spark, RESULT)
        return result.of([self._merge().counts])

    def _merge(self) -> RowsChanged:
        return merge(self._target, self._request)

    def explain(self) -> MergeExplained:
        """Return the effects of `execute` on the current table, clause by clause, without writing. Raises the errors that `execute` raises
        before it writes.
        """
        return explain_merge(self._target, self._request)


def with_clause(
    builder: DeltaMergeBuilder,
    kind: Kind,
    action: Action,
    condition: object,
    values: tuple[tuple[str, str | Column], ...] | None,
) -> DeltaMergeBuilder:
    """Return the builder with one more clause; see `tahoe.ops.merge.clauses.Clause`."""
    clause = Clause(kind, action, checked_expression(condition), values)
    request = replace(builder._request, clauses=(*builder._request.clauses, clause))
    return type(builder)(builder._target, request)
