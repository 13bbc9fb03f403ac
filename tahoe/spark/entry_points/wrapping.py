"""Replaces methods of PySpark's classes in sessions where Delta is enabled, and detects these sessions.

A classic session stores all its state in the JVM, including the mark that Delta is enabled: a setting of the session, which copies of the
session (streaming creates some) inherit. The mark of a session of Spark Connect is in this process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any
from weakref import WeakSet

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import is_classic
from tahoe.spark.names.entries import NamedTable, parts_of, table_named

ENABLED = "spark.tahoe.enabled"
"""The session setting that enables Delta."""


_CONNECTED: WeakSet[SparkSession] = WeakSet()
"""The sessions of Spark Connect with Delta enabled. To read a setting of such a session is a request to its server."""


def mark_enabled(spark: SparkSession) -> None:
    """Note that Delta is enabled in a session."""
    spark.conf.set(ENABLED, "true")
    if not is_classic(spark):
        _CONNECTED.add(spark)


def is_enabled(spark: SparkSession) -> bool:
    """Return whether `tahoe.enable` was called for this session, or for the original of this copy."""
    return str(spark.conf.get(ENABLED, "false")).lower() == "true" if is_classic(spark) else spark in _CONNECTED


def is_delta(spark: SparkSession, source: str | None) -> bool:
    """Return whether a format, or the session's default for None, means Tahoe in this session."""
    if not is_enabled(spark):
        return False
    name = source if source is not None else str(spark.conf.get("spark.sql.sources.default", "parquet"))
    return name.lower() == "delta"


def enabled_table(spark: SparkSession, name: str) -> NamedTable | None:
    """Return the Delta table with this name, such as ``db.t``; None if there is none, or if Delta is not enabled in the session."""
    return table_named(spark, parts_of(spark, name)) if is_enabled(spark) else None


def wrap(owner: type, name: str, replacement: Callable[..., object]) -> None:
    """Replace a method by `replacement(original, self, …)`, once."""
    original = getattr(owner, name)
    if getattr(original, "_tahoe", False):
        return

    @functools.wraps(original)
    def method(self: object, *arguments: object, **named: object) -> Any:
        return replacement(original, self, *arguments, **named)

    method._tahoe = True  # type: ignore[attr-defined]
    setattr(owner, name, method)


def wrap_newer(owner: type, name: str, replacement: Callable[..., object]) -> None:
    """Replace a method that only newer releases of PySpark have."""
    if hasattr(owner, name):
        wrap(owner, name, replacement)


def bound_arguments(original: Callable[..., object], *positional: object, **named: object) -> dict[str, Any]:
    """Return the arguments of a call of PySpark's method by the names of its parameters, defaults included, options under ``options``."""
    call = signature(original).bind(*positional, **named)
    call.apply_defaults()
    return call.arguments


def configure_stream(writer: Any, arguments: Mapping[str, Any]) -> None:
    """Apply the arguments of ``start`` or ``toTable`` to the writer of a stream, as PySpark does."""
    writer.options(**arguments["options"])
    for name in ("outputMode", "partitionBy", "format", "queryName"):
        if arguments[name] is not None:
            getattr(writer, name)(arguments[name])
