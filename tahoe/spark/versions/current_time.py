"""The function ``current_time``, since Spark 4.1. Spark 4.0 also fails to fold the current time in a plan that does not run
(`tahoe.spark.commands.conditions.shown_in_history`).

Obsolete when PySpark 4.1 is the oldest supported release.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

_PRECISIONS = range(7)


def current_time_functions(spark: SparkSession) -> list[str]:
    """Return a call of ``current_time`` with each precision; nothing if Spark does not have the function."""
    return [f"current_time({precision})" for precision in _PRECISIONS] if spark.catalog.functionExists("current_time") else []
