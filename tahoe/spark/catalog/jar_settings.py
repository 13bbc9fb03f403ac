"""The two settings that enable delta-spark: a program written for it may still set them, without its JAR.

Spark ignores an extension whose class is missing, with a warning and a stack trace; a catalog whose class is missing fails at the first
table name.
"""

from __future__ import annotations

import logging
from typing import Any

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import Jvm

logger = logging.getLogger(__name__)

_EXTENSIONS = "spark.sql.extensions"
_CATALOG = "spark.sql.catalog.spark_catalog"
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"


def remove_jar_settings(options: dict[str, Any]) -> None:
    """Remove delta-spark's classes from the settings of a session builder; other extensions stay."""
    if options.get(_CATALOG) == CATALOG:
        del options[_CATALOG]
    if _EXTENSIONS in options:
        remaining = [name for name in str(options[_EXTENSIONS]).split(",") if name.strip() != EXTENSION]
        if remaining:
            options[_EXTENSIONS] = ",".join(remaining)
        else:
            del options[_EXTENSIONS]


def restore_own_catalog(spark: SparkSession) -> None:
    """Restore Spark's own catalog, with a warning, if the session names delta-spark's.

    With its JAR on the class path, delta-spark would read and write the tables of some statements, and Tahoe those of others.
    """
    if spark.conf.get(_CATALOG, None) != CATALOG:
        return
    is_there = Jvm.of(spark).java_class("org.apache.spark.util.Utils").classIsLoadable(CATALOG)
    spark.conf.unset(_CATALOG)
    logger.warning(
        "%s = %s names a class of delta-spark's JAR, which %s: the session has Spark's own catalog, in which Tahoe knows Delta tables. "
        "Leave the setting out.",
        _CATALOG,
        CATALOG,
        "would carry out some statements in Tahoe's place" if is_there else "this session does not have",
    )
