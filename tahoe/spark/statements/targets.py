"""The table of a parsed statement: its name in the plan, and whether it is a Delta table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import SESSION_CATALOG, NamedTable, entry_of, parts_of, table_identifier, table_named
from tahoe.spark.names.server_catalog import server_relation

_NAMED = ("UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView", "UnresolvedIdentifier")


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table in a statement.

    Args:
        named: the table.
        qualifiers: the possible qualifiers of its columns: only an alias, or the parts of its name.
        options: of ``WITH (…)``.
    """

    named: NamedTable
    qualifiers: tuple[str, ...]
    options: dict[str, str]


class UnresolvedName(Exception):
    """The meaning of a name can only be determined at execution.

    Args:
        is_absent: whether the name is known, and there is no such table.
        reason: why the name is not known.
    """

    def __init__(self, *, is_absent: bool, reason: Exception | None = None) -> None:
        super().__init__("the name is not known yet")
        self.is_absent, self.reason = is_absent, reason or self


def target_of(spark: SparkSession, plan: JavaObject) -> Target | None:
    """Resolve an unresolved table of a plan; None if it is no Delta table.

    Args:
        plan: ``UnresolvedRelation`` or a similar node, possibly below an alias.

    Raises:
        UnresolvedName: there is no such table, or the name depends on a value that is not known yet.
    """
    kind, alias = str(plan.nodeName()), None
    if kind == "SubqueryAlias":
        alias, plan = str(plan.alias()), plan.child()
        kind = str(plan.nodeName())
    parts = name_parts(spark, plan)
    if parts is None:
        return None
    named = table_named(spark, parts)
    if named is None:
        if is_missing(spark, parts):
            raise UnresolvedName(is_absent=True)
        return None
    options = Jvm.of(spark).options(plan.options()) if kind == "UnresolvedRelation" else {}
    return Target(named, (alias,) if alias is not None else _qualifiers(spark, named, parts), options)


def name_parts(spark: SparkSession, plan: JavaObject) -> tuple[str, ...] | None:
    """Return the identifiers of a name in a plan; None if the node is no name."""
    kind = str(plan.nodeName())
    if kind in _NAMED:
        name = plan.nameParts() if kind == "UnresolvedIdentifier" else plan.multipartIdentifier()
        return tuple(str(part) for part in items(name))
    if kind == "PlanWithUnresolvedIdentifier":
        return parts_of(spark, evaluated(spark, plan.identifierExpr()))
    return None


def option_value(option: JavaObject) -> Any:
    """Return the value of a Scala ``Option``, or None."""
    return option.get() if option.isDefined() else None


def evaluated(spark: SparkSession, expression: JavaObject) -> str:
    """Return the text of an expression of constants and variables, as in ``IDENTIFIER(…)``. Raises `UnresolvedName`."""
    value = expression if expression.foldable() else analyzed(spark, expression)
    return str(value.eval(None))


def analyzed(spark: SparkSession, expression: JavaObject) -> JavaObject:
    """Return the expression, resolved by Spark's analyzer without columns. Raises `UnresolvedName`."""
    jvm = Jvm.of(spark)
    one_row = jvm.frame(spark._jsparkSession, jvm.catalyst("plans.logical.OneRowRelation")(), spark)
    try:
        plan = one_row.select(jvm.column(expression).alias("value"))._jdf.queryExecution().analyzed()
    except AnalysisException as error:
        raise UnresolvedName(is_absent=False, reason=error) from error
    return plan.projectList().apply(0).child()


def is_missing(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Return whether the name belongs to the session's own catalog, which has no such table or view."""
    if not is_classic(spark):
        return server_relation(spark, parts) is None
    state = spark._jsparkSession.sessionState()
    if len(parts) == 3 and parts[0].lower() != SESSION_CATALOG:
        return False
    if len(parts) < 3 and str(state.catalogManager().currentCatalog().name()).lower() != SESSION_CATALOG:
        return False
    identifier = table_identifier(Jvm.of(spark), parts)
    return len(parts) <= 3 and not state.catalog().isTempView(identifier) and entry_of(spark, parts) is None


def _qualifiers(spark: SparkSession, named: NamedTable, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the qualifiers that Spark adds to columns of a table without an alias: catalog, database, name."""
    if named.entry is None:
        return (SESSION_CATALOG, "delta", parts[-1])
    database = named.entry.identifier().database().get()
    return (SESSION_CATALOG, str(database), parts[-1])
