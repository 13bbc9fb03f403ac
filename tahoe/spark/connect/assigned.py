"""The assignments of MERGE and UPDATE in sessions of Spark Connect, as expressions that the server evaluates.

Values are cast by the rules of a classic session (`tahoe.spark.commands.assignments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from tahoe.expr.tree.predicate import quote_identifier
from tahoe.ops.rows.assigned_places import Columns, assigned_places, check_assignable
from tahoe.ops.rows.insert import naming_table_with_id
from tahoe.protocol.config import TableConfig
from tahoe.schema.evolve import as_nullable, check_nested_fields
from tahoe.schema.types import DataType, DecimalType, PrimitiveType, StructField
from tahoe.spark.commands.assignments import Assignment, Fit, Value, fitting
from tahoe.spark.commands.conditions import ExpressionRules
from tahoe.spark.connect.conditions import check_expression, of_one_row, text_of
from tahoe.spark.connect.requests.server_errors import error_text
from tahoe.spark.jvm.translate import to_spark_type
from tahoe.spark.names.frame_columns import column_of
from tahoe.spark.versions.connect_frames import alias_of
from tahoe.spark.write.fitting import Casts, Place, columns_of, misfit, must_fit, no_cast

_RULES = ExpressionRules(chance=None, subqueries=("ScalarSubquery", "ListQuery", "Exists"))
"""The rules of a MERGE; an UPDATE has some more."""
_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
"""The digits of the decimal that holds all integers of a type, as in Spark."""
_VALUE = "(value)"
"""Stands for a value in the text of an error."""
_TIMES = ("date", "timestamp", "timestamp_ntz")


def parse_assignments(
    rows: DataFrame,
    values: Sequence[tuple[str, str | Column]],
    columns: Columns,
    where: str,
    casts: Casts,
    *,
    may_lack_fields: bool = False,
) -> tuple[Assignment, ...]:
    """Return the assignments of a SET or VALUES clause.

    Args:
        rows: the rows that the values refer to.
        values: pairs of a column, or nested field as ``a.b``, and its value.
        columns: the assignable columns.
        where: the part of the statement, for errors.
        casts: of the session.
        may_lack_fields: see `check_assignable`.

    Raises:
        InvalidRequest: raised by `assigned_places`.
        SchemaMismatch: the fields of a struct differ from the column's.
        AnalysisException: PySpark's own, for an invalid expression.
    """
    if not values:
        return ()
    places = assigned_places((key for key, _ in values), [columns])
    terms = [column_of(term) for _, term in values]
    for _, term in values:
        check_expression(text_of(term), where, _RULES)
    # In a filter the server refuses functions of more or less than one row, with which a selection would have other rows.
    selected = rows.where(reduce(or_, (term.isNull() for term in terms)))
    with of_one_row(", ".join(text_of(term) for _, term in values), where, _RULES):
        types = [
            column.data_type for column in columns_of(selected.select(*(term.alias(f"v{n}") for n, term in enumerate(terms))))
        ]
    for place, data_type in zip(places, types, strict=True) if casts.by_name else ():
        check_assignable(data_type, place.data_type, place.path, may_lack_fields=may_lack_fields)
    return tuple(
        Assignment(place.path, Value(term, data_type)) for place, term, data_type in zip(places, terms, types, strict=True)
    )


def fit_of(table: str, column: StructField, casts: Casts) -> Fit:
    """Return the casts for a column of a table."""
    return fitting(remote_cast, Place(table, (column.name,), casts))


def cast_to_columns(rows: DataFrame, config: TableConfig, casts: Casts) -> DataFrame:
    """Return the rows with the types of the table's columns, under their alias; a value that does not fit is an error.

    Raises `SchemaMismatch`: the errors of `tahoe.schema.evolve.check_nested_fields`, since a cast would drop these fields.
    """
    data, columns, is_cast = columns_of(rows), [], False
    with naming_table_with_id(config):
        check_nested_fields(data, config.schema)
    for column in data:
        target = config.schema.find(column.name)
        value = Value(sf.col(quote_identifier(column.name)), column.data_type)
        fitted = value.column if target is None else fit_of(config.table, target, casts)(value, target.data_type, ())
        is_cast = is_cast or fitted is not value.column
        columns.append(fitted.alias(column.name))
    if not is_cast:
        return rows
    alias = alias_of(rows)
    return rows.select(*columns) if alias is None else rows.select(*columns).alias(alias)


def remote_cast(values: Column | None, source: DataType, target: DataType, place: Place) -> Column:
    """Return a cast that the server carries out (`tahoe.spark.write.fitting.Cast`)."""
    if values is None:
        return sf.lit(None).cast(to_spark_type(as_nullable(target)))
    if _always_fits(source, target):
        return cast_or_fail(values, target)
    if place.casts.policy == "STRICT":
        raise no_cast(source, target, place, "CANNOT_UP_CAST_DATATYPE")
    if place.casts.policy == "LEGACY":
        return _cast(values, target, "legacy")
    if not isinstance(source, PrimitiveType | DecimalType) or not isinstance(target, PrimitiveType | DecimalType):
        return cast_or_fail(values, target)
    before, after = error_text(misfit(_VALUE, source, target, place)).split(f"'{_VALUE}'", 1)
    failing = sf.raise_error(sf.concat(sf.lit(f"{before}'"), values.cast("string"), sf.lit(f"'{after}")))
    return sf.when(must_fit(values, source, target), sf.coalesce(_cast(values, target, "try"), failing))


def _always_fits(source: DataType, target: DataType) -> bool:
    """Whether Spark casts the type under the store assignment policy STRICT."""
    pair = (str(source), str(target))
    if pair[0] == "void" or pair[1] == "string" or (pair[0] in _TIMES and pair[1] in _TIMES[1:]):
        return True
    if isinstance(target, DecimalType):
        digits = source if isinstance(source, DecimalType) else DecimalType(_DIGITS.get(pair[0], 99), 0)
        return target.scale >= digits.scale and target.precision - target.scale >= digits.precision - digits.scale
    return pair[0] in _NUMBERS and pair[1] in _NUMBERS and _NUMBERS.index(pair[0]) <= _NUMBERS.index(pair[1])


def cast_or_fail(column: Column, target: DataType) -> Column:
    """Return a cast that fails if a value does not fit, whatever the session's ANSI setting."""
    return _cast(column, target, "ansi")


def _cast(column: Column, target: DataType, mode: str) -> Column:
    from pyspark.sql.connect.column import Column as ConnectColumn
    from pyspark.sql.connect.expressions import CastExpression

    if isinstance(target, PrimitiveType) and target.name == "void":
        return sf.lit(None)
    expression: Any = column._expr
    return ConnectColumn(CastExpression(expression, to_spark_type(target), mode))
