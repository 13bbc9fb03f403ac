"""INSERT: Spark plans it, and passes the rows to `tahoe.spark.catalog.writable`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.statements.command import Command

__all__ = ["INSERT_STATEMENTS"]


def _planned_by_spark(_spark: SparkSession, _plan: JavaObject) -> Command | None:
    return None


def _directory(spark: SparkSession, plan: JavaObject) -> Command | None:
    """``INSERT OVERWRITE DIRECTORY … USING delta``: files without a commit would not be a table."""
    if not plan.provider().isDefined() or str(plan.provider().get()).lower() != "delta":
        return None
    raise Unsupported(
        "INSERT OVERWRITE DIRECTORY writes files, and cannot write a Delta table. Use INSERT OVERWRITE delta.`/path`, or CREATE OR REPLACE "
        "TABLE delta.`/path` AS SELECT.",
        code="DELTA_OPERATION_NOT_ALLOWED",
    )


INSERT_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {
    "InsertIntoStatement": _planned_by_spark,
    "UnresolvedInsert": _planned_by_spark,  # INSERT INTO IDENTIFIER(…) with a variable
    "OverwriteByExpression": _planned_by_spark,  # INSERT … REPLACE WHERE
    "InsertIntoDir": _directory,
}
"""Handlers by the name of the plan node."""
