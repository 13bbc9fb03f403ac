"""The statements of Spark's parsers that Tahoe knows, and an error for any other one on a Delta table.

    a handler of `tahoe.spark.statements`   turns the statement into a command, or rejects it
    `LEFT_TO_SPARK`                         Spark executes it, also on Delta tables
    every other statement                   an error if it names a Delta table: Spark would change files or the catalog without a commit

A field that Spark adds to a statement is a new clause, which a handler would ignore. So the fields are listed as well, and a value in an
unlisted one is an error. Queries are not statements, and are never checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j import java_gateway
from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import table_named
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.targets import UnresolvedName, target_of
from tahoe.spark.versions.members import field_names

__all__ = ["FIELDS", "LEFT_TO_SPARK", "handler_of"]

Statement = Callable[[SparkSession, JavaObject], Command | None]

FIELDS: Mapping[str, str] = {
    "AddCheckConstraint": "child checkConstraint",
    "AddColumns": "table columnsToAdd",
    "AlterColumns": "table specs fromCommentOn",
    "AlterTableClusterBy": "table clusterBySpec",
    "CommentOnTable": "table comment",
    "CreateTable": "name columns partitioning tableSpec ignoreIfExists",
    "CreateTableAsSelect": "name partitioning query tableSpec writeOptions ignoreIfExists isAnalyzed",
    "CreateTableLike": "name source location provider serdeInfo properties ifNotExists",
    "CreateTableLikeCommand": "targetTable sourceTable fileFormat provider properties ifNotExists",
    "CreateTempViewUsing": "tableIdent userSpecifiedSchema replace global provider options",
    "DeleteFromTable": "table condition",
    "DescribeColumn": "relation column isExtended output",
    "DescribeRelation": "relation partitionSpec isExtended output",
    "DropColumns": "table columnsToDrop ifExists",
    "DropConstraint": "table name ifExists cascade",
    "InsertIntoDir": "isLocal storage provider child overwrite",
    "InsertIntoStatement": "table partitionSpec userSpecifiedCols query overwrite ifPartitionNotExists byName replaceCriteriaOpt "
    "withSchemaEvolution",
    "MergeIntoTable": "targetTable sourceTable mergeCondition matchedActions notMatchedActions notMatchedBySourceActions "
    "withSchemaEvolution",
    "OverwriteByExpression": "table deleteExpr query writeOptions isByName write analyzedQuery withSchemaEvolution",
    "RefreshTable": "child",
    "RenameColumn": "table column newName",
    "ReplaceColumns": "table columnsToAdd",
    "ReplaceTable": "name columns partitioning tableSpec orCreate",
    "ReplaceTableAsSelect": "name partitioning query tableSpec writeOptions orCreate isAnalyzed",
    "SetTableLocation": "table partitionSpec location",
    "SetTableProperties": "table properties",
    "ShowColumns": "child namespace output",
    "ShowCreateTable": "child asSerde output",
    "ShowPartitions": "table pattern output",
    "ShowTableProperties": "table propertyKey output",
    "TruncateTable": "table",
    "UnresolvedInsert": "table partitionSpec userSpecifiedCols query overwrite ifPartitionNotExists byName replaceCriteriaOpt "
    "withSchemaEvolution",
    "UnsetTableProperties": "table propertyKeys ifExists",
    "UpdateTable": "table assignments condition",
}
"""The fields of the statements that handlers support. A statement that is rejected on every Delta table needs none."""

_FUNCTIONS = """
    CreateFunction CreateFunctionCommand CreateUserDefinedFunction DescribeFunction DropFunction DropFunctionCommand RefreshFunction
"""
_NAMESPACES = """
    AnalyzeTables CommentOnNamespace CreateNamespace DescribeNamespace DropNamespace SetCatalogAndNamespace SetCatalogCommand
    SetNamespaceCollationCommand SetNamespaceCommand SetNamespaceLocation SetNamespaceProperties SetPathCommand ShowCatalogsCommand
    ShowCurrentNamespaceCommand ShowFunctions ShowNamespaces ShowNamespacesCommand ShowProceduresCommand ShowTables ShowTablesExtended
    ShowTablesJsonCommand ShowViews UnsetNamespacePropertiesCommand
"""
_SESSION = """
    AddArchivesCommand AddFilesCommand AddJarsCommand ClearCacheCommand ListArchivesCommand ListFilesCommand ListJarsCommand RefreshResource
    ResetCommand SetCommand ShowCollationsCommand
"""
_SCRIPTS = "CloseCursor CreateVariable DeclareCursor DropVariable FetchCursor OpenCursor SetVariable UnresolvedExecuteImmediate"
_VIEWS = """
    AlterViewAs AlterViewSchemaBinding CacheTableAsSelect CreateMetricViewCommand CreateView CreateViewCommand DropView
    SetViewProperties UnsetViewProperties
"""
_PIPELINES = """
    CreateFlowCommand CreateMaterializedViewAsSelect CreateStreamingTable CreateStreamingTableAsSelect CreateStreamingTableAutoCdc
"""
# These name a table, but change only the catalog's entry, or only read.
_TABLES = "CacheTable DescribeQueryCommand DescribeRelationJsonCommand DropTable ExplainCommand RenameTable UncacheTable"

LEFT_TO_SPARK = frozenset(" ".join((_FUNCTIONS, _NAMESPACES, _SESSION, _SCRIPTS, _VIEWS, _PIPELINES, _TABLES)).split())
"""Statements that Spark executes, by the names of their nodes."""

_STATEMENTS = ("catalyst.plans.logical.Command", "catalyst.plans.logical.ParsedStatement", "catalyst.plans.logical.InsertIntoDir")
_OPEN_NAMES = ("UnresolvedTable", "UnresolvedTableOrView", "UnresolvedIdentifier")
"""Names that only statements have, at any depth: the tables that the statements act on."""

_UNLISTED: dict[str, tuple[str, ...] | None] = {}
"""The unlisted fields by the name of a node's class, for this process: all fields of an unlisted statement; None for a query."""


def handler_of(handlers: Mapping[str, Statement], jvm: Jvm, kind: str, plan: JavaObject) -> Statement | None:
    """Return the handler of a plan; None for a query, and for a statement that Spark executes.

    Args:
        handlers: by node name.
        kind: the name of the plan's node.
    """
    if kind not in _UNLISTED:
        _UNLISTED[kind] = _unlisted(handlers, jvm, kind, plan)
    fields = _UNLISTED[kind]
    if fields is None:
        return None
    handler = handlers.get(kind)
    if not fields:
        return handler
    clauses = [name for name in fields if not _is_empty(jvm, getattr(plan, name)())]
    known = handler is not None or kind in LEFT_TO_SPARK
    if known and not clauses:
        return handler
    return lambda spark, statement: _refuse(spark, statement, kind, clauses if known else [])


def _unlisted(handlers: Mapping[str, Statement], jvm: Jvm, kind: str, plan: JavaObject) -> tuple[str, ...] | None:
    if kind in LEFT_TO_SPARK:
        return ()
    if kind in handlers:
        listed = FIELDS.get(kind, "").split()
        return tuple(name for name in field_names(plan) if name not in listed) if listed else ()
    if any(is_instance_of(jvm.gateway, plan, f"org.apache.spark.sql.{name}") for name in _STATEMENTS):
        return field_names(plan)
    return None


def _is_empty(jvm: Jvm, value: Any) -> bool:
    """Return whether a field has the value of an omitted clause."""
    if not isinstance(value, java_gateway.JavaObject):
        return value in (None, False, "", 0)
    kinds = ("scala.Option", "scala.collection.Iterable")
    return any(is_instance_of(jvm.gateway, value, kind) for kind in kinds) and bool(value.isEmpty())


def _refuse(spark: SparkSession, plan: JavaObject, kind: str, clauses: list[str]) -> Command | None:
    """Return None if the statement names no Delta table. Raises `Unsupported`; `UnresolvedName` if one of its names is not known yet."""
    unknown: UnresolvedName | None = None
    for name in _named(spark, Jvm.of(spark), plan):
        try:
            table = name(spark)
        except UnresolvedName as error:
            unknown = error
            continue
        if table is None:
            continue
        words = _words(kind)
        what = f"the statement {words}" if not clauses else f"{words} with {', '.join(clauses)}"
        raise Unsupported(
            f"Operation not allowed: {what} is not supported for Delta tables: {table}. Tahoe does not know what it would change in the "
            "table's log; nothing was changed. Write the statement in another way, or run it on a table of another format.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            operation=words,
            table=table,
        )
    if unknown is not None:
        raise unknown
    return None


def _named(spark: SparkSession, jvm: Jvm, plan: JavaObject) -> Iterator[Callable[[SparkSession], str | None]]:
    """Yield the tables that a statement names outside its queries, each as a function that returns the name of a Delta table, or None."""

    def of_node(node: JavaObject) -> Callable[[SparkSession], str | None]:
        return lambda session: _delta_name(session, node)

    for value in items(plan.productIterator().toSeq()):
        for part in _parts(jvm, value):
            if is_instance_of(jvm.gateway, part, "org.apache.spark.sql.catalyst.TableIdentifier"):
                names = tuple(str(one) for one in items(part.nameParts()))
                yield lambda session, names=names: _delta_named(session, names)  # type: ignore[misc]
            elif is_instance_of(jvm.gateway, part, "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"):
                yield of_node(part)
                yield from (of_node(one) for one in _open_names(part))


def _delta_name(spark: SparkSession, node: JavaObject) -> str | None:
    target = target_of(spark, node)
    return None if target is None else str(target.named.name)


def _delta_named(spark: SparkSession, names: tuple[str, ...]) -> str | None:
    named = table_named(spark, names)
    return None if named is None else str(named.name)


def _parts(jvm: Jvm, value: Any) -> Iterator[JavaObject]:
    """Yield a field's value, or the values in it."""
    if not isinstance(value, java_gateway.JavaObject):
        return
    if is_instance_of(jvm.gateway, value, "scala.collection.Seq"):
        yield from (one for one in items(value) if isinstance(one, java_gateway.JavaObject))
    elif is_instance_of(jvm.gateway, value, "scala.Option"):
        yield from _parts(jvm, value.get()) if value.isDefined() else ()
    else:
        yield value


def _open_names(plan: JavaObject) -> Iterator[JavaObject]:
    for child in items(plan.children()):
        if str(child.nodeName()) in _OPEN_NAMES:
            yield child
        yield from _open_names(child)


def _words(kind: str) -> str:
    """Return a node's name as SQL: ``CREATE INDEX`` for ``CreateIndex``."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", re.sub(r"(Command|Statement)$", "", kind))).upper()
