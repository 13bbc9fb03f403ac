"""Renames the columns of a query to a table's column names, by position or by name, as INSERT matches them.

Spark passes the result of a query unchanged; types are cast later, by name (`tahoe.spark.write.fitting`). So columns matched by position
are renamed here. delta-spark's rule defines which struct fields are matched by position (`tahoe.schema.positions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.exceptions import SchemaMismatch
from tahoe.ops.rows.insert import WriteOptions
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import is_filled_in
from tahoe.schema.evolve import as_nullable
from tahoe.schema.positions import fits_by_name, renamed_by_position, with_fields_by_position
from tahoe.schema.types import DataType, StructField, StructType
from tahoe.schema.widening import NO_WIDENING, Widening
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.settings import is_on
from tahoe.spark.versions.connect_frames import with_known_columns
from tahoe.spark.write.fitting import cast_or_fail

Cast: TypeAlias = Callable[[Column, DataType], Column]

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


def arranged(rows: DataFrame, config: TableConfig, rules: Arrangement, cast: Cast | None = None) -> DataFrame:
    """Return the rows with column and field names under which they can be written.

    Args:
        cast: casts values, and fails if one does not fit; None for a classic session.

    Raises:
        SchemaMismatch: ``DELTA_INSERT_COLUMN_ARITY_MISMATCH``, ``DELTA_INSERT_COLUMN_MISMATCH``, ``DELTA_MISSING_COLUMN``,
            ``DELTA_COLUMN_STRUCT_TYPE_MISMATCH``, ``INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS``.
    """
    data, widening = from_spark_schema(rows.schema), NO_WIDENING
    if rules.evolves:
        widening = config.automatic_widening(rules.automatic_widening)
    if not rules.by_name:
        return _renamed(rows, data, _by_position(data, config.schema, rules, widening), cast)
    if rules.is_statement:
        return _renamed(rows, data, _by_name(data, config.schema, rules, widening), cast)
    return rows


def _by_position(data: StructType, table: StructType, rules: Arrangement, widening: Widening) -> StructType:
    existing = StructType(data.fields[: len(table)])
    if existing.names == table.names and fits_by_name(existing, table, widening):
        return data
    return renamed_by_position(data, table, rules.named)


def _by_name(data: StructType, table: StructType, rules: Arrangement, widening: Widening) -> StructType:
    present, evolves = {column.name.lower() for column in data}, rules.evolves and rules.evolves_by_name
    if evolves or len(data) < len(table):
        for column in table:
            if column.name.lower() not in present and not _has_value_without_query(column, rules):
                raise _left_out(column, rules)
    if fits_by_name(data, StructType(tuple(column for column in table if column.name.lower() in present)), widening):
        return data
    if not evolves:
        _refuse_more(data, table, rules)
    return with_fields_by_position(data, table, rules.named)


def _renamed(rows: DataFrame, data: StructType, target: StructType, cast: Cast | None) -> DataFrame:
    if data == target:
        return rows
    cast = cast or partial(cast_or_fail, Jvm.of(rows.sparkSession))
    # Columns with the same name are distinguished by position.
    positions = [f"_{position}" for position in range(len(rows.columns))]
    columns = []
    for position, column, renamed in zip(positions, data, target, strict=True):
        values = sf.col(position)
        if column.data_type != renamed.data_type:
            values = cast(values, as_nullable(renamed.data_type))  # Spark casts no variant to one that must not be null
        columns.append(values.alias(renamed.name))
    new = rows.toDF(*positions).select(*columns)
    if [column.data_type for column in data] != [column.data_type for column in target]:
        return new
    pairs = zip(rows.schema, target.names, strict=True)
    return with_known_columns(
        new, SparkStruct([SparkField(name, old.dataType, old.nullable, old.metadata) for old, name in pairs])
    )


def _has_value_without_query(column: StructField, rules: Arrangement) -> bool:
    return is_filled_in(column) or (column.nullable and rules.nulls_by_default)


def _refuse_more(data: StructType, table: StructType, rules: Arrangement) -> None:
    if len(data) > len(table):
        raise SchemaMismatch(
            f"Cannot write to {rules.named}: it has the columns {', '.join(table.names)}, and the query gives {', '.join(data.names)}. Leave "
            "out those that the table does not have, or write WITH SCHEMA EVOLUTION.",
            code="INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
            table=rules.named,
        )
    unknown = next((column.name for column in data if table.find(column.name) is None), None)
    if unknown is not None:
        raise SchemaMismatch(
            f"Table {rules.named} has no column '{unknown}'; its columns are {', '.join(table.names)}. Name one of them, or write WITH "
            "SCHEMA EVOLUTION.",
            code="DELTA_MISSING_COLUMN",
            table=rules.named,
            column=unknown,
        )


def _left_out(column: StructField, rules: Arrangement) -> SchemaMismatch:
    reason = "it must not be null" if not column.nullable else "columns that are left out do not become NULL in this session"
    return SchemaMismatch(
        f"The INSERT into {rules.named} leaves out column '{column.name}', which has no default value, and {reason}. Give it a value.",
        code="DELTA_INSERT_COLUMN_MISMATCH",
        table=rules.named,
        column=column.name,
    )
