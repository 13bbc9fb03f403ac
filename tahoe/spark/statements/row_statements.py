"""MERGE, UPDATE, DELETE and INSERT from the parser's plans: conditions and values stay Catalyst expressions."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.merge.clauses import Action, Clause, Kind
from tahoe.spark.commands.delete import delete
from tahoe.spark.commands.merge.builder import RESULT
from tahoe.spark.commands.merge.merge import merge
from tahoe.spark.commands.merge.statement import MergeRequest
from tahoe.spark.commands.saved import Save, insert_into
from tahoe.spark.commands.update import update
from tahoe.spark.commands.write_options import WriterCall
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.rejected import directory_rejection
from tahoe.spark.statements.row_targets import row_target_of
from tahoe.spark.statements.statement_types import SparkStatement
from tahoe.spark.statements.targets import target_of
from tahoe.spark.versions.members import has_field

_AFFECTED = StructType([StructField("num_affected_rows", LongType())])


def _delete(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.table())
    if target is None:
        return None
    condition = _column(spark, plan.condition())
    if not _is_always_true(plan.condition()):
        target.check_columns(spark, [condition])

    def run() -> list[tuple[int | None]]:
        return [(delete(target.command_target(spark), condition).num_affected_rows,)]

    return statement.execution(run)


def _update(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.table())
    if target is None:
        return None
    condition = _column(spark, plan.condition().get()) if plan.condition().isDefined() else None
    values = tuple(_assignments(spark, plan.assignments()))
    seen = [value for value in (condition, *(value for _, value in values)) if isinstance(value, Column)]
    target.check_columns(spark, seen, [key for key, _ in values])

    def run() -> list[tuple[int | None]]:
        return [(update(target.command_target(spark), values, condition).num_affected_rows,)]

    return statement.execution(run)


def _merge(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    target = row_target_of(spark, plan.targetTable())
    if target is None:
        return None
    target.check_all_columns()
    clauses = [
        *(_clause(spark, Kind.MATCHED, action) for action in items(plan.matchedActions())),
        *(_clause(spark, Kind.NOT_MATCHED, action) for action in items(plan.notMatchedActions())),
        *(_clause(spark, Kind.NOT_MATCHED_BY_SOURCE, action) for action in items(plan.notMatchedBySourceActions())),
    ]
    on = _column(spark, plan.mergeCondition())
    evolving = bool(plan.withSchemaEvolution())
    source = plan.sourceTable()

    def run() -> list[tuple[int | None, ...]]:
        frame = Jvm.of(spark).frame(spark._jsparkSession, source, spark)
        request = MergeRequest(
            frame,
            on,
            clauses=tuple(clauses),
            schema_evolution=evolving,
            keeps_schema=bool(target.view),  # as in delta-spark
        )
        return [merge(target.command_target(spark), request).counts]

    return statement.execution(run)


def _insert_into_directory(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    if plan.provider().isDefined() and str(plan.provider().get()).lower() == "delta":
        raise directory_rejection()
    return None


def _insert(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Run INSERT … REPLACE ON and REPLACE USING, which Spark has since 4.2; leave other INSERTs to Spark as `_planned_by_spark`."""
    if not has_field(plan, "replaceCriteriaOpt") or plan.replaceCriteriaOpt().isEmpty():
        return None
    criteria = plan.replaceCriteriaOpt().get()
    kind = str(criteria.getClass().getSimpleName())
    target = target_of(spark, plan.table()) if kind in ("InsertReplaceOn", "InsertReplaceUsing") else None
    if target is None:
        return None
    if kind == "InsertReplaceUsing":
        options = {"replaceUsing": ", ".join(map(str, items(criteria.cols())))}
    else:
        alias = criteria.tableAliasOpt()
        named = target.named.name.identifiers[-1] if alias.isEmpty() else str(alias.get())
        options = {"replaceOn": str(criteria.cond().sql()), "targetAlias": named}
    query, by_name, evolves = plan.query(), bool(plan.byName()), bool(plan.withSchemaEvolution())

    def run() -> None:
        rows = Jvm.of(spark).frame(spark._jsparkSession, query, spark)
        save = Save(target.named.name.identifiers, rows, WriterCall("Overwrite", options, evolves=evolves))
        insert_into(spark, save, by_name=by_name, is_statement=True)

    return statement.execution(run)


def _planned_by_spark(statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Leave the statement to Spark, which passes the rows to `tahoe.spark.catalog.writable`."""
    return None


_MERGED = "targetTable sourceTable mergeCondition matchedActions notMatchedActions notMatchedBySourceActions withSchemaEvolution"
_INSERTED = (
    "table partitionSpec userSpecifiedCols query overwrite ifPartitionNotExists byName replaceCriteriaOpt withSchemaEvolution"
)
_OVERWRITTEN = "table deleteExpr query writeOptions isByName write analyzedQuery withSchemaEvolution"
ROW_STATEMENTS = (
    SparkStatement("DELETE", "DeleteFromTable", "table condition", _delete, _AFFECTED),
    SparkStatement("UPDATE", "UpdateTable", "table assignments condition", _update, _AFFECTED),
    SparkStatement("MERGE", "MergeIntoTable", _MERGED, _merge, RESULT),
    SparkStatement("INSERT", "InsertIntoStatement", _INSERTED, _insert),
    # INSERT INTO IDENTIFIER(…) with a variable
    SparkStatement("INSERT", "UnresolvedInsert", _INSERTED, _planned_by_spark),
    SparkStatement("INSERT … REPLACE WHERE", "OverwriteByExpression", _OVERWRITTEN, _planned_by_spark),
    SparkStatement(
        "INSERT OVERWRITE DIRECTORY", "InsertIntoDir", "isLocal storage provider child overwrite", _insert_into_directory
    ),
)


# -- parts -------------------------------------------------------------------------------------------------------------------


def _clause(spark: SparkSession, kind: Kind, action: JavaObject) -> Clause[str | Column]:
    name = str(action.getClass().getSimpleName())
    condition = _column(spark, action.condition().get()) if action.condition().isDefined() else None
    if name == "DeleteAction":
        return Clause(kind, Action.DELETE, condition)
    done = Action.INSERT if name.startswith("Insert") else Action.UPDATE
    values = None if name.endswith("StarAction") else tuple(_assignments(spark, action.assignments()))
    return Clause(kind, done, condition, values)


def _assignments(spark: SparkSession, assignments: JavaObject) -> Iterator[tuple[str, str | Column]]:
    """Yield each column or nested field, as text, possibly qualified with the table's name, and its value; the word DEFAULT as text."""
    for assignment in items(assignments):
        yield (
            ".".join(quote_identifier(str(part)) for part in items(assignment.key().nameParts())),
            "DEFAULT" if _is_default(assignment.value()) else _column(spark, assignment.value()),
        )


def _is_default(value: JavaObject) -> bool:
    """Return whether the value is the word DEFAULT; Spark's parser turns it into an attribute name."""
    return str(value.getClass().getSimpleName()) == "UnresolvedAttribute" and str(value.sql()).upper() == "DEFAULT"


def _is_always_true(condition: JavaObject) -> bool:
    """Return whether it is the condition of a DELETE without WHERE."""
    return str(condition.nodeName()) == "Literal" and str(condition.sql()) == "true"


def _column(spark: SparkSession, expression: JavaObject) -> Column:
    return Jvm.of(spark).column(expression)
