"""INSERTs whose queries read the written table.

Spark's analyzer has one relation for each name of a statement. Once it has that of a writer, readers get it too, and cannot read it. It
resolves the FROM of a query first, then the table that is written, and then subqueries, and in ``FROM a INSERT INTO a … INSERT INTO b …``
the query of the second INSERT. So the plans of those tables are put into the queries before.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction
from tahoe.spark.jvm.records import copied, created, items
from tahoe.spark.names.entries import table_named

INSERT = "InsertIntoStatement"
_RELATION = "UnresolvedRelation"


def with_plans_of_sources(spark: SparkSession, inserts: list[JavaObject]) -> list[JavaObject]:
    """Return the INSERTs; where a query reads a table that one of them writes, it contains the plan of the newest version.

    All INSERTs read the same version, as in delta-spark: none sees the rows of another.
    """
    sources = _Sources(spark, {_last_name(insert.table()) for insert in inserts if _is_by_name(insert)})
    return [copied(insert, query=sources.in_query(insert.query())) if _is_by_name(insert) else insert for insert in inserts]


def with_plans_in_subqueries(spark: SparkSession, insert: JavaObject) -> JavaObject:
    """Return an INSERT; if its query has subqueries, it contains the plans of its tables and views in place of their names.

    A view may read the written table, so that is looked for in no name.
    """
    query = insert.query()
    if not query.containsAnyPattern(Jvm.of(spark).cached("subqueries", lambda: _subqueries(Jvm.of(spark)))):
        return insert
    return copied(insert, query=_Sources(spark, None).in_query(query))


def _subqueries(jvm: Jvm) -> JavaObject:
    """Return the marks of plans that have subqueries, or named queries, whose subqueries have no mark."""
    pattern = jvm.catalyst("trees.TreePattern")
    return jvm.seq(pattern.PLAN_EXPRESSION(), pattern.UNRESOLVED_WITH())


class _Sources:
    """The plans of tables and views.

    Args:
        written: the last parts, in lower case, of the names of tables that are all read at one version; None for the newest version of
            all tables, and for views.
    """

    def __init__(self, spark: SparkSession, written: set[str] | None) -> None:
        self._spark, self._jvm, self._written = spark, Jvm.of(spark), written
        self._versions: dict[tuple[str, ...], int | None] = {}

    def in_query(self, query: JavaObject) -> JavaObject:
        """Return a query with the plans in place of the names; a named query that has such a name is no table."""
        without_named_queries = self._jvm.catalyst("analysis.CTESubstitution").apply(query)
        return without_named_queries.transformDownWithSubqueries(PartialFunction(self._plan_of))

    def _plan_of(self, node: JavaObject) -> JavaObject | None:
        if str(node.nodeName()) != _RELATION or node.isStreaming():
            return None
        analyzer = self._spark._jsparkSession.sessionState().analyzer()
        if self._written is None:
            return analyzer.execute(node)
        version = (
            self._version(tuple(str(part) for part in items(node.multipartIdentifier()))) if self._is_written(node) else None
        )
        if version is None:
            return None
        nothing, text = self._jvm.option(None), self._jvm.option(str(version))
        return analyzer.execute(created(self._jvm, "analysis.RelationTimeTravel", node, nothing, text))

    def _is_written(self, node: JavaObject) -> bool:
        return self._written is not None and _last_name(node) in self._written

    def _version(self, parts: tuple[str, ...]) -> int | None:
        """Return the newest version of a Delta table; None for another relation."""
        if parts not in self._versions:
            named = table_named(self._spark, parts)
            self._versions[parts] = None if named is None else named.table.snapshot().version
        return self._versions[parts]


def _is_by_name(insert: JavaObject) -> bool:
    return str(insert.nodeName()) == INSERT and str(insert.table().nodeName()) == _RELATION


def _last_name(relation: JavaObject) -> str:
    return str(relation.multipartIdentifier().last()).lower()
