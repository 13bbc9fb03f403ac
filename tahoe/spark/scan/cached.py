"""What users have cached (`CACHE TABLE`, `df.cache()`) after a commit of this session: the same rows as the table.

A scan knows its version, so a query never takes rows of an older version from Spark's cache: after a commit of another process it reads the
table. What this session writes itself is cached anew, at the next use of it, as the reference does; cached views of one version stay.
"""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.exceptions import TahoeError
from tahoe.spark.jvm.bridge import JavaObject, active_session
from tahoe.spark.jvm.private_fields import private_value
from tahoe.spark.jvm.records import items
from tahoe.spark.scan.renewal import index_of
from tahoe.txn.commit import Committed

__all__ = ["recache"]

logger = logging.getLogger(__name__)


def recache(spark: SparkSession, committed: Committed) -> None:
    """Cache anew what was cached of the table that this commit changed.

    Args:
        spark: any session of the application; the cache is shared by all.
    """
    manager = spark._jsparkSession.sharedState().cacheManager()
    if manager.isEmpty():
        return
    url = committed.snapshot.store.url
    for entry in _entries(manager):
        leaf = _leaf(entry.plan(), url)
        if leaf is None:
            continue
        builder = entry.cachedRepresentation().cacheBuilder()
        name = builder.tableName()
        session = active_session(spark)
        if name.isEmpty():
            manager.recacheByPlan(session._jsparkSession, leaf)
            continue
        manager.uncacheQuery(session._jsparkSession, entry.plan(), False)
        newest = _named(session, str(name.get()), url)
        if newest is not None:
            manager.cacheQuery(newest, name, builder.storageLevel())


def _entries(manager: JavaObject) -> list[JavaObject]:
    """``CachedData`` of Spark's own list, which it keeps private."""
    return list(items(private_value(manager, "cachedData", "cache written tables anew")))


def _leaf(plan: JavaObject, url: str) -> JavaObject | None:
    """The first scan in a plan that follows the table; None where none does."""
    for leaf in items(plan.collectLeaves()):
        index = index_of(leaf)
        if index is not None and index.follows is not None and index.follows.url == url:
            return leaf
    return None


def _named(spark: SparkSession, name: str, url: str) -> JavaObject | None:
    """What a cached name means now, as a Dataset; None where it means another thing in this session: that is left uncached."""
    try:
        frame = spark.table(name)
    except (PySparkException, TahoeError) as error:
        logger.info("%s is no longer cached: the name means nothing in the session that wrote the table (%s)", name, error)
        return None
    plan = frame._jdf.queryExecution().analyzed()
    return frame._jdf if _leaf(plan, url) is not None else None
