"""Delta's statements that create a table from other files or from an older version: CLONE, CONVERT TO DELTA, RESTORE, and COPY INTO, which
is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.ops.copies.clone import CloneRequest
from tahoe.spark.commands.upkeep import RESTORE_ROW, restore_table
from tahoe.spark.copies.clone import CLONE_ROW, NamedCloneRequest, clone_named
from tahoe.spark.copies.convert import convert_named
from tahoe.spark.names.entries import NamedTable
from tahoe.spark.statements.command import Command, Rows
from tahoe.spark.statements.statement_types import DeltaStatement, TableStatement, delta_statements
from tahoe.sql.dialect import STRING, Cursor
from tahoe.sql.table_name import TableName, take_table, take_table_or_path


@dataclass(frozen=True, slots=True)
class Clone(DeltaStatement):
    """``CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t [SHALLOW | DEEP] CLONE source [VERSION | TIMESTAMP AS OF …] [TBLPROPERTIES (…)]
    [LOCATION '…']``; without CLONE after the name it is a statement of Spark.

    Args:
        table: the clone.
        how: ``create``, ``createIfNotExists``, ``replace`` or ``createOrReplace``.
        source: the name of a path may have another format instead of ``delta``: ``parquet.`/path` ``.
        is_shallow: False without either word.
        version, timestamp: of the source; at most one.
    """

    words, first_words = "CLONE", ("CREATE", "REPLACE")
    columns = CLONE_ROW
    table: TableName
    how: str
    source: TableName
    is_shallow: bool
    version: int | None = None
    timestamp: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    location: str | None = None

    @classmethod
    def parse(cls, cursor: Cursor) -> Clone | None:
        """See `DeltaStatement.parse`."""
        cursor.take("CREATE")
        how = "createOrReplace" if cursor.take("OR", "REPLACE") else "replace" if cursor.take("REPLACE") else "create"
        if not cursor.take("TABLE"):
            return None
        if_not_exists = cursor.take("IF", "NOT", "EXISTS")
        table = take_table(cursor)
        is_shallow = table is not None and cursor.take("SHALLOW", "CLONE")
        if table is None or not (is_shallow or cursor.take("DEEP", "CLONE") or cursor.take("CLONE")):
            return None
        if if_not_exists and how != "create":
            cursor.fail("REPLACE, or IF NOT EXISTS, and not both")
        source = take_table(cursor) or cursor.fail("the table to be cloned")
        version, timestamp = _time_travel(cursor)
        properties = cursor.pairs() if cursor.take("TBLPROPERTIES") else {}
        location = cursor.string() if cursor.take("LOCATION") else None
        cursor.end()
        how = "createIfNotExists" if if_not_exists else how
        return Clone(table, how, source, is_shallow, version, timestamp, tuple(properties.items()), location)

    def command(self, spark: SparkSession) -> Command:
        """See `DeltaStatement.command`."""
        return self._command(lambda: self._run(spark))

    def _run(self, spark: SparkSession) -> Rows:
        request = CloneRequest(self.is_shallow, self.how, dict(self.properties))
        target, source = self.table.identifiers, self.source.identifiers
        return clone_named(spark, NamedCloneRequest(target, source, request, self.version, self.timestamp, self.location))[0]


@dataclass(frozen=True, slots=True)
class Convert(DeltaStatement):
    """``CONVERT TO DELTA … [NO STATISTICS] [PARTITIONED BY (column type, …)]``, the two in either order.

    Args:
        table: the name of a path has its present format instead of ``delta``: ``parquet.`/path` ``.
        partition_by: the text of the columns.
    """

    words = "CONVERT TO DELTA"
    table: TableName
    statistics: bool
    partition_by: str | None

    @classmethod
    def parse(cls, cursor: Cursor) -> Convert:
        """See `DeltaStatement.parse`."""
        cursor.need("CONVERT", "TO", "DELTA")
        table = take_table(cursor) or cursor.fail("a table, or parquet.`/path`")
        statistics, partition_by = True, None
        while not cursor.at_end and not cursor.peek().is_symbol(";"):
            if statistics and cursor.take("NO", "STATISTICS"):
                statistics = False
                continue
            if partition_by is not None:
                cursor.fail("the end of the statement")
            cursor.need("PARTITIONED", "BY")
            partition_by = cursor.bracketed()
        cursor.end()
        return Convert(table, statistics, partition_by)

    def command(self, spark: SparkSession) -> Command:
        """See `DeltaStatement.command`."""
        return self._command(lambda: self._run(spark))

    def _run(self, spark: SparkSession) -> None:
        convert_named(spark, self.table.identifiers, self.partition_by, statistics=self.statistics)


@dataclass(frozen=True, slots=True)
class Restore(TableStatement):
    """``RESTORE [TABLE] … [TO] [FOR] VERSION AS OF n`` or ``TIMESTAMP AS OF s``: one of the two."""

    words = "RESTORE"
    columns = RESTORE_ROW
    refuses_views = False  # as in delta-spark
    version: int | None
    timestamp: str | None

    @classmethod
    def parse(cls, cursor: Cursor) -> Restore | None:
        """See `DeltaStatement.parse`."""
        cursor.need("RESTORE")
        cursor.take("TABLE")
        if (table := take_table_or_path(cursor)) is None:
            return None
        cursor.take("TO")
        cursor.take("FOR")
        version, timestamp = _time_travel(cursor)
        if version is None and timestamp is None:
            cursor.fail("VERSION AS OF or TIMESTAMP AS OF")
        cursor.end()
        return Restore(table, version, timestamp)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        return restore_table(spark, named.table, self.version, self.timestamp)


@dataclass(frozen=True, slots=True)
class CopyInto(DeltaStatement):
    """``COPY INTO …``, which this version of Tahoe does not support.

    Args:
        table: None if the text after the first words is not a name.
    """

    words = "COPY INTO"
    table: TableName | None

    @classmethod
    def parse(cls, cursor: Cursor) -> CopyInto | None:
        """See `DeltaStatement.parse`."""
        if not cursor.take("COPY", "INTO"):
            return None
        cursor.take("TABLE")
        return CopyInto(take_table_or_path(cursor))

    def command(self, spark: SparkSession) -> Command:
        """Raise `Unsupported`."""
        raise Unsupported(
            f"The SQL statement {self.words}{'' if self.table is None else f' (table {self.table})'} is not in this version of Tahoe. Use "
            "another Delta client for it.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            statement=self.words,
        )


# -- parts -------------------------------------------------------------------------------------------------------------------


def _time_travel(cursor: Cursor) -> tuple[int | None, str | None]:
    """Parse a version or a time, if there is one."""
    if cursor.take("VERSION", "AS", "OF") or cursor.take("SYSTEM_VERSION", "AS", "OF"):
        return _version(cursor), None
    if cursor.take("TIMESTAMP", "AS", "OF") or cursor.take("SYSTEM_TIME", "AS", "OF"):
        return None, cursor.string()
    return None, None


def _version(cursor: Cursor) -> int:
    """Parse a version: a number, or a string with a number."""
    if cursor.peek().kind != STRING:
        return cursor.integer()
    place, text = cursor.place, cursor.string().strip()
    if not text.isdecimal():
        cursor.place = place
        cursor.fail("a version")
    return int(text)


COPY_STATEMENTS = delta_statements(Clone, Convert, CopyInto, Restore)
