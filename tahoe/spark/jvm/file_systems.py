"""Which object stores Spark's JVM can read and write. It needs JARs of Hadoop for them, such as hadoop-aws, which PySpark's package lacks."""

from __future__ import annotations

import logging
from weakref import WeakKeyDictionary

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.storage import hadoop_url
from tahoe.store.location import local_path, needs_jvm, split_url

logger = logging.getLogger(__name__)

_AZURE = "the JAR of hadoop-azure"
_REMEDIES = {
    "s3a": "the JAR of hadoop-aws",
    "abfs": _AZURE,
    "abfss": _AZURE,
    **dict.fromkeys(("az", "adl", "azure"), f"URLs that begin with abfss:// and {_AZURE}"),
    "gs": "the JAR of gcs-connector",
}
_REPORTED = set[str]()


def moves_in_python(spark: SparkSession, url: str) -> bool:
    """Return whether the rows of a table must pass through Python workers, because the JVM lacks the file system of its store.

    The first such store of a process is logged.

    Args:
        spark: a classic session.
        url: of the table.
    """
    scheme = split_url(hadoop_url(url))[0] if local_path(url) is None and not needs_jvm(url) else None
    if scheme not in _REMEDIES or _is_in_jvm(spark, scheme):
        return False
    if scheme not in _REPORTED:
        _REPORTED.add(scheme)
        logger.warning(
            "Spark has no file system for %s://, so the rows of its tables pass through Python workers. It is faster with %s.",
            scheme,
            _REMEDIES[scheme],
        )
    return True


def _is_in_jvm(spark: SparkSession, scheme: str) -> bool:
    key = scheme, spark.conf.get(f"fs.{scheme}.impl", None)
    known = _KNOWN.setdefault(spark.sparkContext._gateway, {})
    if key not in known:
        systems = Jvm.of(spark).java_class("org.apache.hadoop.fs.FileSystem")
        try:
            systems.getFileSystemClass(scheme, spark._jsparkSession.sessionState().newHadoopConf())
            known[key] = True
        except Py4JJavaError:  # no class is named for the scheme, or the class is in no JAR
            known[key] = False
    return known[key]


_KNOWN: WeakKeyDictionary[JavaGateway, dict[tuple[str, str | None], bool]] = WeakKeyDictionary()
"""JVM → scheme and class that the session sets for it → whether the JVM has the file system. Creating a configuration takes milliseconds."""
