"""``delta.`/path` TIMESTAMP AS OF <expression>``: kept from a rule of Spark's that would look for a data source instead.

Spark resolves the expression first, and meanwhile another rule of it takes a name of two parts for a format and a path, and fails: it knows
no format ``delta``. A name of three parts it leaves alone; so the catalog is put before the name, here, where the text is parsed.
"""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import copied, with_queries
from tahoe.spark.jvm.stand_ins import PartialFunction
from tahoe.spark.names.entries import SESSION_CATALOG

__all__ = ["travels_by_path", "with_catalog"]

_TRAVEL = re.compile(r"\bdelta\s*\.\s*`.*\b(?:timestamp|system_time)\s+as\s+of\b", re.IGNORECASE | re.DOTALL)


def travels_by_path(text: str) -> bool:
    """Whether a text may read a table by path as of a time."""
    return _TRAVEL.search(text) is not None


def with_catalog(spark: SparkSession, plan: JavaObject) -> JavaObject:
    """The plan with the session catalog's name before each path that is read as of a time."""
    return plan.transformUpWithSubqueries(PartialFunction(_Named(spark).of))


class _Named:
    """``RelationTimeTravel`` and ``UnresolvedWith`` with the catalog's name in them."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._jvm = spark, Jvm.of(spark)

    def of(self, node: JavaObject) -> JavaObject | None:
        """The node with the name; None for a node of another kind."""
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
