"""``df.mergeInto(table, condition)`` of PySpark, for Delta tables in classic sessions and in those of Spark Connect."""
# ruff: noqa: N802 - the names are PySpark's

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column

from tahoe.ops.merge.clauses import Action, Kind
from tahoe.spark.commands.checked_arguments import checked_expressions
from tahoe.spark.commands.merge.builder import DeltaMergeBuilder, merge_builder, with_clause
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.entry_points.wrapping import is_enabled, wrap
from tahoe.spark.names.entries import parts_of, table_named


def wrap_merge_into(frame: type, builder: type[DeltaMergeBuilder]) -> None:
    """Make `mergeInto` of this class of DataFrames change Delta tables.

    Args:
        builder: its class for the sessions of these DataFrames.
    """

    def merge_into(original: Callable[..., Any], source: Any, table: str, condition: Column) -> Any:
        spark = source.sparkSession
        parts = parts_of(spark, table) if is_enabled(spark) else ()
        named = table_named(spark, parts) if parts else None
        if named is None:
            return original(source, table, condition)
        alias = None if named.is_by_path else parts[-1]
        return MergeWriter(merge_builder(CommandTarget(spark, named.table, alias), source, condition, builder))

    wrap(frame, "mergeInto", merge_into)


class MergeWriter:
    """PySpark's ``MergeIntoWriter``: collects clauses, which `merge` runs in their order."""

    def __init__(self, builder: DeltaMergeBuilder) -> None:
        self._builder = builder

    def whenMatched(self, condition: Column | None = None) -> MergeActions:
        """Begin a clause for target rows with a source row."""
        return MergeActions(self, Kind.MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> MergeInsertions:
        """Begin a clause for source rows without a target row."""
        return MergeInsertions(self, Kind.NOT_MATCHED, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> MergeActions:
        """Begin a clause for target rows without a source row."""
        return MergeActions(self, Kind.NOT_MATCHED_BY_SOURCE, condition)

    def withSchemaEvolution(self) -> MergeWriter:
        """Let the table get columns of the source."""
        self._builder = self._builder.withSchemaEvolution()
        return self

    def merge(self) -> None:
        """Run the MERGE. See `tahoe.spark.commands.merge.merge.merge` for the errors."""
        self._builder.execute()

    def add(self, kind: Kind, action: Action, condition: Column | None, values: Mapping[str, Column] | None) -> MergeWriter:
        """Add a clause; without `values`, it assigns all columns by name. Raises `WrongArgument` for values that are no expressions."""
        pairs = None if values is None else checked_expressions(values, "assignments")
        self._builder = with_clause(self._builder, kind, action, condition, pairs)
        return self


class _Clause:
    def __init__(self, writer: MergeWriter, kind: Kind, condition: Column | None) -> None:
        self._writer, self._kind, self._condition = writer, kind, condition


class MergeActions(_Clause):
    """The action of a clause for target rows; each method returns the writer."""

    def updateAll(self) -> MergeWriter:
        """Assign all columns by name."""
        return self._writer.add(self._kind, Action.UPDATE, self._condition, None)

    def update(self, assignments: Mapping[str, Column]) -> MergeWriter:
        """Assign these columns."""
        return self._writer.add(self._kind, Action.UPDATE, self._condition, assignments)

    def delete(self) -> MergeWriter:
        """Delete the rows."""
        return self._writer.add(self._kind, Action.DELETE, self._condition, {})


class MergeInsertions(_Clause):
    """The action of a clause for source rows; each method returns the writer."""

    def insertAll(self) -> MergeWriter:
        """Insert all columns by name."""
        return self._writer.add(self._kind, Action.INSERT, self._condition, None)

    def insert(self, assignments: Mapping[str, Column]) -> MergeWriter:
        """Insert these columns."""
        return self._writer.add(self._kind, Action.INSERT, self._condition, assignments)
