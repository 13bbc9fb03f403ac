"""The assignments of an UPDATE on Spark, `column = expression`, and the resulting columns.

A value is cast to its column by the session's store assignment policy, independent of its ANSI setting. Struct fields are matched by name,
or by position if the session requires it. Nothing is executed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable
from tahoe.schema.evolve import without_void
from tahoe.schema.types import StructType
from tahoe.spark.commands.assigned_values import Assignment, Value, assigned
from tahoe.spark.commands.conditions import ExpressionRules, check_expression
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.write.fitting import Place, casts_of_assignments, fitted_value

__all__ = ["parse_assignments", "with_assigned"]

_RULES = ExpressionRules(chance=None, subqueries=("ScalarSubquery",))


def parse_assignments(
    rows: DataFrame, texts: Sequence[tuple[str, str | Column]], columns: Columns, operation: str
) -> tuple[Assignment, ...]:
    """Return the assignments of a SET or VALUES clause.

    Args:
        rows: the rows that the values refer to.
        texts: pairs of a column, or nested field as ``a.b``, and its value: SQL text, or a column expression.
        columns: the assignable columns.
        operation: the name of the operation, for errors.

    Raises:
        InvalidRequest: raised by `assigned_places`; a value with aggregates.
        SchemaMismatch: ``DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION`` if the fields of a struct differ from the column's.
        Unsupported: a value with a subquery other than a scalar one.
        AnalysisException: PySpark's own, for an invalid expression.
    """
    assignments = []
    places = assigned_places((key for key, _ in texts), [columns])
    by_name = casts_of_assignments(rows.sparkSession).by_name
    for place, (_, term) in zip(places, texts, strict=True):
        column = sf.expr(term) if isinstance(term, str) else term
        selected = rows.select(column.alias("value"))
        check_expression(selected, term, f"an assignment of {operation}", _RULES)
        source = from_spark_schema(selected.schema).fields[0].data_type
        if by_name:
            check_assignable(source, place.data_type, place.path)
        assignments.append(Assignment(place.path, Value(column, source)))
    return tuple(assignments)


def with_assigned(
    spark: SparkSession, table: str, schema: StructType, assignments: Sequence[Assignment], where: Column
) -> list[Column]:
    """Return the table's columns with the new values, in the table's order; assigning to a field of a NULL struct makes its other fields
    NULL.

    Args:
        spark: its settings define how values are cast.
        table: the table's URL.
        where: the rows to change, never NULL; other rows keep their values.
    """
    columns, jvm, casts = [], Jvm.of(spark), casts_of_assignments(spark)
    for column in schema:
        value = old = sf.col(quote_identifier(column.name))
        inside = [assignment.inside() for assignment in assignments if assignment.path[0] == column.name]
        if inside:
            place, target = Place(table, (column.name,), casts), without_void(column.data_type)
            new = assigned(jvm, place, target, Value(old, column.data_type), inside)
            value = sf.when(where, new).otherwise(fitted_value(jvm, old, column.data_type, target, place))
        columns.append(value.alias(column.name))
    return columns
