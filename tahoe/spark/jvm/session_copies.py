"""Copies of a session with other settings."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.compiled import compiled_object


def session_with(spark: SparkSession, settings: Mapping[str, str]) -> JavaObject:
    """Return a copy of the JVM session with other settings, so that the original stays unchanged.

    The copy does not resolve Tahoe's names, so it is for plans whose names are resolved. One with names would stay in memory: it refers to
    Python's objects, and they refer to it.
    """
    jvm = Jvm.of(spark)
    copies = jvm.cached("Copies", lambda: compiled_object(jvm, "Copies", None, None))
    return copies.withoutNames(spark._jsparkSession, "".join(f"{key}\0{value}\0" for key, value in settings.items()))
