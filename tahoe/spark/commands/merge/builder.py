"""`DeltaMergeBuilder`: a MERGE on Spark, written clause by clause, with the names that programs written for delta-spark use."""

# ruff: noqa: N802 - the names are delta-spark's

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.ops.merge.explained import MergeExplained
from tahoe.spark.commands.checked_arguments import checked_expression, checked_expressions, wrong_argument
from tahoe.spark.commands.merge.merge import explain_merge, merge
from tahoe.spark.commands.merge.statement import MergeRequest
from tahoe.spark.jvm.local_rows import Result
from tahoe.spark.names.options import AUTO_MERGE, AUTOMATIC_WIDENING, widening_mode
from tahoe.spark.names.settings import is_on
from tahoe.table import Table

__all__ = ["RESULT", "DeltaMergeBuilder", "merge_builder"]

RESULT = StructType(
    [
        StructField("num_affected_rows", LongType()),
        StructField("num_updated_rows", LongType()),
        StructField("num_deleted_rows", LongType()),
        StructField("num_inserted_rows", LongType()),
    ]
)
"""The columns of what `DeltaMergeBuilder.execute` returns."""


def merge_builder(
    spark: SparkSession, table: Table, source: Any, condition: Any, alias: str | None, options: Mapping[str, str]
) -> DeltaMergeBuilder:
    """What `DeltaTable.merge` returns.

    Raises:
        WrongArgument: arguments of other types, in delta-spark's words.
    """
    if source is None:
        raise wrong_argument("'source' in merge cannot be None", "source")
    if not isinstance(source, DataFrame):
        raise wrong_argument("Type of 'source' in merge must be DataFrame.", "source")
    on = checked_expression(condition)
    if on is None:
        raise wrong_argument("'condition' in merge cannot be None", "condition")
    return DeltaMergeBuilder(spark, table, MergeRequest(source, on, alias=alias, options=options))


class DeltaMergeBuilder:
    """Clauses are added in the order in which they are tried; `execute` runs them, `explain` only looks. Each method gives a new builder.

    For every row the first clause of its kind counts whose condition is true; only the last of a kind may go without. A condition or a
    value is SQL text or a column expression. Those of ``whenMatched…`` see both sides, those of ``whenNotMatched…`` the source alone,
    those of ``whenNotMatchedBySource…`` the target alone.
    """

    def __init__(self, spark: SparkSession, table: Table, request: MergeRequest) -> None:
        self._spark = spark
        self._table = table
        self._request = request

    def __repr__(self) -> str:
        return f"DeltaMergeBuilder({self._table!r}, {len(self._request.clauses)} clauses)"

    def whenMatchedUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Give matched rows new values.

        Args:
            set: column, or nested field as ``a.b`` → value over both sides. It must be given.
        """
        return self._with(Kind.MATCHED, Action.UPDATE, condition, checked_expressions(set, "set", "whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Give matched rows the source's values, column by column of the same name."""
        return self._with(Kind.MATCHED, Action.UPDATE, condition, None)

    def whenMatchedDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete matched rows."""
        return self._with(Kind.MATCHED, Action.DELETE, condition, ())

    def whenNotMatchedInsert(
        self, condition: str | Column | None = None, values: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Insert a row for each row of the source that matches none.

        Args:
            values: column → value over the source; other columns are null, or generated. It must be given.
        """
        return self._with(
            Kind.NOT_MATCHED, Action.INSERT, condition, checked_expressions(values, "values", "whenNotMatchedInsert")
        )

    def whenNotMatchedInsertAll(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Insert each row of the source that matches none, column by column of the same name."""
        return self._with(Kind.NOT_MATCHED, Action.INSERT, condition, None)

    def whenNotMatchedBySourceUpdate(
        self, condition: str | Column | None = None, set: Mapping[str, str | Column] | None = None
    ) -> DeltaMergeBuilder:
        """Give rows of the target that no row of the source matches new values.

        Args:
            set: column, or nested field as ``a.b`` → value over the target. It must be given.
        """
        values = checked_expressions(set, "set", "whenNotMatchedBySourceUpdate")
        return self._with(Kind.NOT_MATCHED_BY_SOURCE, Action.UPDATE, condition, values)

    def whenNotMatchedBySourceDelete(self, condition: str | Column | None = None) -> DeltaMergeBuilder:
        """Delete rows of the target that no row of the source matches."""
        return self._with(Kind.NOT_MATCHED_BY_SOURCE, Action.DELETE, condition, ())

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Let the clauses add columns that only the source has."""
        return DeltaMergeBuilder(self._spark, self._table, replace(self._request, schema_evolution=True))

    def execute(self) -> DataFrame:
        """Run it; one row that counts the rows. See `tahoe.spark.commands.merge.merge.merge` for what it raises."""
        result = Result(self._spark, RESULT)
        return result.of([self.counted()])

    def counted(self) -> tuple[int | None, ...]:
        """Run it; the values of `RESULT`."""
        done = merge(self._spark, self._table, self._evolving())
        return done.num_affected_rows, done.num_updated_rows, done.num_deleted_rows, done.num_inserted_rows

    def explain(self) -> MergeExplained:
        """What `execute` would do now, clause by clause. Nothing is written; raises what `execute` raises before it writes."""
        return explain_merge(self._spark, self._table, self._evolving())

    def _evolving(self) -> MergeRequest:
        """The request; a setting of the session may ask for schema evolution too, and says what that widens."""
        if self._request.keeps_schema:
            return replace(self._request, schema_evolution=False)
        automatic = is_on(self._spark, AUTO_MERGE)
        if not automatic and not self._request.schema_evolution:
            return self._request
        mode = widening_mode(self._spark.conf.get(AUTOMATIC_WIDENING, None))
        return replace(self._request, schema_evolution=True, automatic_widening=mode)

    def _with(
        self, kind: Kind, action: Action, condition: Any, values: tuple[tuple[str, str | Column], ...] | None
    ) -> DeltaMergeBuilder:
        clause = Clause(kind, action, checked_expression(condition), values)
        return DeltaMergeBuilder(self._spark, self._table, replace(self._request, clauses=(*self._request.clauses, clause)))
