"""Refreshes the user's cache (`CACHE TABLE`, `df.cache()`) after a commit of this session, so that it has the same rows as the table.

A scan includes its version, so a query never takes rows of an older version from Spark's cache: after a commit of another process it reads
the table. Data that this session changes is cached again at its next use, as in delta-spark; cached views of a specific version stay.
Rows of a CHANGES clause are not cached again, because Spark 4.2 cannot: it would let the statement that changes the table fail.
"""

from __future__ import annotations

import logging

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tahoe.base.exceptions import TahoeError
from tahoe.spark.jvm.bridge import JavaObject, active_session
from tahoe.spark.jvm.records import items
from tahoe.spark.scan.renewal import followed_table
from tahoe.spark.versions.members import private_value
from tahoe.txn.commit import Committed

logger = logging.getLogger(__name__)


def recache(spark: SparkSession, committed: Committed) -> None:
    """Cache the data of the changed table again.

    Args:
        spark: any session of the application; all sessions share the cache.
    """
    manager = spark._jsparkSession.sharedState().cacheManager()
    if manager.isEmpty():
        return
    url, session = committed.snapshot.store.url, active_session(spark)
    for entry in list(items(private_value(manager, "cachedData", "cache written tables again"))):
        leaves = [leaf for leaf in items(entry.plan().collectLeaves()) if _followed_url(leaf) == url]
        if any(_is_v2(leaf) for leaf in leaves):
            manager.uncacheQuery(session._jsparkSession, entry.plan(), False)
            continue
        if not leaves:
            continue
        builder = entry.cachedRepresentation().cacheBuilder()
        name = builder.tableName()
        if name.isEmpty():
            manager.recacheByPlan(session._jsparkSession, leaves[0])
            continue
        manager.uncacheQuery(session._jsparkSession, entry.plan(), False)
        newest = _named(session, str(name.get()), url)
        if newest is not None:
            manager.cacheQuery(newest, name, builder.storageLevel())


def _followed_url(leaf: JavaObject) -> str | None:
    """Return the table that a plan leaf follows, by a scan of its files or by a CHANGES clause; None for other leaves."""
    if not _is_v2(leaf):
        table = followed_table(leaf)
        return None if table is None else table.url
    relation = leaf.table()
    return str(relation.changelog().name()) if str(relation.getClass().getSimpleName()) == "ChangelogTable" else None


def _is_v2(leaf: JavaObject) -> bool:
    return str(leaf.getClass().getSimpleName()) == "DataSourceV2Relation"


def _named(spark: SparkSession, name: str, url: str) -> JavaObject | None:
    """Return the Dataset of a cached name; None if the name now refers to something else in this session: that stays uncached."""
    try:
        frame = spark.table(name)
    except (PySparkException, TahoeError) as error:
        logger.info("%s is no longer cached: the name means nothing in the session that wrote the table (%s)", name, error)
        return None
    plan = frame._jdf.queryExecution().analyzed()
    return frame._jdf if any(_followed_url(leaf) == url for leaf in items(plan.collectLeaves())) else None
