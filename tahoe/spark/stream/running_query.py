"""The query of a source: Spark's ``StreamExecution``, with its plan and its logs of planned and completed batches."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.versions.members import unsupported_spark


def running_query(spark: SparkSession, query_id: str | None, use: str) -> JavaObject:
    """Return the ``StreamExecution`` of a query that is starting or running.

    Args:
        use: the purpose, for the message.

    Raises `Unsupported` (``TAHOE_SPARK_VERSION``) if Spark does not list the query.
    """
    running = spark._jsparkSession.sharedState().activeStreamingQueries()
    query = None if query_id is None else running.get(Jvm.of(spark).java_class("java.util.UUID").fromString(query_id))
    if query is None:
        raise unsupported_spark(use, "it does not name the query of a source")
    return query


def has_completed_last_batch(spark: SparkSession, query_id: str | None) -> bool:
    """Return whether the newest batch in the query's checkpoint is completed. A batch that is only planned runs again after a restart.

    Raises: the error of `running_query`.
    """
    query = running_query(spark, query_id, "restart a stream")
    planned, completed = (log.getLatestBatchId() for log in (query.offsetLog(), query.commitLog()))
    return bool(planned.isDefined() and planned.equals(completed))
