"""Column defaults that only Spark can evaluate, checked like every stored expression (`tahoe.spark.jvm.stored_trees`)."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.clock import Moment
from tahoe.expr.tree.expression import EngineText
from tahoe.protocol.column_values.default_values import Default, default_of, type_refused
from tahoe.protocol.config import TableConfig
from tahoe.protocol.constraints import spark_text
from tahoe.schema.types import StructField, StructType
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.stored_trees import Bound, Stored, StoredTrees


def check_default_on_spark(spark: SparkSession, column: StructField, config: TableConfig) -> None:
    """Reject a default that Spark must not evaluate. Raises `Unsupported` and `InvalidRequest` (``INVALID_DEFAULT_VALUE``)."""
    default = default_of(column, config.table, Moment(0))
    if default is not None and isinstance(default.value, EngineText):
        _bound(spark, default, default.value, config.table)


def default_column(spark: SparkSession, default: Default, table: str) -> Column:
    """Return the value as a Spark column. Raises the errors of `check_default_on_spark`."""
    if isinstance(default.value, EngineText):
        return Jvm.of(spark).column(_bound(spark, default, default.value, table).tree)
    return sf.expr(spark_text(default.value))


def written_default(spark: SparkSession, table: str) -> Callable[[Default], str]:
    """Return a function that renders a table's default as SQL text for this session. It raises the errors of `check_default_on_spark`."""

    def written(default: Default) -> str:
        if not isinstance(default.value, EngineText):
            return spark_text(default.value)
        # Checked with the parser and the settings of the session that will read the text again.
        _bound(spark, default, default.value, table)
        return default.text

    return written


def _bound(spark: SparkSession, default: Default, engine: EngineText, table: str) -> Bound:
    subject = f"the default value of column '{default.column.name}'"
    bound = StoredTrees(spark, spark._jsparkSession).bound(Stored(engine, "DEFAULT", table, subject, StructType(())))
    if not Jvm.of(spark).can_cast("canANSIStoreAssign", bound.data_type, default.column.data_type):
        raise type_refused(default.column, table, bound.data_type)
    return bound
