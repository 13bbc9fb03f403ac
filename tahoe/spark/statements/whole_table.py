"""Statements on a whole table: TRUNCATE, COMMENT ON, SET LOCATION, REFRESH, and the constraints that Spark's own parser reads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import with_shown_metadata
from tahoe.spark.names.entries import NamedTable, location_of
from tahoe.spark.names.new_entries import uri_of_text
from tahoe.spark.names.server_catalog import set_location
from tahoe.spark.names.settings import assumes_if_exists
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.statement_types import SparkStatement, on_table
from tahoe.spark.statements.targets import Target, target_of
from tahoe.spark.write.new_constraints import add_constraint


def _truncate(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    table = target.named.table

    def run() -> None:
        transaction = table.begin()
        table.commit_rows(transaction, stage_truncate(transaction))

    return run


def _comment(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    text, table = str(plan.comment()), target.named.table

    def run() -> None:
        table.set_properties({"comment": text})

    return run


def _add_check(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    # The node's child is the table, filtered for rows that violate the constraint.
    target = target_of(spark, plan.child().child())
    if target is None:
        return None
    check = plan.checkConstraint()
    name, condition = str(check.userProvidedName() or ""), str(check.condition())
    if not name:
        raise InvalidRequest(
            f"A CHECK constraint of a Delta table has a name: ALTER TABLE {target.named.name} ADD CONSTRAINT name CHECK ({condition[:200]}).",
            code="UNSUPPORTED_FEATURE.TABLE_OPERATION",
            table=str(target.named.name),
        )
    table = target.named.table

    def run() -> None:
        add_constraint(spark, table, name, condition)

    return statement.execution(run)


def _drop_constraint(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    name, if_exists, table = str(plan.name()), bool(plan.ifExists()) or assumes_if_exists(spark), target.named.table

    def run() -> None:
        table.drop_constraint(name, if_exists=if_exists)

    return run


_BYPASS = "spark.databricks.delta.alterLocation.bypassSchemaCheck"


def _set_location(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    named = target.named
    if plan.partitionSpec().isDefined():
        raise Unsupported(
            f"ALTER TABLE {named.name} PARTITION … SET LOCATION is not supported for Delta tables, whose files are where the log says.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=str(named.name),
        )
    require_name(named)
    return partial(move, spark, named, str(plan.location()))


def _refresh(spark: SparkSession, plan: JavaObject, target: Target) -> Callable[[], None]:
    name, table = str(target.named.name), target.named.table

    def run() -> None:
        # Every query reads the newest version from the log, so only cached data can be outdated.
        table.snapshot()
        if spark.catalog.isCached(name):
            spark.catalog.uncacheTable(name)
            spark.catalog.cacheTable(name)

    return run


TABLE_STATEMENTS = (
    SparkStatement("TRUNCATE TABLE", "TruncateTable", "table", on_table("table", _truncate)),
    SparkStatement("COMMENT ON TABLE", "CommentOnTable", "table comment", on_table("table", _comment)),
    SparkStatement("ALTER TABLE … ADD CONSTRAINT", "AddCheckConstraint", "child checkConstraint", _add_check),
    SparkStatement(
        "ALTER TABLE … DROP CONSTRAINT", "DropConstraint", "table name ifExists cascade", on_table("table", _drop_constraint)
    ),
    SparkStatement(
        "ALTER TABLE … SET LOCATION", "SetTableLocation", "table partitionSpec location", on_table("table", _set_location)
    ),
    SparkStatement("REFRESH TABLE", "RefreshTable", "child", on_table("child", _refresh)),
)


def require_name(named: NamedTable) -> None:
    """Raise `InvalidRequest` (``DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER``) for a table that is named by its path."""
    if named.is_by_path:
        raise InvalidRequest(
            f"{named.name} names a table by its place, which cannot be set. Use the table's name in the catalog.",
            code="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
            table=str(named.name),
        )


def move(spark: SparkSession, named: NamedTable, location: str) -> None:
    """Change the entry of a table to another Delta table with the same columns, in both kinds of session.

    Raises `InvalidRequest` (``DELTA_MISSING_DELTA_TABLE``, ``DELTA_SET_LOCATION_SCHEMA_MISMATCH``).
    """
    entry = named.entry
    if entry is None:
        _check_other(spark, named, table_at(spark, location, {}))
        set_location(spark, named.full_name_parts, location)
        return
    moved = copied(entry, storage=copied(entry.storage(), locationUri=Jvm.of(spark).option(uri_of_text(spark, location))))
    _check_other(spark, named, table_at(spark, location_of(moved), {}))
    spark._jsparkSession.sessionState().catalog().alterTable(moved)


def _check_other(spark: SparkSession, named: NamedTable, other: Table) -> None:
    if not other.exists():
        raise InvalidRequest(
            f"{other.url} is not a Delta table, and {named.name} shall be there. Name the folder of one.",
            code="DELTA_MISSING_DELTA_TABLE",
            table=str(named.name),
        )
    if str(spark.conf.get(_BYPASS, "false")).lower() != "true":
        _check_same(str(named.name), named.table.snapshot(), other.snapshot())


def _check_same(name: str, current: Snapshot, moved: Snapshot) -> None:
    same = with_shown_metadata(current.schema) == with_shown_metadata(moved.schema)
    if not same or current.partition_columns != moved.partition_columns:
        raise InvalidRequest(
            f"Table {name} has the columns {current.schema}, partitioned by {list(current.partition_columns)}; the table at "
            f"{moved.store.url} has {moved.schema}, partitioned by {list(moved.partition_columns)}. Name a table with the same columns, or "
            f"set {_BYPASS} to true.",
            code="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            table=name,
        )
