"""Found by PySpark itself, by its name: makes ``format("delta")`` work where `tahoe.enable` was not called.

See `tahoe.spark.portable.data_source`.
"""

from __future__ import annotations

from tahoe.spark.portable.data_source import DeltaDataSource

__all__ = ["DefaultSource"]


class DefaultSource(DeltaDataSource):
    """The data source that PySpark looks for in modules named ``pyspark_…``."""
