"""Tahoe: Delta Lake for PySpark in pure Python, every table readable as Apache Iceberg too.

``tahoe.Table`` works without Spark; ``tahoe.enable(spark)`` switches Delta on in a Spark session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tahoe.version import __version__

if TYPE_CHECKING:
    from tahoe.spark.session import configure_spark_with_delta_pip, enable
    from tahoe.table import Table

__all__ = ["Table", "__version__", "configure_spark_with_delta_pip", "enable"]

# Loaded on first use: a command line that answers in half a second must not import Spark.
_HOMES = {
    "Table": "tahoe.table",
    "configure_spark_with_delta_pip": "tahoe.spark.session",
    "enable": "tahoe.spark.session",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tahoe' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
