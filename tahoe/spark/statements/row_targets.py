"""Temporary views as targets of UPDATE, DELETE and MERGE: a view that only selects columns of one Delta table represents that table.

CREATE TEMP VIEW v AS SELECT * FROM t        df.createOrReplaceTempView("v")
analyzed view: View ─► Project, SubqueryAlias ─► the table's own plan, whose columns are the table's ─► scan
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession

from tahoe.base.exceptions import InvalidRequest
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.commands.row_command import CommandTarget
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.names.entries import NamedTable, entry_of
from tahoe.spark.scan.file_index import FileIndex
from tahoe.spark.scan.relation import named, shape_of
from tahoe.spark.scan.renewal import index_of, refuse_other_columns, scan_of
from tahoe.spark.statements.targets import Target, name_parts, target_of
from tahoe.spark.statements.view_columns import ViewColumns, historical_scan, partial_scan
from tahoe.sql.table_name import TableName

_TRANSPARENT = ("SubqueryAlias", "View", "Project", "Named")
_MOST_PARTS = 2
_GLOBAL = "global_temp"


@dataclass(frozen=True, slots=True)
class RowTarget(Target):
    """The table whose rows a statement changes, named directly or by a temporary view.

    Args:
        view: the view that names the table; None if the statement names the table itself.
    """

    view: ViewColumns | None = None

    def command_target(self, spark: SparkSession) -> CommandTarget:
        """Return the table, its qualifiers and options for a command."""
        return CommandTarget(spark, self.named.table, self.qualifiers, self.options)

    def check_columns(self, spark: SparkSession, expressions: Sequence[Column], assigned: Sequence[str] = ()) -> None:
        """Reject a view with anything but columns of the table under their own names, and expressions with other columns.

        Args:
            expressions: the conditions and values of the statement.
            assigned: the assigned columns and fields.

        Raises:
            InvalidRequest: ``DELTA_CANNOT_RESOLVE_COLUMN`` for such a view.
            AnalysisException: PySpark's own, for a column that the view lacks.
        """
        if self.view is None:
            return
        self.view.check_names()
        snapshot = self.named.table.snapshot()
        if len(self.view.names) < len(snapshot.schema.fields):
            seen = named(shape_of(spark, snapshot).select(*map(quote_identifier, self.view.names)), self.qualifiers)
            seen.select(*expressions, *assigned).schema  # noqa: B018 - analyses the expressions

    def check_all_columns(self) -> None:
        """Check the view of a MERGE (`ViewColumns.check_all`)."""
        if self.view is not None:
            self.view.check_all(self.named.table.schema().names)


def row_target_of(spark: SparkSession, plan: JavaObject) -> RowTarget | None:
    """Return the Delta table whose rows a statement changes; None if the plan is neither one nor a temporary view of one.

    Args:
        plan: the plan for `target_of`.

    Raises:
        UnresolvedName: raised by `target_of`.
        InvalidRequest: ``DELTA_UNEXPECTED_PARTIAL_SCAN`` for a view that is more than a selection of columns,
            ``DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION`` for a view of a specific version.
    """
    target = target_of(spark, plan)
    if target is not None:
        return RowTarget(target.named, target.qualifiers, target.options)
    alias = None
    if str(plan.nodeName()) == "SubqueryAlias":
        alias, plan = str(plan.alias()), plan.child()
    parts = name_parts(spark, plan)
    if parts is None:
        return None
    is_temporary = _is_temporary_view(spark, parts)
    if not is_temporary and not _is_stored_view(spark, parts):
        return None
    view = Jvm.of(spark).frame(spark._jsparkSession, plan, spark)._jdf.queryExecution().analyzed()
    name = ".".join(parts)
    if not is_temporary:
        _refuse_stored_view(view, name)
        return None
    return _of_temporary_view(view, name, parts if alias is None else (alias,))


def _is_temporary_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    catalog = spark._jsparkSession.sessionState().catalog()
    if len(parts) == 1:
        return bool(catalog.getTempView(parts[0]).isDefined())
    return len(parts) == _MOST_PARTS and parts[0].lower() == _GLOBAL and bool(catalog.getGlobalTempView(parts[1]).isDefined())


def _is_stored_view(spark: SparkSession, parts: Sequence[str]) -> bool:
    entry = entry_of(spark, parts)
    return entry is not None and str(entry.tableType().name()) == "VIEW"


def _refuse_stored_view(plan: JavaObject, name: str) -> None:
    """Reject a catalog view that reads a Delta table, as delta-spark does; Spark rejects other views."""
    if any(index_of(leaf) is not None for leaf in items(plan.collectLeaves())):
        raise InvalidRequest(
            f"UPDATE, DELETE and MERGE only support Delta sources, and {name} is a view of the catalog. Change the rows of the table itself, "
            "or through a temporary view.",
            code="DELTA_UNSUPPORTED_SOURCE",
            table=name,
        )


def _of_temporary_view(plan: JavaObject, name: str, qualifiers: tuple[str, ...]) -> RowTarget | None:
    leaves = [(leaf, index_of(leaf)) for leaf in items(plan.collectLeaves())]
    index = next((index for _, index in leaves if index is not None), None)
    if index is None:
        _refuse_older_version(leaf for leaf, _ in leaves)
        return None
    assert index.follows is not None
    nodes = _nodes_above_the_table(plan, index)
    if nodes is None or any(str(node.nodeName()) not in _TRANSPARENT for node in nodes):
        raise partial_scan(name, index.follows.url)
    refuse_other_columns(index.snapshot, index.follows.snapshot())
    view = ViewColumns(name, index.follows.url, _view_columns(plan, nodes, index))
    return RowTarget(NamedTable(index.follows, TableName(None, tuple(name.split(".")))), qualifiers, {}, view)


def _refuse_older_version(leaves: Iterable[JavaObject]) -> None:
    """Reject a view of a specific version: only rows of the newest version can be changed."""
    older = next((index for leaf in leaves if (index := scan_of(leaf)) is not None), None)
    if older is not None:
        raise historical_scan(older.snapshot.store.url, older.snapshot.version)


def _nodes_above_the_table(plan: JavaObject, index: FileIndex) -> list[JavaObject] | None:
    """Return the nodes from the view down to the plan that Tahoe created for the table, excluding it; None for a plan with branches."""
    chain = [plan]
    while not chain[-1].children().isEmpty():
        if chain[-1].children().size() > 1:
            return None
        chain.append(chain[-1].children().head())
    columns = index.snapshot.schema.names
    table = max(depth for depth, node in enumerate(chain) if [str(column.name()) for column in items(node.output())] == columns)
    return chain[:table]


def _view_columns(plan: JavaObject, nodes: Sequence[JavaObject], index: FileIndex) -> tuple[tuple[str, str | None], ...]:
    """Return the columns of the view, each with its table column."""
    table = nodes[-1].children().head() if nodes else plan
    names = {_id(column): str(column.name()) for column in items(table.output())}
    for node in reversed(nodes):
        if str(node.nodeName()) == "Project":
            for expression in items(node.projectList()):
                name = names.get(_id(_without_cast(expression)))
                if name is not None:
                    names[_id(expression)] = name
    return tuple((str(column.name()), names.get(_id(column))) for column in items(plan.output()))


def _without_cast(expression: JavaObject) -> JavaObject:
    """Return the attribute below an alias, and below the casts to its own type that Spark adds to SQL views."""
    if str(expression.nodeName()) == "Alias":
        expression = expression.child()
    while str(expression.nodeName()) == "Cast" and expression.dataType().equals(expression.child().dataType()):
        expression = expression.child()
    return expression


def _id(expression: JavaObject) -> int | None:
    """Return the id of an attribute or an alias in a plan; None for other expressions."""
    if str(expression.nodeName()) not in ("Alias", "AttributeReference"):
        return None
    return int(expression.exprId().id())
