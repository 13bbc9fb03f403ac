"""Delta's statements that maintain a table: OPTIMIZE, VACUUM, REORG, FSCK, ANALYZE, GENERATE and MSCK REPAIR TABLE … SYNC METADATA."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tahoe.base.exceptions import NotFound
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.commands.upkeep import (
    FSCK_ROW,
    OPTIMIZE_ROW,
    VACUUM_ROW,
    compute_statistics_of,
    fsck_table,
    optimize_table,
    purge,
    vacuum_table,
)
from tahoe.spark.names.entries import NamedTable
from tahoe.spark.statements.command import Rows
from tahoe.spark.statements.statement_types import TableStatement, delta_statements
from tahoe.sql.dialect import Cursor
from tahoe.sql.table_name import TableName, take_table, take_table_or_path


@dataclass(frozen=True, slots=True)
class Optimize(TableStatement):
    """``OPTIMIZE … [FULL] [WHERE condition] [ZORDER BY (columns)]``."""

    words = "OPTIMIZE"
    columns = OPTIMIZE_ROW
    where: str | None
    zorder_by: tuple[str, ...]
    is_full: bool

    @classmethod
    def parse(cls, cursor: Cursor) -> Optimize | None:
        """See `DeltaStatement.parse`."""
        cursor.need("OPTIMIZE")
        if (table := take_table_or_path(cursor)) is None:
            return None
        is_full = cursor.take("FULL")
        where = cursor.slice_until("ZORDER", ";") if cursor.take("WHERE") else None
        zorder_by = _zorder_columns(cursor) if cursor.take("ZORDER", "BY") else []
        cursor.end()
        return Optimize(table, where, tuple(zorder_by), is_full)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        conditions = () if self.where is None else (self.where,)
        return optimize_table(spark, named.table, conditions, self.zorder_by, is_full=self.is_full)


def _zorder_columns(cursor: Cursor) -> list[str]:
    """Parse columns, with or without brackets; return each as SQL text, in back-ticks if it needs them."""

    def column() -> str:
        return ".".join(map(_quoted, cursor.dotted()))

    if cursor.peek().is_symbol("("):
        return cursor.listed(column)
    columns = [column()]
    while cursor.take_symbol(","):
        columns.append(column())
    return columns


def _quoted(name: str) -> str:
    """Return a name, in back-ticks if it needs them."""
    return name if re.fullmatch(r"\w+", name) else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Vacuum(TableStatement):
    """``VACUUM … [FULL | LITE] [USING INVENTORY (table | (query))] [RETAIN n HOURS] [DRY RUN]``, the modifiers in any order.

    Args:
        is_lite: None if the statement has neither FULL nor LITE.
        inventory: a query.
    """

    words = "VACUUM"
    columns = VACUUM_ROW
    is_lite: bool | None = None
    inventory: str | None = None
    retain_hours: float | None = None
    dry_run: bool = False

    @classmethod
    def parse(cls, cursor: Cursor) -> Vacuum | None:
        """See `DeltaStatement.parse`."""
        cursor.need("VACUUM")
        if (table := take_table_or_path(cursor)) is None:
            return None
        modifiers: dict[str, Any] = {}
        while not cursor.at_end and not cursor.peek().is_symbol(";"):
            name, value = _vacuum_modifier(cursor)
            if name in modifiers:  # each of them once
                cursor.place -= 1
                cursor.fail("the end of the statement")
            modifiers[name] = value
        cursor.end()
        return Vacuum(table, **modifiers)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        target = CommandTarget(spark, named.table)
        return vacuum_table(target, self.retain_hours, is_lite=self.is_lite, inventory=self.inventory, dry_run=self.dry_run)


def _vacuum_modifier(cursor: Cursor) -> tuple[str, object]:
    """Parse a modifier of VACUUM; return the field of `Vacuum` and its value."""
    if cursor.take("FULL"):
        return "is_lite", False
    if cursor.take("LITE"):
        return "is_lite", True
    if cursor.take("DRY", "RUN"):
        return "dry_run", True
    if cursor.take("USING", "INVENTORY"):
        if cursor.peek().is_symbol("("):
            return "inventory", cursor.bracketed()
        named = take_table(cursor) or cursor.fail("a table, or a query in brackets")
        return "inventory", f"SELECT * FROM {named}"
    cursor.need("RETAIN")
    hours = cursor.number()
    cursor.need("HOURS")
    return "retain_hours", hours


@dataclass(frozen=True, slots=True)
class Purge(TableStatement):
    """``REORG TABLE … [WHERE condition] APPLY (PURGE)``."""

    words = "REORG TABLE … APPLY (PURGE)"
    columns = OPTIMIZE_ROW
    where: str | None

    @classmethod
    def parse(cls, cursor: Cursor) -> Purge | None:
        """See `DeltaStatement.parse`."""
        header = _reorg(cursor)
        if header is None or not cursor.take("PURGE"):
            return None
        cursor.need_symbol(")")
        cursor.end()
        return Purge(*header)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        return purge(spark, named.table, self.where)


@dataclass(frozen=True, slots=True)
class UpgradeUniform(TableStatement):
    """``REORG TABLE … APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n))``."""

    words = "REORG TABLE … APPLY (UPGRADE UNIFORM)"
    compat_version: int

    @classmethod
    def parse(cls, cursor: Cursor) -> UpgradeUniform | None:
        """See `DeltaStatement.parse`. `Purge` is parsed first."""
        header = _reorg(cursor)
        if header is None:
            return None
        table, where = header
        if where is not None:
            cursor.fail("PURGE")
        cursor.need("UPGRADE", "UNIFORM")
        cursor.need_symbol("(")
        cursor.need("ICEBERG_COMPAT_VERSION")
        cursor.need_symbol("=")
        version = cursor.integer()
        cursor.need_symbol(")")
        cursor.need_symbol(")")
        cursor.end()
        return UpgradeUniform(table, version)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        named.table.uniform.upgrade(self.compat_version)


def _reorg(cursor: Cursor) -> tuple[TableName, str | None] | None:
    """Parse ``REORG TABLE name [WHERE condition] APPLY (``; return the name and the condition."""
    if not cursor.take("REORG", "TABLE") or (table := take_table(cursor)) is None:
        return None
    where = cursor.slice_until("APPLY") if cursor.take("WHERE") else None
    cursor.need("APPLY")
    cursor.need_symbol("(")
    return table, where


@dataclass(frozen=True, slots=True)
class Fsck(TableStatement):
    """``FSCK REPAIR TABLE … [DRY RUN]``."""

    words = "FSCK REPAIR TABLE"
    columns = FSCK_ROW
    dry_run: bool

    @classmethod
    def parse(cls, cursor: Cursor) -> Fsck | None:
        """See `DeltaStatement.parse`."""
        cursor.need("FSCK", "REPAIR")
        cursor.take("TABLE")
        if (table := take_table_or_path(cursor)) is None:
            return None
        dry_run = cursor.take("DRY", "RUN")
        cursor.end()
        return Fsck(table, dry_run)

    def run(self, spark: SparkSession, named: NamedTable) -> Rows:
        """See `TableStatement.run`."""
        return fsck_table(named.table, dry_run=self.dry_run)


@dataclass(frozen=True, slots=True)
class ComputeStatistics(TableStatement):
    """``ANALYZE TABLE … COMPUTE DELTA STATISTICS``; without DELTA it is a statement of Spark."""

    words = "ANALYZE TABLE … COMPUTE DELTA STATISTICS"

    @classmethod
    def parse(cls, cursor: Cursor) -> ComputeStatistics | None:
        """See `DeltaStatement.parse`."""
        table = take_table(cursor) if cursor.take("ANALYZE", "TABLE") else None
        if table is None or not cursor.take("COMPUTE", "DELTA", "STATISTICS"):
            return None
        cursor.end()
        return ComputeStatistics(table)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        compute_statistics_of(spark, named.table)


@dataclass(frozen=True, slots=True)
class Generate(TableStatement):
    """``GENERATE mode FOR TABLE …``."""

    words = "GENERATE"
    mode: str

    @classmethod
    def parse(cls, cursor: Cursor) -> Generate:
        """See `DeltaStatement.parse`."""
        cursor.need("GENERATE")
        mode = cursor.identifier()
        cursor.need("FOR", "TABLE")
        table = take_table(cursor) or cursor.fail("a table")
        cursor.end()
        return Generate(table, mode)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`. Raises `NotFound` for a path without a table, as delta-spark does."""
        table = named.table
        if not table.exists():
            raise NotFound(
                f"{table.url} is not a Delta table. Check the path, or create the table.",
                code="DELTA_MISSING_DELTA_TABLE",
                table=table.url,
            )
        table.generate(self.mode)


@dataclass(frozen=True, slots=True)
class SyncMetadata(TableStatement):
    """``MSCK REPAIR TABLE … SYNC METADATA``: convert the newest version to Iceberg now; without SYNC METADATA it is a statement of Spark."""

    words = "MSCK REPAIR TABLE … SYNC METADATA"

    @classmethod
    def parse(cls, cursor: Cursor) -> SyncMetadata | None:
        """See `DeltaStatement.parse`."""
        table = take_table(cursor) if cursor.take("MSCK", "REPAIR", "TABLE") else None
        if table is None or not cursor.take("SYNC", "METADATA"):
            return None
        cursor.end()
        return SyncMetadata(table)

    def run(self, spark: SparkSession, named: NamedTable) -> None:
        """See `TableStatement.run`."""
        named.table.uniform.sync()


MAINTENANCE_STATEMENTS = delta_statements(
    ComputeStatistics, Fsck, Generate, Optimize, Purge, SyncMetadata, UpgradeUniform, Vacuum
)
