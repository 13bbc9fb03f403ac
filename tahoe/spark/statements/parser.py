"""The session's parser: statements on Delta tables become commands of ours, everything else goes on as Spark parsed it."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.stand_ins import stand_in

__all__ = ["parser"]

_INTERFACE = "org.apache.spark.sql.catalyst.parser.ParserInterface"


def parser(there: JavaObject, spark: SparkSession) -> JavaObject:
    """What stands for the session's parser.

    Args:
        there: Spark's own parser.
        spark: the session whose parser it is.
    """
    return stand_in(spark, there, _Parser(there, spark), ["parsePlan", "parsePlanWithParameters"], [_INTERFACE])


class _Parser:
    """What Python answers."""

    def __init__(self, there: JavaObject, spark: SparkSession) -> None:
        self._there, self._spark = there, spark

    def parsePlan(self, text: str) -> JavaObject:  # noqa: N802 - Spark's name
        """The plan of a statement."""
        return self._there.parsePlan(text)

    def parsePlanWithParameters(self, text: str, context: JavaObject) -> JavaObject:  # noqa: N802 - Spark's name
        """The plan of a statement with values for its parameters."""
        return self._there.parsePlanWithParameters(text, context)
