"""The base class of the writer of a Python data source's stream: since PySpark 4.1 it takes Arrow batches, before only rows.

Obsolete when PySpark 4.1 is the oldest supported release.
"""

from __future__ import annotations

__all__ = ["TAKES_BATCHES", "StreamWriterBase"]

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as StreamWriterBase

    TAKES_BATCHES = True
except ImportError:
    from pyspark.sql.datasource import DataSourceStreamWriter as StreamWriterBase  # type: ignore[assignment]

    TAKES_BATCHES = False
