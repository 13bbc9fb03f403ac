"""Statements about a table as a whole: TRUNCATE, COMMENT ON, SET LOCATION, and the constraints that Spark's own parser reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.exceptions import InvalidRequest
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.schema.types import StructType
from tahoe.snapshot.snapshot import Snapshot
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import with_shown_metadata
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import Target, target_of

__all__ = ["TABLE_STATEMENTS"]


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
    # Below is the table, filtered for rows that break the constraint.
    target = target_of(spark, plan.child().child())
    if target is None:
        return None
    check, table = plan.checkConstraint(), target.named.table
    name, condition = str(check.userProvidedName() or ""), str(check.condition())
    if not name:
        raise InvalidRequest(
            f"A CHECK constraint of a Delta table has a name: ALTER TABLE {target.named.name} ADD CONSTRAINT name CHECK ({condition[:200]}).",
            code="DELTA_INVALID_CONSTRAINT_NAME",
            table=str(target.named.name),
        )

    def run() -> None:
        table.add_constraint(name, condition)

    return Command("ALTER TABLE … ADD CONSTRAINT", run)


def _drop_constraint(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    name, if_exists, table = str(plan.name()), bool(plan.ifExists()), target.named.table

    def run() -> None:
        table.drop_constraint(name, if_exists=if_exists)

    return Command("ALTER TABLE … DROP CONSTRAINT", run)


def _set_location(spark: SparkSession, plan: JavaObject) -> Command | None:
    target = target_of(spark, plan.table())
    if target is None:
        return None
    if plan.partitionSpec().isDefined():
        raise InvalidRequest(
            f"Operation not allowed: `ALTER TABLE … PARTITION … SET LOCATION` is not supported for Delta tables: {target.named.name}. All "
            "partitions are in the table's folder.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=str(target.named.name),
        )
    if target.named.entry is None:
        raise InvalidRequest(
            f"Cannot change the location of a path based table, {target.named.name}. Name a table of the catalog.",
            code="DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
            table=str(target.named.name),
        )
    location = str(plan.location())
    return Command("ALTER TABLE … SET LOCATION", lambda: _relocate(spark, target, location))


TABLE_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "TruncateTable": _truncate,
    "CommentOnTable": _comment,
    "AddCheckConstraint": _add_check,
    "DropConstraint": _drop_constraint,
    "SetTableLocation": _set_location,
}
"""By the name of the plan's node."""


def _relocate(spark: SparkSession, target: Target, location: str) -> None:
    """Let the catalog's entry lead to another Delta table of the same columns; the log of neither changes."""
    entry, jvm = target.named.entry, Jvm.of(spark)
    old, new = target.named.table.snapshot(), table_at(spark, location, {}).snapshot()
    if _shape(old) != _shape(new):
        raise InvalidRequest(
            f"The schema of the new Delta location is different than the current table schema. Original schema: {old.schema}, partitioned "
            f"by ({', '.join(old.partition_columns)}); destination schema: {new.schema}, partitioned by "
            f"({', '.join(new.partition_columns)}). If this is an intended change, drop the table {target.named.name} and create it anew at "
            f"'{location}'.",
            code="DELTA_SET_LOCATION_SCHEMA_MISMATCH",
            table=str(target.named.name),
        )
    place = jvm.java_class("org.apache.hadoop.fs.Path")(location).toUri()
    assert entry is not None
    moved = copied(entry, storage=copied(entry.storage(), locationUri=jvm.option(place)))
    spark._jsparkSession.sessionState().catalog().alterTable(moved)


def _shape(snapshot: Snapshot) -> tuple[StructType, tuple[str, ...]]:
    return with_shown_metadata(snapshot.schema), snapshot.partition_columns
