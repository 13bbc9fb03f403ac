"""delta-spark's own tests that do not pass, each with the reason. `delta_spark_tests.py` compares the outcomes with this list."""

from __future__ import annotations

from collections.abc import Mapping

import pyspark

__all__ = ["LEFT", "LEFT_ON_CONNECT"]

_JAR = "creates a JVM exception of delta-spark's JAR, which is not installed"

_NEEDS_NEWER_PYSPARK = {"test_deltatable.test_create_table_geo_types": "geometry and geography need PySpark 4.2"}

LEFT: Mapping[str, str] = {
    **(_NEEDS_NEWER_PYSPARK if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2) else {}),
    "test_exceptions.test_capture_concurrent_append_exception": _JAR,
    "test_exceptions.test_capture_concurrent_delete_delete_exception": _JAR,
    "test_exceptions.test_capture_concurrent_delete_read_exception": _JAR,
    "test_exceptions.test_capture_concurrent_transaction_exception": _JAR,
    "test_exceptions.test_capture_concurrent_write_exception": _JAR,
    "test_exceptions.test_capture_delta_analysis_exception": _JAR,
    "test_exceptions.test_capture_delta_illegal_argument_exception": _JAR,
    "test_exceptions.test_capture_metadata_changed_exception": _JAR,
    "test_exceptions.test_capture_protocol_changed_exception": _JAR,
}
"""``file.test`` → reason."""

_NO_METADATA = "reads _metadata.file_path: Python data sources have no hidden columns"

LEFT_ON_CONNECT: Mapping[str, str] = {
    **(_NEEDS_NEWER_PYSPARK if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2) else {}),
    "test_deltatable.test_optimize_zorder_by": _NO_METADATA,
    "test_deltatable.test_optimize_zorder_by_w_partition_filter": _NO_METADATA,
    "test_deltatable.test_verify_paritionedBy_compatibility": "skipped by delta-spark itself: relies on the JVM",
}
"""The same for sessions of Spark Connect."""
