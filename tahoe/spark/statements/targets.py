"""The table that a parsed statement is about: its name in the plan, and whether it is one of Delta."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession

from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.names.entries import SESSION_CATALOG, NamedTable, parts_of, table_named

__all__ = ["Target", "name_parts", "target_of"]

_NAMED = ("UnresolvedRelation", "UnresolvedTable", "UnresolvedTableOrView", "UnresolvedIdentifier")


@dataclass(frozen=True, slots=True)
class Target:
    """A Delta table as a statement names it.

    Args:
        named: the table.
        qualifiers: the names that may stand before its columns: an alias alone, or the parts of its name.
        options: of ``WITH (…)``.
    """

    named: NamedTable
    qualifiers: tuple[str, ...]
    options: dict[str, str]


def target_of(spark: SparkSession, plan: JavaObject) -> Target | None:
    """What an unresolved table of a plan is; None for what is no Delta table.

    Args:
        plan: ``UnresolvedRelation`` and its like, perhaps below an alias.
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
        return None
    options = dict(plan.options().asCaseSensitiveMap()) if kind == "UnresolvedRelation" else {}
    return Target(
        named, (alias,) if alias is not None else _qualifiers(spark, named, parts), {str(k): str(v) for k, v in options.items()}
    )


def name_parts(spark: SparkSession, plan: JavaObject) -> tuple[str, ...] | None:
    """The identifiers of a name in a plan; None where something else than a name stands."""
    kind = str(plan.nodeName())
    if kind in _NAMED:
        name = plan.nameParts() if kind == "UnresolvedIdentifier" else plan.multipartIdentifier()
        return tuple(str(name.apply(place)) for place in range(name.size()))
    if kind == "PlanWithUnresolvedIdentifier" and plan.identifierExpr().foldable():
        return parts_of(spark, str(plan.identifierExpr().eval(None)))
    return None


def _qualifiers(spark: SparkSession, named: NamedTable, parts: tuple[str, ...]) -> tuple[str, ...]:
    """As Spark qualifies the columns of a table without an alias: catalog, database, name."""
    if named.entry is None:
        return (SESSION_CATALOG, "delta", parts[-1])
    database = named.entry.identifier().database().get()
    return (SESSION_CATALOG, str(database), parts[-1])
