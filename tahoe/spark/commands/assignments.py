"""The assignments of MERGE and UPDATE, `column = expression`, as Spark expressions bound to the frames of the statement.

A value is cast to its column by the session's store assignment policy, independent of its ANSI setting, as in a write: the query fails if
it does not fit. Struct fields are matched by name, or by position if the session requires it. Nothing is executed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable, lacks_fields
from tahoe.schema.evolve import without_void
from tahoe.schema.types import DataType, StructType
from tahoe.spark.commands.conditions import OF_ASSIGNMENTS, check_expression
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.write.fitting import Cast, Place, casts_of_assignments, classic_cast, fitted_value


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its type."""

    column: Column
    data_type: DataType


@dataclass(frozen=True, slots=True)
class Assignment:
    """The new value of a column or of a struct field.

    Args:
        path: the names from the column to the field, in the spelling of the table's schema.
        keeps_fields: whether fields that the value's structs lack keep their old values.
    """

    path: tuple[str, ...]
    value: Value
    keeps_fields: bool = False

    def inside(self) -> Assignment:
        """Return the assignment relative to its outermost column: without that column's name."""
        return replace(self, path=self.path[1:])


Fit = Callable[[Value | None, DataType, tuple[str, ...]], Column]
"""Casts a value, or NULL for None, to the type of a column, or of the field at a path inside it."""


def fitting(cast: Cast, place: Place) -> Fit:
    """Return the casts for a column."""

    def fit(value: Value | None, target: DataType, path: tuple[str, ...]) -> Column:
        column, source = (None, target) if value is None else (value.column, value.data_type)
        return fitted_value(cast, column, source, target, replace(place, path=(*place.path, *path)))

    return fit


def assigned(
    fit: Fit, target: DataType, old: Value | None, assignments: Sequence[Assignment], path: tuple[str, ...] = ()
) -> Column:
    """Return a column's value after the assignments, in the column's type.

    Args:
        fit: casts to the column's type.
        target: the column's type, without void.
        old: the value and type before; None, which is treated as NULL, if there is none.
        assignments: the assignments to the column or inside it, with paths that omit the column's name. Assigning to a field of a NULL struct
            makes the other fields NULL.
        path: from the column to the field that is assigned.
    """
    for assignment in assignments:
        if not assignment.path and assignment.keeps_fields:
            return _keeping(fit, target, old, assignment.value, path)
        if not assignment.path:
            return fit(assignment.value, target, path)
    if not assignments:
        return fit(old, target, path)
    assert isinstance(target, StructType)
    fields = []
    for field in target:
        inside = [assignment.inside() for assignment in assignments if assignment.path[0] == field.name]
        value = assigned(fit, field.data_type, field_of(old, field.name), inside, (*path, field.name))
        fields.append(value.alias(field.name))
    return sf.struct(*fields)


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
        column = column_of(term)
        selected = rows.select(column.alias("value"))
        check_expression(selected, term, f"an assignment of {operation}", OF_ASSIGNMENTS)
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
    columns, cast, casts = [], classic_cast(Jvm.of(spark)), casts_of_assignments(spark)
    for column in schema:
        value = old = sf.col(quote_identifier(column.name))
        inside = [assignment.inside() for assignment in assignments if assignment.path[0] == column.name]
        if inside:
            place, target = Place(table, (column.name,), casts), without_void(column.data_type)
            new = assigned(fitting(cast, place), target, Value(old, column.data_type), inside)
            value = sf.when(where, new).otherwise(fitted_value(cast, old, column.data_type, target, place))
        columns.append(value.alias(column.name))
    return columns


def _keeping(fit: Fit, target: DataType, old: Value | None, new: Value, path: tuple[str, ...]) -> Column:
    """Return the new value, with the old values of struct fields that it lacks; NULL if both are NULL."""
    source = new.data_type
    if (
        old is None
        or not isinstance(target, StructType)
        or not isinstance(source, StructType)
        or not lacks_fields(source, target)
    ):
        return fit(new, target, path)
    fields = []
    for field in target:
        old_field, new_field = field_of(old, field.name), field_of(new, field.name)
        inside = [] if new_field is None else [Assignment((), new_field, True)]
        fields.append(assigned(fit, field.data_type, old_field, inside, (*path, field.name)).alias(field.name))
    return sf.when(old.column.isNotNull() | new.column.isNotNull(), sf.struct(*fields))


def field_of(struct: Value | None, name: str) -> Value | None:
    """Return a field of a struct; None if the value is no struct or lacks the field."""
    if struct is None or not isinstance(struct.data_type, StructType):
        return None
    field = struct.data_type.find(name)
    return None if field is None else Value(struct.column.getField(field.name), field.data_type)
