"""Delta's own statements, which Spark's parser does not support (`tahoe.sql.parse`), as commands."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound, Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.copies.clone import CloneRequest
from tahoe.spark.commands.frames import DETAIL, HISTORY, detail_rows, detail_rows_of_entry, history_rows
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.commands.upkeep import (
    FSCK_ROW,
    OPTIMIZE_ROW,
    RESTORE_ROW,
    VACUUM_ROW,
    compute_statistics_of,
    drop_feature_of,
    fsck_table,
    optimize_table,
    purge,
    restore_table,
    vacuum_table,
)
from tahoe.spark.copies.clone import CLONE_ROW, NamedCloneRequest, clone_named
from tahoe.spark.copies.convert import convert_named
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.names.entries import NamedTable, entry_of, table_named
from tahoe.spark.names.error_names import reading
from tahoe.spark.names.new_entries import names_view
from tahoe.spark.names.settings import assumes_if_exists, is_on
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import is_missing
from tahoe.spark.write.stored_expressions import add_constraint
from tahoe.sql.parse import parse
from tahoe.sql.statements import (
    AddConstraint,
    Clone,
    ComputeStatistics,
    Convert,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    Fsck,
    Generate,
    NotYet,
    Optimize,
    Purge,
    Restore,
    Statement,
    SyncIdentity,
    SyncMetadata,
    UpgradeUniform,
    Vacuum,
)
from tahoe.sql.table_name import TableName

__all__ = ["delta_command"]


def delta_command(spark: SparkSession, text: str) -> Command | None:
    """Return the command for a text; None for a text that Spark's parser reads.

    Raises:
        Unsupported: a Delta statement that this version of Tahoe does not support.
        SqlSyntaxError: the text begins like a Delta statement and is invalid.
    """
    statement = parse(text)
    if statement is None:
        return None
    if isinstance(statement, NotYet):
        raise Unsupported(
            f"The SQL statement {statement.words}{'' if statement.table is None else f' (table {statement.table})'} is not in this version "
            "of Tahoe. Use another Delta client for it.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            statement=statement.words,
        )
    if isinstance(statement, Clone):
        return Command("CLONE", lambda: _clone(spark, statement), _columns(CLONE_ROW))
    if isinstance(statement, Convert):
        return Command("CONVERT TO DELTA", lambda: _convert(spark, statement))
    named = table_named(spark, statement.table.identifiers)
    if named is None:
        if _is_sparks(spark, statement):
            return None
        _refuse_view(spark, _WORDS[type(statement)], statement.table)
        if isinstance(statement, DescribeDetail) and (entry := entry_of(spark, statement.table.identifiers)) is not None:
            name = str(entry.qualifiedName())
            return Command("DESCRIBE DETAIL", lambda: detail_rows_of_entry(Jvm.of(spark), entry, name), DETAIL, is_query=True)
        if is_missing(spark, statement.table.identifiers):
            raise NotFound(
                f"There is no table '{statement.table}'. Check the name, or the database that is in use.",
                code="TABLE_OR_VIEW_NOT_FOUND",
                table=str(statement.table),
            )
        code = "DELTA_IDENTITY_COLUMNS_ALTER_NON_DELTA_FORMAT" if isinstance(statement, SyncIdentity) else "DELTA_ONLY_OPERATION"
        raise NotFound(
            f"'{statement.table}' is not a Delta table, and {_WORDS[type(statement)]} is for these. Name one by its name in the catalog, or "
            "by its path, delta.`/path`.",
            code=code,
            table=str(statement.table),
        )
    return _command(spark, statement, named)


_WORDS = {
    AddConstraint: "ALTER TABLE … ADD CONSTRAINT",
    DropConstraint: "ALTER TABLE … DROP CONSTRAINT",
    DropFeature: "ALTER TABLE … DROP FEATURE",
    SyncIdentity: "ALTER TABLE … SYNC IDENTITY",
    DescribeDetail: "DESCRIBE DETAIL",
    DescribeHistory: "DESCRIBE HISTORY",
    SyncMetadata: "MSCK REPAIR TABLE … SYNC METADATA",
    UpgradeUniform: "REORG TABLE … APPLY (UPGRADE UNIFORM)",
    Purge: "REORG TABLE … APPLY (PURGE)",
    Optimize: "OPTIMIZE",
    Vacuum: "VACUUM",
    Restore: "RESTORE",
    ComputeStatistics: "ANALYZE TABLE … COMPUTE DELTA STATISTICS",
    Fsck: "FSCK REPAIR TABLE",
    Generate: "GENERATE",
}


def _existing(table: Table) -> Table:
    """Return the table; raise `NotFound` like delta-spark for a path without a table."""
    if not table.exists():
        raise NotFound(
            f"{table.url} is not a Delta table. Check the path, or create the table.",
            code="DELTA_MISSING_DELTA_TABLE",
            table=table.url,
        )
    return table


_MAY_LOWER = "spark.databricks.delta.identityColumn.allowSyncIdentityToLowerHighWaterMark.enabled"


def _is_sparks(spark: SparkSession, statement: Statement) -> bool:
    """Return whether it is a Spark statement after all: ``DESCRIBE history id`` describes a column of a table named history."""
    if isinstance(statement, (AddConstraint, DropConstraint)):
        return not names_view(spark, statement.table.identifiers)
    word = {DescribeDetail: "detail", DescribeHistory: "history"}.get(type(statement))
    return word is not None and entry_of(spark, [word]) is not None


def _refuse_view(spark: SparkSession, words: str, name: TableName) -> None:
    """Reject a view; RESTORE raises its own error, as in delta-spark."""
    if words != _WORDS[Restore] and names_view(spark, name.identifiers):
        raise InvalidRequest(
            f"'{words}' expects a table but {name} is a view. Name the Delta table that the view reads.",
            code="EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
            table=str(name),
        )


def _command(spark: SparkSession, statement: Statement, named: NamedTable) -> Command:
    words, table = _WORDS[type(statement)], named.table
    match statement:
        case DescribeDetail(_, is_text):
            full_name = None if named.entry is None else named.full_name
            return Command(words, lambda: _detail(table, full_name, is_text), DETAIL, is_query=True)
        case DescribeHistory(_, limit):
            return Command(words, lambda: history_rows(table, limit), HISTORY, is_query=True)
        case AddConstraint(_, name, condition):
            return Command(words, lambda: _done(add_constraint(spark, table, name, condition)))
        case DropConstraint(_, name, if_exists):
            quiet = if_exists or assumes_if_exists(spark)
            return Command(words, lambda: _done(table.drop_constraint(name, if_exists=quiet)))
        case DropFeature(_, feature, truncates):
            return Command(words, lambda: drop_feature_of(spark, table, feature, truncates_history=truncates))
        case SyncIdentity(_, column):
            name = ".".join(map(quote_identifier, column))
            may_lower = is_on(spark, _MAY_LOWER)
            return Command(words, lambda: _done(table.sync_identity(name, may_lower=may_lower)))
        case SyncMetadata():
            return Command(words, lambda: _done(table.uniform.sync()))
        case UpgradeUniform(_, version):
            return Command(words, lambda: _done(table.uniform.upgrade(version)))
        case ComputeStatistics():
            return Command(words, lambda: compute_statistics_of(spark, table))
        case Fsck(_, dry_run):
            return Command(words, lambda: fsck_table(table, dry_run=dry_run), _columns(FSCK_ROW))
        case Generate(_, mode):
            return Command(words, lambda: _done(_existing(table).generate(mode)))
        case Purge(_, where):
            return Command(words, lambda: purge(spark, table, where), _columns(OPTIMIZE_ROW))
        case Optimize(_, where, columns, is_full):
            conditions = () if where is None else (where,)
            run = lambda: optimize_table(spark, table, conditions, columns, is_full=is_full)  # noqa: E731
            return Command(words, run, _columns(OPTIMIZE_ROW))
        case Vacuum(_, is_lite, inventory, hours, dry_run):
            target = CommandTarget(spark, table)
            clean = lambda: vacuum_table(target, hours, is_lite=is_lite, inventory=inventory, dry_run=dry_run)  # noqa: E731
            return Command(words, clean, _columns(VACUUM_ROW))
        case Restore(_, target, timestamp):
            return Command(words, lambda: restore_table(spark, table, target, timestamp), _columns(RESTORE_ROW))
    raise AssertionError(statement)


def _detail(table: Table, full_name: str | None, is_text: bool) -> list[Sequence[Any]]:
    with reading(table, "DELTA_FILE_NOT_FOUND") if is_text else nullcontext():
        return list(detail_rows(table, full_name))


def _clone(spark: SparkSession, asked: Clone) -> list[tuple[int, ...]]:
    request = CloneRequest(asked.is_shallow, asked.how, dict(asked.properties))
    target, source = asked.table.identifiers, asked.source.identifiers
    return clone_named(spark, NamedCloneRequest(target, source, request, asked.version, asked.timestamp, asked.location))[0]


def _convert(spark: SparkSession, asked: Convert) -> None:
    convert_named(spark, asked.table.identifiers, asked.partition_by, statistics=asked.statistics)


def _columns(row: str) -> StructType:
    return cast(StructType, DataType.fromDDL(row))


def _done(_: object) -> None:
    """Discard the result of a statement that returns no rows."""
