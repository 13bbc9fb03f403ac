"""Optimized writes: a shuffle before the write, so that each partition gets few files of similar size.

rows ─► Spark's adaptive rebalancing by the partition columns: small parts merged, large ones split at the size of a bin ─► one file each

Without partition columns, all rows are one part, which is split between the tasks that produced them: they keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.protocol.config import TableConfig
from tahoe.spark.names.settings import setting_of

_OPTIMIZE_WRITE = "spark.databricks.delta.optimizeWrite."
_PART = "_tahoe_part"
_ADAPTIVE = "spark.sql.adaptive."


def optimizes(spark: SparkSession, config: TableConfig, option: bool | None) -> bool:
    """Return whether a write is optimized: by the writer's option, otherwise by the session, otherwise by the table.

    Args:
        option: the option ``optimizeWrite``; None if it is not set.

    Raises `InvalidRequest` for a setting that is neither true nor false.
    """
    if option is not None:
        return option
    text = setting_of(spark, _OPTIMIZE_WRITE + "enabled")
    if text is None:
        return config.properties.optimizes_writes
    if text.strip().lower() not in ("true", "false"):
        raise _no_value("enabled", text)
    return text.strip().lower() == "true"


def rebalanced(data: DataFrame, partition_columns: Sequence[str]) -> DataFrame:
    """Return the rows with a shuffle before the write. Spark ignores the hint unless adaptive execution is on (`settings_of_bins`)."""
    if partition_columns:
        return data.hint("rebalance", *(sf.col(quote_identifier(name)) for name in partition_columns))
    return data.withColumn(_PART, sf.lit(0)).hint("rebalance", sf.col(_PART)).drop(_PART)


def settings_of_bins(spark: SparkSession) -> Mapping[str, str]:
    """Return Spark settings that make the shuffle produce parts of the session's bin size (``binSize``, in megabytes)."""
    size, most = _optimize_setting(spark, "binSize", 512), _optimize_setting(spark, "maxShufflePartitions", 2000)
    return {
        _ADAPTIVE + "enabled": "true",
        _ADAPTIVE + "advisoryPartitionSizeInBytes": f"{size}m",
        _ADAPTIVE + "optimizeSkewsInRebalancePartitions.enabled": "true",
        _ADAPTIVE + "coalescePartitions.enabled": "true",
        _ADAPTIVE + "coalescePartitions.parallelismFirst": "false",
        _ADAPTIVE + "coalescePartitions.initialPartitionNum": str(most),
    }


def _optimize_setting(spark: SparkSession, name: str, default: int) -> int:
    text = setting_of(spark, _OPTIMIZE_WRITE + name)
    # Spark also accepts the size of a bin with a unit.
    digits = (
        str(default) if text is None else text.strip().lower().removesuffix("mb" if name == "binSize" else "").removesuffix("m")
    )
    if not digits.isdecimal() or not int(digits):
        raise _no_value(name, str(text))
    return int(digits)


def _no_value(name: str, text: str) -> InvalidRequest:
    return InvalidRequest(
        f"The setting {_OPTIMIZE_WRITE}{name} = '{text}' is no value for it; unset it.",
        code="DELTA_ILLEGAL_OPTION",
        option=_OPTIMIZE_WRITE + name,
    )
