"""Assignments of an UPDATE on Spark: `column = expression`, and what they make of rows.

A value is cast to its column as Spark stores it: one that does not fit makes the query fail, whatever the session's ANSI setting; structs
go by the names of their fields. Nothing is run here.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.exceptions import SchemaMismatch
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assignments import assigned_places
from tahoe.schema.evolve import without_void
from tahoe.schema.types import ArrayType, DataType, MapType, StructType
from tahoe.spark.commands.assigned_values import Assignment, Value, assigned
from tahoe.spark.commands.conditions import check_expression
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.write.fitting import Place, fitted_value

__all__ = ["parse_assignments", "with_assigned"]

_IN_VALUES = ("ScalarSubquery",)


def parse_assignments(
    rows: DataFrame, texts: Sequence[tuple[str, str | Column]], schema: StructType, alias: str | None, operation: str
) -> tuple[Assignment, ...]:
    """The assignments of a SET or VALUES clause.

    Args:
        rows: what the values see.
        texts: pairs of a column, or nested field as ``a.b``, and its value: SQL text, or a column expression.
        schema: of the table that is assigned to.
        alias: a name that may stand before a column that is assigned to.
        operation: for errors.

    Raises:
        InvalidRequest: a name that is no column; ``DELTA_CONFLICT_SET_COLUMN`` where two assignments are to the same place; a value with
            aggregates.
        SchemaMismatch: ``DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION`` where a struct has other fields than the column's.
        Unsupported: a value with another subquery than one of a single value.
        AnalysisException: PySpark's own, for what is no expression on the rows.
    """
    jvm = Jvm.of(rows.sparkSession)
    assignments = []
    places = assigned_places((key for key, _ in texts), schema, alias)
    for place, (_, given) in zip(places, texts, strict=True):
        column = sf.expr(given) if isinstance(given, str) else given
        selected = rows.select(column.alias("value"))
        check_expression(jvm, selected, given, f"an assignment of {operation}", may_be_chance=True, subqueries=_IN_VALUES)
        source = from_spark_schema(selected.schema).fields[0].data_type
        _check_fields(source, place.data_type, place.path)
        assignments.append(Assignment(place.path, Value(column, source)))
    return tuple(assignments)


def with_assigned(jvm: Jvm, table: str, schema: StructType, assignments: Sequence[Assignment], where: Column) -> list[Column]:
    """The columns of the table with the new values, in the table's order; a null struct around a field becomes one of nulls.

    Args:
        table: the table's URL.
        where: the rows that get them, never NULL; the others keep what they have.
    """
    columns = []
    for column in schema:
        value = old = sf.col(quote_identifier(column.name))
        inside = [Assignment(one.path[1:], one.value) for one in assignments if one.path[0] == column.name]
        if inside:
            place, target = Place(table, (column.name,)), without_void(column.data_type)
            new = assigned(jvm, place, target, Value(old, column.data_type), inside)
            value = sf.when(where, new).otherwise(fitted_value(jvm, old, column.data_type, target, place))
        columns.append(value.alias(column.name))
    return columns


def _check_fields(source: DataType, target: DataType, path: tuple[str, ...]) -> None:
    """A struct must have the column's fields, in any order: a field left out would be lost without a word."""
    match source, target:
        case StructType(), StructType():
            if sorted(_lower(source.names)) != sorted(_lower(target.names)):
                raise SchemaMismatch(
                    f"Cannot assign a struct of the fields ({', '.join(source.names)}) to '{'.'.join(path)}', whose fields are "
                    f"({', '.join(target.names)}). Give all of them, by name.",
                    code="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                    column=".".join(path),
                )
            for field in target:
                _check_fields(source.field(field.name).data_type, field.data_type, (*path, field.name))
        case ArrayType(one), ArrayType(other):
            _check_fields(one, other, (*path, "element"))
        case MapType(), MapType():
            _check_fields(source.key_type, target.key_type, (*path, "key"))
            _check_fields(source.value_type, target.value_type, (*path, "value"))


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]
