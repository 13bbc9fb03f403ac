"""INSERT WITH SCHEMA EVOLUTION (Spark 4.2 and later): columns that only the query has are added by the commit that brings the rows.

Every other INSERT is resolved and cast by Spark, and arrives at `tahoe.spark.catalog.writable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import insert_request
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import field_names, has_field, items
from tahoe.spark.names.settings import settings_of
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import Target, target_of

__all__ = ["INSERT_STATEMENTS"]


def _insert(spark: SparkSession, plan: JavaObject) -> Command | None:
    if not has_field(plan, "withSchemaEvolution") or not plan.withSchemaEvolution():
        return None
    target = target_of(spark, plan.table())
    if target is None:
        return None
    _refuse_parts(plan, target)
    listed = [str(name) for name in items(plan.userSpecifiedCols())]
    by_name, mode, query = bool(plan.byName()), "Overwrite" if plan.overwrite() else "Append", plan.query()

    def run() -> None:
        rows = Jvm.of(spark).frame(spark._jsparkSession, query, spark)
        table = target.named.table
        named = rows if by_name else _named(rows, listed or table.schema().names, target)
        request = insert_request(mode, None, target.options, settings_of(spark), merge_schema=True, same_types=False)
        insert(table, named, request)

    return Command("INSERT WITH SCHEMA EVOLUTION", run)


INSERT_STATEMENTS: Mapping[str, Callable[[SparkSession, JavaObject], Command | None]] = {"InsertIntoStatement": _insert}
"""By the name of the plan's node."""


def _refuse_parts(plan: JavaObject, target: Target) -> None:
    replaces = any(getattr(plan, name)().isDefined() for name in field_names(plan) if name.startswith("replaceCriteria"))
    for is_there, words in ((not plan.partitionSpec().isEmpty(), "PARTITION"), (replaces, "REPLACE")):
        if is_there:
            raise Unsupported(
                f"INSERT WITH SCHEMA EVOLUTION into {target.named.name} may not have {words}. Add the columns first (ALTER "
                f"TABLE … ADD COLUMNS), then INSERT … {words} without evolution.",
                code="DELTA_OPERATION_NOT_ALLOWED",
                table=str(target.named.name),
            )


def _named(rows: DataFrame, names: Sequence[str], target: Target) -> DataFrame:
    """Rows by position: the table's names, then the query's own for the columns that it has more."""
    if len(rows.columns) < len(names):
        raise InvalidRequest(
            f"Cannot write to {target.named.name}: it has the columns {', '.join(names)}, and the query {len(rows.columns)}. Give all, or "
            "list the columns, or write BY NAME.",
            code="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            table=str(target.named.name),
        )
    return rows.toDF(*names, *rows.columns[len(names) :])
