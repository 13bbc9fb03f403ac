"""INSERTs whose queries read the written table.

Spark's analyzer has one relation for each name of a statement. Once it has that of a writer, readers get it too, and cannot read it. It
resolves the FROM of a query first, then the table that is written, and then subqueries and functions. So the writable table is put into
such a statement before. In ``FROM a INSERT INTO a … INSERT INTO b …`` the second query follows the first written table; there, the plans
of the read tables are put into the queries.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.proxies import PartialFunction
from tahoe.spark.jvm.records import copied, created, items
from tahoe.spark.names.entries import table_named

INSERT = "InsertIntoStatement"
_RELATION = "UnresolvedRelation"
# Subqueries, named queries, whose subqueries have no mark, table functions, and IDENTIFIER(…), which is the last one since PySpark 4.1.
_LATE = (
    *("PLAN_EXPRESSION", "UNRESOLVED_WITH", "UNRESOLVED_TABLE_VALUED_FUNCTION", "UNRESOLVED_IDENTIFIER"),
    "PLAN_WITH_UNRESOLVED_IDENTIFIER",
)
_CALLS = ("UNRESOLVED_FUNCTION",)
_CALL = re.compile(r"\b([^\W\d]\w*)`?\s*\(")
_NO_FUNCTIONS = frozenset(
    {"as", "and", "by", "from", "in", "join", "not", "on", "or", "over", "select", "using", "values", "when", "where"}
)
_BUILT_IN: WeakKeyDictionary[Jvm, frozenset[str]] = WeakKeyDictionary()


def with_plans_of_sources(spark: SparkSession, inserts: list[JavaObject]) -> list[JavaObject]:
    """Return the INSERTs; where a query reads a table that one of them writes, it contains the plan of the newest version.

    All INSERTs read the same version, as in delta-spark: none sees the rows of another.
    """
    sources = _Sources(spark, {_last_name(insert.table()) for insert in inserts if _is_by_name(insert)})
    return [copied(insert, query=sources.in_query(insert.query())) if _is_by_name(insert) else insert for insert in inserts]


def may_read_target_late(jvm: Jvm, insert: JavaObject, text: str | None) -> bool:
    """Whether the analyzer resolves parts of an INSERT's query after the written table.

    Args:
        text: of the statement. It shows whether the query may call functions that SQL defines, which may read tables; without it, it may.
    """
    names = (*_LATE, *_CALLS) if text is None or _calls_other_functions(jvm, text) else _LATE
    patterns = jvm.cached(f"patterns {len(names)}", lambda: _patterns(jvm, names))
    return bool(insert.query().containsAnyPattern(patterns))


def _patterns(jvm: Jvm, names: Sequence[str]) -> JavaObject:
    enumeration = jvm.catalyst("trees.TreePattern")
    known = str(enumeration.values().mkString("\n")).split("\n")
    return jvm.seq(*(getattr(enumeration, name)() for name in names if name in known))


def _calls_other_functions(jvm: Jvm, text: str) -> bool:
    """Whether a statement may call functions that are not Spark's own."""
    called = {name.lower() for name in _CALL.findall(text)}
    return not called <= _NO_FUNCTIONS and not called <= _NO_FUNCTIONS | _built_in(jvm)


def _built_in(jvm: Jvm) -> frozenset[str]:
    """Return the names of Spark's own functions; read once, because they are hundreds."""
    if not _BUILT_IN.get(jvm):
        names = str(jvm.catalyst("analysis.FunctionRegistry").builtin().listFunction().mkString("\n"))
        _BUILT_IN[jvm] = frozenset(name.rpartition(".")[2] for name in names.split("\n"))
    return _BUILT_IN[jvm]


def with_resolved_target(spark: SparkSession, insert: JavaObject) -> JavaObject:
    """Return an INSERT with the writable table in place of its name, which the analyzer has for readers alone then; unchanged for tables
    that Spark itself writes.
    """
    relation = insert.table()
    if str(relation.nodeName()) != _RELATION:
        return insert
    resolved = spark._jsparkSession.sessionState().analyzer().execute(relation).collectLeaves().head()
    is_writable = str(resolved.getClass().getSimpleName()) == "DataSourceV2Relation"
    return copied(insert, table=resolved) if is_writable else insert


class _Sources:
    """The plans of the tables with some names.

    Args:
        written: the last parts of the names, in lower case.
    """

    def __init__(self, spark: SparkSession, written: set[str]) -> None:
        self._spark, self._jvm, self._written = spark, Jvm.of(spark), written
        self._versions: dict[tuple[str, ...], int | None] = {}

    def in_query(self, query: JavaObject) -> JavaObject:
        """Return a query with the plans in place of the names; a named query that has such a name is no table."""
        without_named_queries = self._jvm.catalyst("analysis.CTESubstitution").apply(query)
        return without_named_queries.transformDownWithSubqueries(PartialFunction(self._plan_of))

    def _plan_of(self, node: JavaObject) -> JavaObject | None:
        if str(node.nodeName()) != _RELATION or node.isStreaming() or _last_name(node) not in self._written:
            return None
        version = self._version(_parts(node))
        if version is None:
            return None
        nothing, text = self._jvm.option(None), self._jvm.option(str(version))
        travel = created(self._jvm, "analysis.RelationTimeTravel", node, nothing, text)
        return self._spark._jsparkSession.sessionState().analyzer().execute(travel)

    def _version(self, parts: tuple[str, ...]) -> int | None:
        """Return the newest version of a Delta table; None for another relation."""
        if parts not in self._versions:
            named = table_named(self._spark, parts)
            self._versions[parts] = None if named is None else named.table.snapshot().version
        return self._versions[parts]


def _is_by_name(insert: JavaObject) -> bool:
    return str(insert.nodeName()) == INSERT and str(insert.table().nodeName()) == _RELATION


def _parts(relation: JavaObject) -> tuple[str, ...]:
    return tuple(str(part) for part in items(relation.multipartIdentifier()))


def _last_name(relation: JavaObject) -> str:
    return str(relation.multipartIdentifier().last()).lower()
