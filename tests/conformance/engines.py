"""The two engines that carry out the cases: settings of the session of delta-spark, and where a case meets its expectation."""

from __future__ import annotations

from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tests.conformance.cases import Case, Expectation
from tests.conformance.outcome import difference_from, outcome_of

__all__ = ["DELTA_SPARK", "PYSPARK", "failure_of", "runs_on_this_pyspark"]

PYSPARK = "4.1."
"""The PySpark of delta-spark's release below."""
DELTA_SPARK = {
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
"""The settings of a session with delta-spark."""


def failure_of(spark: SparkSession, case: Case, expected: Expectation, folder: Path) -> str | None:
    """How the outcome of a case is not the expected one, or None."""
    try:
        outcome = outcome_of(spark, case, folder)
    except Exception as error:  # noqa: BLE001 - the report names the case, where the traceback would not
        return f"a step before the step under test failed: {type(error).__name__}: {error}"
    return difference_from(spark, expected, outcome)


def runs_on_this_pyspark(case: Case) -> bool:
    """Whether this PySpark is new enough for a case."""
    return tuple(map(int, pyspark.__version__.split(".")[:2])) >= case.pyspark
