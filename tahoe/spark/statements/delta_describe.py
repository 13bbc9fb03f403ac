"""DESCRIBE DETAIL and DESCRIBE HISTORY."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.spark.commands.frames import DETAIL, HISTORY, detail_rows, detail_rows_of_entry, history_rows
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.names.entries import NamedTable, entry_of
from tahoe.spark.names.error_names import reading
from tahoe.spark.statements.command import Command, Rows
from tahoe.spark.statements.statement_types import TableStatement, delta_statements
from tahoe.sql.dialect import STRING, Cursor
from tahoe.sql.table_name import take_table_or_path

__all__ = ["DETAIL_STATEMENTS", "DescribeDetail", "DescribeHistory"]


@dataclass(frozen=True, slots=True)
class DescribeDetail(TableStatement):
    """``DESCRIBE DETAIL …``.

    Args:
        is_text: its path is a string, not an identifier.
    """

    words, first_words = "DESCRIBE DETAIL", ("DESC", "DESCRIBE")
    columns, is_query = DETAIL, True
    is_text: bool = False

    @classmethod
    def parse(cls, cursor: Cursor) -> DescribeDetail | None:
        """See `DeltaStatement.parse`."""
        cursor.place += 1
        if not cursor.take("DETAIL"):
            return None
        is_text = cursor.peek().kind == STRING
        if (table := take_table_or_path(cursor)) is None:
            return None
        cursor.end()
        return DescribeDetail(table, is_text)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        full_name = None if named.entry is None else named.full_name
        with reading(named.table, "DELTA_FILE_NOT_FOUND") if self.is_text else nullcontext():
            return list(detail_rows(named.table, full_name))

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether it describes a column of a table with the name ``detail``."""
        return entry_of(spark, ["detail"]) is not None

    def on_other_table(self, spark: SparkSession) -> Command | None:
        """Return the rows of a table of another format, from its catalog entry."""
        entry = entry_of(spark, self.table.identifiers)
        if entry is None:
            return None
        name = str(entry.qualifiedName())
        return self._command(lambda: detail_rows_of_entry(Jvm.of(spark), entry, name))


@dataclass(frozen=True, slots=True)
class DescribeHistory(TableStatement):
    """``DESCRIBE HISTORY … [LIMIT n]``."""

    words, first_words = "DESCRIBE HISTORY", ("DESC", "DESCRIBE")
    columns, is_query = HISTORY, True
    limit: int | None

    @classmethod
    def parse(cls, cursor: Cursor) -> DescribeHistory | None:
        """See `DeltaStatement.parse`."""
        cursor.place += 1
        if not cursor.take("HISTORY") or (table := take_table_or_path(cursor)) is None:
            return None
        limit = cursor.integer() if cursor.take("LIMIT") else None
        cursor.end()
        return DescribeHistory(table, limit)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        return history_rows(named.table, self.limit)

    def is_of_spark(self, spark: SparkSession) -> bool:
        """Return whether it describes a column of a table with the name ``history``."""
        return entry_of(spark, ["history"]) is not None


DETAIL_STATEMENTS = delta_statements(DescribeDetail, DescribeHistory)
