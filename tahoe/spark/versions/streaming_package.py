"""The package of Spark's streaming classes: ``…execution.streaming`` in 4.0, ``…execution.streaming.runtime`` since 4.1.

Obsolete when PySpark 4.1 is the oldest supported release.
"""

from __future__ import annotations

from py4j.java_gateway import JavaObject

_STREAMING = "org.apache.spark.sql.execution.streaming"


def streaming_package(loader: JavaObject) -> str:
    """Return the package of ``SerializedOffset`` and ``StreamingRelation``.

    Args:
        loader: the class loader of Spark's classes.
    """
    moved = f"{_STREAMING}.runtime"
    return _STREAMING if loader.getResource(f"{moved.replace('.', '/')}/SerializedOffset.class") is None else moved
