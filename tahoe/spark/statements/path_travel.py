"""``delta.`/path` TIMESTAMP AS OF <expression>``: protected from a Spark rule that would look for a data source.

Spark resolves the expression first. Meanwhile another rule takes a two-part name for a format and a path, and fails, because there is no
format ``delta``. It ignores three-part names, so the catalog's name is prefixed here, when the text is parsed.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction
from tahoe.spark.jvm.records import copied, with_queries
from tahoe.spark.names.entries import SESSION_CATALOG

__all__ = ["travels_by_path", "with_catalog"]

_TRAVEL = re.compile(r"\bdelta\s*\.\s*`.*\b(?:timestamp|system_time)\s+as\s+of\b", re.IGNORECASE | re.DOTALL)


def travels_by_path(text: str) -> bool:
    """Return whether a text may read a table by path as of a timestamp."""
    return _TRAVEL.search(text) is not None


def with_catalog(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """Return the plan with the session catalog's name before each path that is read as of a timestamp."""
    return plan.transformUpWithSubqueries(PartialFunction(_Named(spark).of))


class _Named:
    """Adds the catalog's name to ``RelationTimeTravel`` and ``UnresolvedWith``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    def of(self, node: JavaObject) -> JavaObject | None:
        """Return the node with the name; None for a node of another kind."""
        change = {"RelationTimeTravel": self._travel, "UnresolvedWith": self._with}.get(str(node.nodeName()))
        return None if change is None else change(node)

    def _travel(self, node: JavaObject) -> JavaObject:
        relation = node.relation()
        if str(relation.nodeName()) != "UnresolvedRelation":
            return node
        name = relation.multipartIdentifier()
        if name.size() != 2 or str(name.apply(0)).lower() != "delta":
            return node
        parts = self._jvm.seq(SESSION_CATALOG, name.apply(0), name.apply(1))
        return copied(node, relation=copied(relation, multipartIdentifier=parts))

    def _with(self, node: JavaObject) -> JavaObject:
        return with_queries(self._jvm, node, lambda query: with_catalog(self._spark, query))
