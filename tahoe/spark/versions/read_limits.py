"""Limits of the batches of a Python data source, since PySpark 4.2. Earlier versions request only the newest offset.

Obsolete when PySpark 4.2 is the oldest supported release.
"""

from __future__ import annotations

__all__ = ["HAS_READ_LIMITS", "ReadAllAvailable", "ReadLimit", "ReadMaxFiles", "SupportsTriggerAvailableNow"]

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

    HAS_READ_LIMITS = True
except ImportError:
    ReadAllAvailable = ReadLimit = ReadMaxFiles = SupportsTriggerAvailableNow = object  # type: ignore[assignment,misc]
    HAS_READ_LIMITS = False
