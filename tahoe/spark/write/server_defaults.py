"""Column defaults that only Spark can evaluate, in sessions of Spark Connect.

text ─► all of its calls, words and signs are in lists (`tahoe.spark.write.server_rules`) ─► the server computes a column of the rows
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType as SparkStruct

from tahoe.base.clock import Moment
from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.parse.engine_text import engine_text
from tahoe.expr.tree.expression import EngineText
from tahoe.protocol.column_values.default_values import (
    UNRESOLVED,
    Default,
    constant_default,
    default_of,
    defaults_of,
    type_refused,
)
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import spark_text
from tahoe.schema.evolve import can_store
from tahoe.schema.types import ArrayType, DataType, MapType, StructField, StructType
from tahoe.spark.jvm.local_rows import local_frame
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.write.enforce import session_time_zone
from tahoe.spark.write.server_rules import ServerText, server_column, stored_value


def with_server_defaults(rows: DataFrame, config: TableConfig) -> DataFrame:
    """Return the rows with the columns that they lack and whose defaults only Spark can evaluate.

    Args:
        rows: columns are matched by name.

    Raises the errors of `check_default_by_server`.
    """
    return _with(rows, config, [default for default in _defaults(config, Moment(0)) if isinstance(default.value, EngineText)])


def with_named_defaults(rows: DataFrame, config: TableConfig, names: Collection[str], moment: Moment) -> DataFrame:
    """Return the rows with those of these columns that they lack and that have defaults; raises the errors of `check_default_by_server`.

    Args:
        names: of any columns, as the table spells them.
    """
    return _with(rows, config, [default for default in _defaults(config, moment) if default.column.name in names])


def with_defaults_of_batches(rows: DataFrame, config: TableConfig) -> DataFrame:
    """Return the rows of a stream with the columns that they lack and whose defaults differ between batches, or only Spark evaluates.

    The server computes them for each batch; its time is that of the batch. Raises the errors of `check_default_by_server`.
    """
    defaults = list(_defaults(config, Moment(0)))
    if not defaults:
        return rows
    zone = session_time_zone(rows.sparkSession)
    varying = [each for each in defaults if constant_default(each.column, config.table, None, zone) is None]
    return _with(rows, config, [replace(each, value=_by_spark(each)) for each in varying])


def _by_spark(default: Default) -> EngineText:
    """Return the text of a default as one for Spark, also if Tahoe could evaluate it."""
    return engine_text(default.text, StructType(()), UNRESOLVED, "It is a value of the moment.")


def _defaults(config: TableConfig, moment: Moment) -> Iterator[Default]:
    return defaults_of(config.schema, config.table, moment)


def _with(rows: DataFrame, config: TableConfig, defaults: Sequence[Default]) -> DataFrame:
    """Return the rows with the columns of these defaults that they lack."""
    if not defaults:
        return rows
    present, text_of = {name.lower() for name in rows.columns}, written_by_server(rows.sparkSession, config)
    missing = [default for default in defaults if default.column.name.lower() not in present]
    values = {each.column.name: sf.expr(text_of(each)) for each in missing}
    return rows.select("*", *(stored_value(value, config, name).alias(name) for name, value in values.items()))


def written_by_server(spark: SparkSession, config: TableConfig) -> Callable[[Default], str]:
    """Return a function that renders a default as SQL text for this session. It raises the errors of `check_default_by_server`."""

    def written(default: Default) -> str:
        if not isinstance(default.value, EngineText):
            return spark_text(default.value)
        _check(spark, config, default)
        return str(default.value)

    return written


def check_default_by_server(spark: SparkSession, column: StructField, config: TableConfig) -> None:
    """Reject a default that the server cannot or must not evaluate.

    Raises:
        InvalidRequest: ``INVALID_DEFAULT_VALUE``: it reads a column, calls an unknown function, or the column cannot store its type.
        Unsupported: ``INVALID_DEFAULT_VALUE.NOT_CONSTANT``: a text that does not pass the lists, or a setting under which it would have
            another meaning.
    """
    default = default_of(column, config.table, Moment(0))
    if default is not None and isinstance(default.value, EngineText):
        _check(spark, config, default)


def _check(spark: SparkSession, config: TableConfig, default: Default) -> None:
    column, value = default.column, server_column(spark, config, ServerText.of_default(default))
    rows = local_frame(spark, (), SparkStruct())  # a name in the text would be that of a column of other rows
    try:
        schema = rows.select(value.alias(column.name)).schema
    except AnalysisException as error:
        reason = str(error).partition(" SQLSTATE")[0]
        raise InvalidRequest(
            f"Table {config.table}: Spark does not accept the default value of column '{column.name}' ({default.text[:200]}). {reason}",
            code=UNRESOLVED,
            table=config.table,
            column=column.name,
        ) from error
    given = from_spark_schema(schema).fields[0].data_type
    if not _fits(given, column.data_type):
        raise type_refused(column, config.table, given)


def _fits(value: DataType, target: DataType) -> bool:
    """Whether a column stores values of a type; parts of collections and structs are matched by position."""
    match value, target:
        case ArrayType(), ArrayType():
            return _fits(value.element_type, target.element_type)
        case MapType(), MapType():
            return _fits(value.key_type, target.key_type) and _fits(value.value_type, target.value_type)
        case StructType(), StructType():
            pairs = zip(value, target, strict=False)
            return len(value) == len(target) and all(_fits(part.data_type, field.data_type) for part, field in pairs)
    return can_store(value, target)
