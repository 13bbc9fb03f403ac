"""Optimized writes: a shuffle before the write, so that each partition gets few files, of about the same size.

rows ─► Spark's adaptive rebalancing by the partition columns: small parts together, large ones split at the size of a bin ─► a file each

Where there are no partition columns, all rows are of one part, which is split between the tasks that made them: they keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.config import TableConfig

__all__ = ["optimizes", "rebalanced", "settings_of_bins"]

_PREFIX = "spark.databricks.delta.optimizeWrite."
_KEY = "_tahoe_part"
_ADAPTIVE = "spark.sql.adaptive."


def optimizes(spark: SparkSession, config: TableConfig, asked: bool | None) -> bool:
    """Whether a write is optimized: by the writer's option, else by the session, else by the table.

    Args:
        asked: by the option ``optimizeWrite``; None where it is not given.

    Raises `InvalidRequest` for a setting that is neither true nor false.
    """
    if asked is not None:
        return asked
    text = spark.conf.get(_PREFIX + "enabled", None)
    if text is None:
        return config.properties.optimizes_writes
    if text.strip().lower() not in ("true", "false"):
        raise _no_value("enabled", text)
    return text.strip().lower() == "true"


def rebalanced(data: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """The rows, with the shuffle between them and the write. Their session has `settings_of_bins`: without them Spark forgets the hint."""
    if partition_columns:
        return data.hint("rebalance", *(sf.col(quote_identifier(name)) for name in partition_columns))
    return data.withColumn(_KEY, sf.lit(0)).hint("rebalance", sf.col(_KEY)).drop(_KEY)


def settings_of_bins(spark: SparkSession) -> Mapping[str, str]:
    """Spark's settings by which the shuffle makes parts of the size that the session asks for (``binSize``, in megabytes)."""
    size, most = _number(spark, "binSize", 512), _number(spark, "maxShufflePartitions", 2000)
    return {
        _ADAPTIVE + "enabled": "true",
        _ADAPTIVE + "advisoryPartitionSizeInBytes": f"{size}m",
        _ADAPTIVE + "optimizeSkewsInRebalancePartitions.enabled": "true",
        _ADAPTIVE + "coalescePartitions.enabled": "true",
        _ADAPTIVE + "coalescePartitions.parallelismFirst": "false",
        _ADAPTIVE + "coalescePartitions.initialPartitionNum": str(most),
    }


def _number(spark: SparkSession, name: str, default: int) -> int:
    text = spark.conf.get(_PREFIX + name, None)
    # Spark takes the size of a bin with a unit as well.
    digits = (
        str(default) if text is None else text.strip().lower().removesuffix("mb" if name == "binSize" else "").removesuffix("m")
    )
    if not digits.isdecimal() or not int(digits):
        raise _no_value(name, str(text))
    return int(digits)


def _no_value(name: str, text: str) -> InvalidRequest:
    return InvalidRequest(
        f"The setting {_PREFIX}{name} = '{text}' is no value for it; unset it.",
        code="DELTA_ILLEGAL_OPTION",
        option=_PREFIX + name,
    )
