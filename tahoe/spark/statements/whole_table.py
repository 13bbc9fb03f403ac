"""Statements on a whole table: TRUNCATE, COMMENT ON, SET LOCATION, REFRESH, and the constraints that Spark's own parser reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import with_shown_metadata
from tahoe.spark.names.entries import NamedTable, location_of
from tahoe.spark.names.new_entries import uri_of_text
from tahoe.spark.names.settings import assumes_if_exists
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import target_of
from tahoe.spark.write.stored_expressions import add_constraint

__all__ = ["LOCATION_STATEMENTS", "TABLE_STATEMENTS"]


def _truncate(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    table = target.named.table

    def run() -> None:
        transaction = table.begin()
        table.commit_rows(transaction, stage_truncate(transaction))

    return Command("TRUNCATE TABLE", run)


def _comment(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    text, table = str(plan.comment()), target.named.table

    def run() -> None:
        table.set_properties({"comment": text})

    return Command("COMMENT ON TABLE", run)


def _add_check(spark: SparkSession, plan: JavaObject) -> Command | None:
    # The node's child is the table, filtered for rows that violate the constraint.
    target = target_of(spark, plan.child().child())
    if target is None:
        return None
    check, table = plan.checkConstraint(), target.named.table
    name, condition = str(check.userProvidedName() or ""), str(check.condition())
    if not name:
        raise InvalidRequest(
            f"A CHECK constraint of a Delta table has a name: ALTER TABLE {target.named.name} ADD CONSTRAINT name CHECK ({condition[:200]}).",
            code="UNSUPPORTED_FEATURE.TABLE_OPERATION",
            table=str(target.named.name),
        )

    def run() -> None:
        add_constraint(spark, table, name, condition)

    return Command("ALTER TABLE … ADD CONSTRAINT", run)


def _drop_constraint(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    name, if_exists, table = str(plan.name()), bool(plan.ifExists()) or assumes_if_exists(spark), target.named.table

    def run() -> None:
        table.drop_constraint(name, if_exists=if_exists)

    return Command("ALTER TABLE … DROP CONSTRAINT", run)


TABLE_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "TruncateTable": _truncate,
    "CommentOnTable": _comment,
    "AddCheckConstraint": _add_check,
    "DropConstraint": _drop_constraint,
}
"""Handlers by the name of the plan node."""


_BYPASS = "spark.databricks.delta.alterLocation.bypassSchemaCheck"


def _set_location(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    named, location = target.named, str(plan.location())
    if plan.partitionSpec().isDefined():
        raise Unsupported(
            f"ALTER TABLE {named.name} PARTITION … SET LOCATION is not supported for Delta tables, whose files are where the log says.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=str(named.name),
        )
    if named.entry is None:
        raise InvalidRequest(
            f"{named.name} names a table by its place, which cannot be set. Use the table's name in the catalog.",
            code="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
            table=str(named.name),
        )
    return Command("ALTER TABLE … SET LOCATION", lambda: _moved(spark, named, location))


def _refresh(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.child())
    if target is None:
        return None
    name, table = str(target.named.name), target.named.table

    def run() -> None:
        # Every query reads the newest version from the log, so only cached data can be outdated.
        table.snapshot()
        if spark.catalog.isCached(name):
            spark.catalog.uncacheTable(name)
            spark.catalog.cacheTable(name)

    return Command("REFRESH TABLE", run)


LOCATION_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "SetTableLocation": _set_location,
    "RefreshTable": _refresh,
}
"""Handlers by the name of the plan node."""


def _moved(spark: SparkSession, named: NamedTable, location: str) -> None:
    """Change the entry to another Delta table with the same columns."""
    entry, jvm = named.entry, Jvm.of(spark)
    assert entry is not None
    moved = copied(entry, storage=copied(entry.storage(), locationUri=jvm.option(uri_of_text(spark, location))))
    other = table_at(spark, location_of(moved), {})
    if not other.exists():
        raise InvalidRequest(
            f"There is no Delta table at {other.url}, where {named.name} shall be. Name the folder of one.",
            code="DELTA_MISSING_DELTA_TABLE",
            table=str(named.name),
        )
    if str(spark.conf.get(_BYPASS, "false")).lower() != "true":
        _check_same(str(named.name), named.table.snapshot(), other.snapshot())
    spark._jsparkSession.sessionState().catalog().alterTable(moved)


def _check_same(name: str, there: Snapshot, other: Snapshot) -> None:
    same = with_shown_metadata(there.schema) == with_shown_metadata(other.schema)
    if not same or there.partition_columns != other.partition_columns:
        raise InvalidRequest(
            f"Table {name} has the columns {there.schema}, partitioned by {list(there.partition_columns)}; the table at {other.store.url} "
            f"has {other.schema}, partitioned by {list(other.partition_columns)}. Name a table with the same columns, or set "
            f"{_BYPASS} to true.",
            code="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            table=name,
        )
