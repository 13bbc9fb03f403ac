"""Renames the columns of a query to a table's column names, by position or by name, as INSERT matches them.

Spark passes the result of a query unchanged; types are cast later, by name (`tahoe.spark.write.fitting`). So columns matched by position
are renamed here. delta-spark's rule defines which struct fields are matched by position (`tahoe.schema.positions`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import SchemaMismatch
from tahoe.ops.rows.insert import WriteOptions
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.schema.positions import fits_by_name, renamed_by_position, with_fields_by_position
from tahoe.schema.types import StructField, StructType
from tahoe.schema.widening import NO_WIDENING, Widening
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.settings import is_on
from tahoe.spark.write.fitting import cast_or_fail

__all__ = ["Arrangement", "arranged", "arrangement"]

_EVOLVES_BY_NAME = "spark.databricks.delta.insert.byName.schemaEvolution.enabled"
_NULLS_BY_DEFAULT = "spark.sql.defaultColumn.useNullsForMissingDefaultValues"


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The rules for matching the columns of a query to those of a table.

    Args:
        named: the table, for errors.
        by_name: whether columns are matched by name, otherwise by position.
        is_statement: whether it is a SQL statement, which may omit columns by name only if they have values without the query.
        evolves: whether columns that only the query has are added.
        evolves_by_name: whether statements by name add them too.
        nulls_by_default: whether omitted nullable columns become NULL.
        automatic_widening: the types that schema evolution widens.
    """

    named: str
    by_name: bool
    is_statement: bool
    evolves: bool
    evolves_by_name: bool = True
    nulls_by_default: bool = True
    automatic_widening: str = "ALWAYS"


def arrangement(spark: SparkSession, named: str, options: WriteOptions, *, by_name: bool, is_statement: bool) -> Arrangement:
    """Return the matching rules of this session. The arguments are those of `Arrangement`."""
    return Arrangement(
        named,
        by_name,
        is_statement,
        options.merge_schema,
        is_on(spark, _EVOLVES_BY_NAME, usual=True),
        is_on(spark, _NULLS_BY_DEFAULT, usual=True),
        options.automatic_widening,
    )


def arranged(rows: DataFrame, config: TableConfig, how: Arrangement) -> DataFrame:
    """Return the rows with column and field names under which they can be written.

    Raises:
        SchemaMismatch: ``DELTA_INSERT_COLUMN_ARITY_MISMATCH``, ``DELTA_INSERT_COLUMN_MISMATCH``, ``DELTA_MISSING_COLUMN``,
            ``DELTA_COLUMN_STRUCT_TYPE_MISMATCH``, ``INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS``.
    """
    data, widening = from_spark_schema(rows.schema), NO_WIDENING
    if how.evolves:
        widening = config.automatic_widening(how.automatic_widening)
    if not how.by_name:
        return _renamed(rows, data, _by_place(data, config.schema, how, widening))
    if how.is_statement:
        return _renamed(rows, data, _by_name(data, config.schema, how, widening))
    return rows


def _by_place(data: StructType, table: StructType, how: Arrangement, widening: Widening) -> StructType:
    existing = StructType(data.fields[: len(table)])
    if existing.names == table.names and fits_by_name(existing, table, widening):
        return data
    return renamed_by_position(data, table, how.named)


def _by_name(data: StructType, table: StructType, how: Arrangement, widening: Widening) -> StructType:
    present, evolves = {column.name.lower() for column in data}, how.evolves and how.evolves_by_name
    if evolves or len(data) < len(table):
        for column in table:
            if column.name.lower() not in present and not _has_value_without_query(column, how):
                raise _left_out(column, how)
    if fits_by_name(data, StructType(tuple(column for column in table if column.name.lower() in present)), widening):
        return data
    if not evolves:
        _refuse_more(data, table, how)
    return with_fields_by_position(data, table, how.named)


def _renamed(rows: DataFrame, data: StructType, target: StructType) -> DataFrame:
    if data == target:
        return rows
    jvm = Jvm.of(rows.sparkSession)
    # Columns with the same name are distinguished by position.
    places = [f"_{place}" for place in range(len(rows.columns))]
    columns = []
    for place, column, to in zip(places, data, target, strict=True):
        values = sf.col(place)
        if column.data_type != to.data_type:
            values = cast_or_fail(jvm, values, to.data_type)
        columns.append(values.alias(to.name))
    return rows.toDF(*places).select(*columns)


def _has_value_without_query(column: StructField, how: Arrangement) -> bool:
    return is_filled_in(column) or (column.nullable and how.nulls_by_default)


def _refuse_more(data: StructType, table: StructType, how: Arrangement) -> None:
    if len(data) > len(table):
        raise SchemaMismatch(
            f"Cannot write to {how.named}: it has the columns {', '.join(table.names)}, and the query gives {', '.join(data.names)}. Leave "
            "out those that the table does not have, or write WITH SCHEMA EVOLUTION.",
            code="INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
            table=how.named,
        )
    unknown = next((column.name for column in data if table.find(column.name) is None), None)
    if unknown is not None:
        raise SchemaMismatch(
            f"Table {how.named} has no column '{unknown}'; its columns are {', '.join(table.names)}. Name one of them, or write WITH SCHEMA "
            "EVOLUTION.",
            code="DELTA_MISSING_COLUMN",
            table=how.named,
            column=unknown,
        )


def _left_out(column: StructField, how: Arrangement) -> SchemaMismatch:
    reason = "it must not be null" if not column.nullable else "columns that are left out do not become NULL in this session"
    return SchemaMismatch(
        f"The INSERT into {how.named} leaves out column '{column.name}', which has no default value, and {reason}. Give it a value.",
        code="DELTA_INSERT_COLUMN_MISMATCH",
        table=how.named,
        column=column.name,
    )
