"""How a method of PySpark's classes is given another meaning where Delta is on, and how that is known.

A classic session keeps all its state in the JVM, and so does the mark that Delta is on: a setting of the session, which copies of the
session (streaming makes some) inherit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import is_classic

__all__ = ["ENABLED", "is_delta", "is_enabled", "takes_names", "wrap"]

ENABLED = "spark.tahoe.enabled"
"""The setting of a session in which Delta is on."""


def is_enabled(spark: SparkSession) -> bool:
    """Whether `tahoe.enable` was called for this session, or for one that it is a copy of."""
    return str(spark.conf.get(ENABLED, "false")).lower() == "true"


def is_delta(spark: SparkSession, source: str | None) -> bool:
    """Whether a format, or the session's default where none is named, means Tahoe in this session."""
    name = source if source is not None else str(spark.conf.get("spark.sql.sources.default", "parquet"))
    return name.lower() == "delta" and is_enabled(spark)


def takes_names(spark: SparkSession) -> bool:
    """Whether Tahoe knows tables of the session by their names: one with a JVM and with Delta on."""
    return is_classic(spark) and is_enabled(spark)


def wrap(owner: type, name: str, replacement: Callable[..., Any]) -> None:
    """Put `replacement(original, self, …)` in the place of a method, once."""
    original = getattr(owner, name)
    if getattr(original, "_tahoe", False):
        return

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return replacement(original, self, *arguments, **named)

    method._tahoe = True  # type: ignore[attr-defined]
    setattr(owner, name, method)
