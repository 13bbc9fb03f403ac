"""The assignments of MERGE and UPDATE in sessions of Spark Connect, as expressions that the server evaluates.

A value is cast to its column as SQL's CAST does, whatever the session's ANSI setting: the query fails if it does not fit. Struct fields are
matched by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable
from tahoe.schema.types import ArrayType, DataType, PrimitiveType, StructType
from tahoe.spark.commands.assignments import Assignment, Value, field_of
from tahoe.spark.connect.conditions import check_expression, text_of
from tahoe.spark.jvm.translate import to_spark_type
from tahoe.spark.write.fitting import columns_of


def parse_assignments(
    rows: DataFrame, values: Sequence[tuple[str, str | Column]], columns: Columns, where: str, *, may_lack_fields: bool = False
) -> tuple[Assignment, ...]:
    """Return the assignments of a SET or VALUES clause.

    Args:
        rows: the rows that the values refer to.
        values: pairs of a column, or nested field as ``a.b``, and its value.
        columns: the assignable columns.
        where: the part of the statement, for errors.
        may_lack_fields: see `check_assignable`.

    Raises:
        InvalidRequest: raised by `assigned_places`.
        SchemaMismatch: the fields of a struct differ from the column's.
        Unsupported: a subquery.
        AnalysisException: PySpark's own, for an invalid expression.
    """
    if not values:
        return ()
    places = assigned_places((key for key, _ in values), [columns])
    terms = [sf.expr(term) if isinstance(term, str) else term for _, term in values]
    for _, term in values:
        check_expression(text_of(term), where, chance=True)
    selected = rows.select(*(term.alias(f"value{number}") for number, term in enumerate(terms)))
    types = [column.data_type for column in columns_of(selected)]
    for place, data_type in zip(places, types, strict=True):
        check_assignable(data_type, place.data_type, place.path, may_lack_fields=may_lack_fields)
    return tuple(
        Assignment(place.path, Value(term, data_type)) for place, term, data_type in zip(places, terms, types, strict=True)
    )


def fitted(value: Value | None, target: DataType, _path: tuple[str, ...] = ()) -> Column:
    """Return a value cast to a type, NULL for None; struct fields are matched by name, and missing ones are NULL."""
    if value is None:
        return sf.lit(None).cast(to_spark_type(target))
    if value.data_type == target:
        return value.column
    if isinstance(target, StructType) and isinstance(value.data_type, StructType):
        fields = [fitted(field_of(value, field.name), field.data_type).alias(field.name) for field in target]
        return sf.when(value.column.isNotNull(), sf.struct(*fields))
    if isinstance(target, ArrayType) and isinstance(value.data_type, ArrayType) and _has_structs(target):
        source, element = value.data_type.element_type, target.element_type
        return sf.transform(value.column, lambda item: fitted(Value(item, source), element))
    return cast_or_fail(value.column, target)


def cast_or_fail(column: Column, target: DataType) -> Column:
    """Return a cast that fails if a value does not fit, whatever the session's ANSI setting."""
    from pyspark.sql.connect.column import Column as ConnectColumn
    from pyspark.sql.connect.expressions import CastExpression

    if isinstance(target, PrimitiveType) and target.name == "void":
        return sf.lit(None)
    expression: Any = column._expr
    return ConnectColumn(CastExpression(expression, to_spark_type(target), "ansi"))


def _has_structs(data_type: ArrayType) -> bool:
    element = data_type.element_type
    return isinstance(element, StructType) or (isinstance(element, ArrayType) and _has_structs(element))
