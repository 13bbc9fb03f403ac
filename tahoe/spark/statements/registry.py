"""The statements on Delta tables, and an error for any other statement of Spark's parsers on a Delta table.

    `STATEMENTS_OF_DELTA`    only Delta has them: parsed here, from text
    `SPARK_STATEMENTS`       Spark's parser supports them: a plan becomes a command, or is rejected
    `LEFT_TO_SPARK`          Spark executes them, also on Delta tables
    every other statement    an error if it names a Delta table: Spark would change files or the catalog without a commit

A field that Spark adds to a statement is a new clause, which Tahoe would ignore. So each record lists the fields as well, and a value in an
unlisted one is an error. Queries are not statements, and are never checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from py4j import java_gateway
from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from tahoe.base.exceptions import Unsupported
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import table_named
from tahoe.spark.statements.column_changes import COLUMN_STATEMENTS
from tahoe.spark.statements.command import Command
from tahoe.spark.statements.create_like import LIKE_STATEMENTS
from tahoe.spark.statements.create_table import CREATION_STATEMENTS
from tahoe.spark.statements.delta_alter_table import ALTER_STATEMENTS
from tahoe.spark.statements.delta_copies import COPY_STATEMENTS
from tahoe.spark.statements.delta_maintenance import MAINTENANCE_STATEMENTS
from tahoe.spark.statements.describe import DESCRIBING_STATEMENTS, DETAIL_STATEMENTS
from tahoe.spark.statements.rejected import REJECTED_STATEMENTS
from tahoe.spark.statements.row_statements import ROW_STATEMENTS
from tahoe.spark.statements.statement_types import DeltaStatement, SparkStatement
from tahoe.spark.statements.table_properties import PROPERTY_STATEMENTS
from tahoe.spark.statements.targets import UnresolvedName, target_of
from tahoe.spark.statements.whole_table import TABLE_STATEMENTS
from tahoe.spark.versions.members import field_names
from tahoe.sql.dialect import Cursor, tokenize

STATEMENTS_OF_DELTA = (*ALTER_STATEMENTS, *COPY_STATEMENTS, *DETAIL_STATEMENTS, *MAINTENANCE_STATEMENTS)
SPARK_STATEMENTS: Mapping[str, SparkStatement] = {
    statement.node: statement
    for statement in (
        *ROW_STATEMENTS,
        *COLUMN_STATEMENTS,
        *PROPERTY_STATEMENTS,
        *CREATION_STATEMENTS,
        *TABLE_STATEMENTS,
        *DESCRIBING_STATEMENTS,
        *REJECTED_STATEMENTS,
        *LIKE_STATEMENTS,
    )
}
"""The statements of Spark's parser that are commands on Delta tables, or rejected, by the names of their nodes."""

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


# -- statements of Delta -----------------------------------------------------------------------------------------------------


def parse(text: str) -> DeltaStatement | None:
    """Parse a statement that only Delta has; return None for any other text, which Spark parses.

    Raises `SqlSyntaxError`: the text begins like a statement of Delta and continues with invalid syntax.
    """
    kinds = _kinds(text)
    cursor = Cursor(text, tokenize(text) if kinds else ())
    for kind in kinds if cursor.tokens else ():
        cursor.place = 0
        statement = kind.parse(cursor)
        if statement is not None:
            return statement
    return None


def may_be_of_delta(text: str) -> bool:
    """Whether a text begins with the first word of a statement that only Delta has."""
    return bool(_kinds(text))


def _kinds(text: str) -> Sequence[type[DeltaStatement]]:
    first_word = _FIRST_WORD.match(text)
    return () if first_word is None else _BY_FIRST_WORD.get(first_word[1].upper(), ())


_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)", re.DOTALL)


def _by_first_word() -> Mapping[str, list[type[DeltaStatement]]]:
    kinds: dict[str, list[type[DeltaStatement]]] = {}
    for kind in STATEMENTS_OF_DELTA:
        for word in kind.first_words or (kind.words.split()[0],):
            kinds.setdefault(word, []).append(kind)
    return kinds


_BY_FIRST_WORD = _by_first_word()


# -- statements of Spark's parser --------------------------------------------------------------------------------------------


def spark_statement(jvm: Jvm, node: str, plan: JavaObject) -> SparkStatement | None:
    """Return the statement of a plan; None for a query, and for a statement that Spark executes.

    Args:
        node: the name of the plan's node; a case object's ends with "$".
    """
    node = node.removesuffix("$")
    if node not in _UNLISTED:
        _UNLISTED[node] = _unlisted_fields(jvm, node, plan)
    fields = _UNLISTED[node]
    if fields is None:
        return None
    statement = SPARK_STATEMENTS.get(node)
    if not fields:
        return statement
    clauses = [name for name in fields if not _is_empty(jvm, getattr(plan, name)())]
    is_listed = statement is not None or node in LEFT_TO_SPARK
    if is_listed and not clauses:
        return statement
    return SparkStatement(_words(node), node, None, partial(_refuse, clauses if is_listed else []))


def _unlisted_fields(jvm: Jvm, node: str, plan: JavaObject) -> tuple[str, ...] | None:
    if node in LEFT_TO_SPARK:
        return ()
    statement = SPARK_STATEMENTS.get(node)
    if statement is not None:
        fields = None if statement.fields is None else statement.fields.split()
        return () if fields is None else tuple(name for name in field_names(plan) if name not in fields)
    if any(is_instance_of(jvm.gateway, plan, f"org.apache.spark.sql.{name}") for name in _STATEMENTS):
        return field_names(plan)
    return None


def _is_empty(jvm: Jvm, value: object) -> bool:
    """Return whether a field has the value of an omitted clause."""
    if not isinstance(value, java_gateway.JavaObject):
        return value in (None, False, "", 0)
    kinds = ("scala.Option", "scala.collection.Iterable")
    return any(is_instance_of(jvm.gateway, value, kind) for kind in kinds) and bool(value.isEmpty())


def _refuse(clauses: list[str], statement: SparkStatement, spark: SparkSession, plan: JavaObject) -> Command | None:
    """Return None if the statement names no Delta table. Raises `Unsupported`; `UnresolvedName` if one of its names is not known yet."""
    unresolved: UnresolvedName | None = None
    for name in _named(spark, Jvm.of(spark), plan):
        try:
            table = name(spark)
        except UnresolvedName as error:
            unresolved = error
            continue
        if table is None:
            continue
        operation = f"the statement {statement.words}" if not clauses else f"{statement.words} with {', '.join(clauses)}"
        raise Unsupported(
            f"Operation not allowed: {operation} is not supported for Delta tables: {table}. Tahoe does not know what it would change in the "
            "table's log; nothing was changed. Write the statement in another way, or run it on a table of another format.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            operation=statement.words,
            table=table,
        )
    if unresolved is not None:
        raise unresolved
    return None


def _named(spark: SparkSession, jvm: Jvm, plan: JavaObject) -> Iterator[Callable[[SparkSession], str | None]]:
    """Yield the tables that a statement names outside its queries, each as a function that returns the name of a Delta table, or None."""

    def of_node(node: JavaObject) -> Callable[[SparkSession], str | None]:
        return lambda session: _delta_name(session, node)

    for value in items(plan.productIterator().toSeq()):
        for part in _parts(jvm, value):
            if is_instance_of(jvm.gateway, part, "org.apache.spark.sql.catalyst.TableIdentifier"):
                names = tuple(str(name) for name in items(part.nameParts()))
                yield lambda session, names=names: _delta_named(session, names)  # type: ignore[misc]
            elif is_instance_of(jvm.gateway, part, "org.apache.spark.sql.catalyst.plans.logical.LogicalPlan"):
                yield of_node(part)
                yield from map(of_node, _open_names(part))


def _delta_name(spark: SparkSession, node: JavaObject) -> str | None:
    target = target_of(spark, node)
    return None if target is None else str(target.named.name)


def _delta_named(spark: SparkSession, names: tuple[str, ...]) -> str | None:
    named = table_named(spark, names)
    return None if named is None else str(named.name)


def _parts(jvm: Jvm, value: object) -> Iterator[JavaObject]:
    """Yield a field's value, or the values in it."""
    if not isinstance(value, java_gateway.JavaObject):
        return
    if is_instance_of(jvm.gateway, value, "scala.collection.Seq"):
        yield from (item for item in items(value) if isinstance(item, java_gateway.JavaObject))
    elif is_instance_of(jvm.gateway, value, "scala.Option"):
        yield from _parts(jvm, value.get()) if value.isDefined() else ()
    else:
        yield value


def _open_names(plan: JavaObject) -> Iterator[JavaObject]:
    for child in items(plan.children()):
        if str(child.nodeName()) in _OPEN_NAMES:
            yield child
        yield from _open_names(child)


def _words(node: str) -> str:
    """Return a node's name as SQL: ``CREATE INDEX`` for ``CreateIndex``."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", re.sub(r"(Command|Statement)$", "", node))).upper()
