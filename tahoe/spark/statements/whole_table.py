"""Statements about a table as a whole: TRUNCATE, COMMENT ON, SET LOCATION, and the constraints that Spark's own parser reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.exceptions import InvalidRequest
from tahoe.ops.rows.truncate import stage_truncate
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import target_of

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


TABLE_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "TruncateTable": _truncate,
    "CommentOnTable": _comment,
    "AddCheckConstraint": _add_check,
    "DropConstraint": _drop_constraint,
}
"""By the name of the plan's node."""
