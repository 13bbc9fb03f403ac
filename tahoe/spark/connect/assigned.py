"""The assignments of MERGE and UPDATE in sessions of Spark Connect, as expressions that the server evaluates.

A value is cast to its column as SQL's CAST does, whatever the session's ANSI setting: the query fails if it does not fit. Struct fields are
matched by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable, lacks_fields
from tahoe.schema.types import ArrayType, DataType, PrimitiveType, StructType
from tahoe.spark.commands.assignments import Assignment, Value
from tahoe.spark.connect.conditions import check_expression, text_of
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_type
from tahoe.spark.write.fitting import nullable_schema


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
    types = [column.data_type for column in nullable_schema(from_spark_schema(selected.schema))]
    for place, data_type in zip(places, types, strict=True):
        check_assignable(data_type, place.data_type, place.path, may_lack_fields=may_lack_fields)
    return tuple(
        Assignment(place.path, Value(term, data_type)) for place, term, data_type in zip(places, terms, types, strict=True)
    )


def assigned(target: DataType, old: Value | None, assignments: Sequence[Assignment]) -> Column:
    """Return a column's value after the assignments, in the column's type.

    Args:
        target: the column's type.
        old: the value before; None, which is treated as NULL, if there is none.
        assignments: the assignments to the column or inside it, with paths that omit the column's name.
    """
    for assignment in assignments:
        if not assignment.path and assignment.keeps_fields:
            return _keeping(target, old, assignment.value)
        if not assignment.path:
            return fitted(assignment.value, target)
    if not assignments:
        return sf.lit(None).cast(to_spark_type(target)) if old is None else fitted(old, target)
    assert isinstance(target, StructType)
    fields = []
    for field in target:
        inside = [assignment.inside() for assignment in assignments if assignment.path[0] == field.name]
        fields.append(assigned(field.data_type, _field(old, field.name), inside).alias(field.name))
    return sf.struct(*fields)


def fitted(value: Value, target: DataType) -> Column:
    """Return a value cast to a type; struct fields are matched by name, and missing ones are NULL."""
    if value.data_type == target:
        return value.column
    if isinstance(target, StructType) and isinstance(value.data_type, StructType):
        fields = [assigned(field.data_type, _field(value, field.name), ()).alias(field.name) for field in target]
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


def _keeping(target: DataType, old: Value | None, new: Value) -> Column:
    """Return the new value, with the old values of struct fields that it lacks; NULL if both are NULL."""
    source = new.data_type
    if (
        old is None
        or not isinstance(target, StructType)
        or not isinstance(source, StructType)
        or not lacks_fields(source, target)
    ):
        return fitted(new, target)
    fields = []
    for field in target:
        old_field, new_field = _field(old, field.name), _field(new, field.name)
        inside = [] if new_field is None else [Assignment((), new_field, True)]
        fields.append(assigned(field.data_type, old_field, inside).alias(field.name))
    return sf.when(old.column.isNotNull() | new.column.isNotNull(), sf.struct(*fields))


def _field(struct: Value | None, name: str) -> Value | None:
    if struct is None or not isinstance(struct.data_type, StructType):
        return None
    field = struct.data_type.find(name)
    return None if field is None else Value(struct.column.getField(field.name), field.data_type)
