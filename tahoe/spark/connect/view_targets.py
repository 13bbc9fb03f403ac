"""Temporary views as targets of UPDATE, DELETE and MERGE over Spark Connect, as `tahoe.spark.statements.row_targets` in classic sessions.

A view that only selects columns of one Delta table represents that table. The client has its plan:

    createOrReplaceTempView: Project, SubqueryAlias ─► Read        CREATE TEMP VIEW … AS SELECT: WithRelations ─► the text, and one Read
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tahoe.api.table import Table
from tahoe.spark.connect.requests.plan_reads import delta_source, sources
from tahoe.spark.connect.requests.query_versions import request_of
from tahoe.spark.connect.requests.server_source import table_with_options
from tahoe.spark.names.server_catalog import ServerEntry
from tahoe.spark.names.temporary_views import rows_of_view
from tahoe.spark.statements.view_columns import ViewColumns, historical_scan, partial_scan
from tahoe.sql.dialect import Cursor, Token, tokenize
from tahoe.sql.relation_words import begins_alias

_WITH_ALIAS = 2
"""The number of names of a column with another name."""
Columns = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class ViewTarget:
    """The table that a view represents.

    Args:
        rows: of the view.
    """

    table: Table
    view: ViewColumns
    rows: DataFrame

    def check_columns(self, expressions: Sequence[str]) -> None:
        """Raise the errors of a classic session for other columns than the table's, and PySpark's for those that the view lacks."""
        self.view.check_names()
        if len(self.view.columns) < len(self.table.schema().fields) and expressions:
            self.rows.selectExpr(*expressions).schema  # noqa: B018 - analyses the expressions


def target_of_view(spark: SparkSession, entry: ServerEntry, alias: str | None) -> ViewTarget | None:
    """Return the table behind a temporary view; None for a view over no Delta table, and for one that another client created.

    Args:
        alias: of the view in the statement.

    Raises:
        InvalidRequest: ``DELTA_UNEXPECTED_PARTIAL_SCAN`` for a view that is more than a selection of columns,
            ``DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION`` for a view of a specific version.
    """
    rows: Any = rows_of_view(spark, entry)
    if rows is None:
        return None
    name, plan = ".".join(entry.parts), rows._plan.to_proto(spark.client).root
    reads = [source for source, _ in sources(plan, {}, None)]
    request = request_of(reads[0]) if reads else None
    if request is None:
        return None
    table = table_with_options(spark, request.path, reads[0].options)
    if request.version is not None or request.timestamp is not None:
        raise historical_scan(table.url, table.snapshot(request.version, request.timestamp).version)
    columns = None if request.changes is not None else _columns(plan, table.schema().names)
    if columns is None:
        raise partial_scan(name, table.url)
    return ViewTarget(table, ViewColumns(name, table.url, columns), rows if alias is None else rows.alias(alias))


def _columns(relation: Any, names: Sequence[str]) -> Columns | None:
    """Return the columns of a plan, each with its column of the table; None if the plan is more than a selection of columns.

    Args:
        names: of the table's columns.
    """
    kind = relation.WhichOneof("rel_type")
    if kind == "subquery_alias":
        return _columns(relation.subquery_alias.input, names)
    if kind == "read":
        return None if delta_source(relation.read) is None else tuple((name, name) for name in names)
    if kind == "to_df":
        inner = _columns(relation.to_df.input, names)
        return (
            None
            if inner is None
            else tuple((shown, column) for shown, (_, column) in zip(relation.to_df.column_names, inner, strict=True))
        )
    if kind == "project":
        inner = _columns(relation.project.input, names)
        return None if inner is None else _selected(inner, [_named(each) for each in relation.project.expressions])
    if kind != "with_relations" or len(relation.with_relations.references) != 1:
        return None
    reference, query = relation.with_relations.references[0], relation.with_relations.root
    if query.WhichOneof("rel_type") != "sql" or reference.WhichOneof("rel_type") != "subquery_alias":
        return None
    inner, items = _columns(reference, names), _items(query.sql.query, reference.subquery_alias.alias)
    return None if inner is None or items is None else _selected(inner, items)


@dataclass(frozen=True, slots=True)
class _Item:
    """A selected item.

    Args:
        shown: its name; None for all columns.
        column: the column that it is; None for an expression.
    """

    shown: str | None
    column: str | None = None


def _selected(inner: Columns, items: Sequence[_Item]) -> Columns:
    known = {shown.lower(): column for shown, column in inner}
    selected: list[tuple[str, str | None]] = []
    for item in items:
        if item.shown is None:
            selected += inner
        else:
            selected.append((item.shown, None if item.column is None else known.get(item.column.lower())))
    return tuple(selected)


def _named(expression: Any) -> _Item:
    """Return an expression of the client as an item."""
    kind = expression.WhichOneof("expr_type")
    if kind == "unresolved_star":
        return _Item(None)
    if kind == "alias" and len(expression.alias.name) == 1:
        return _Item(expression.alias.name[0], _named(expression.alias.expr).column)
    if kind == "unresolved_attribute":
        return _item(tokenize(expression.unresolved_attribute.unparsed_identifier), "")
    return _item(tokenize(expression.expression_string.expression), "") if kind == "expression_string" else _Item("")


def _items(text: str, relation: str) -> list[_Item] | None:
    """Return the items of ``SELECT … FROM relation``; None for every other query."""
    cursor = Cursor(text, tokenize(text))
    if not cursor.take("SELECT") or cursor.peek().is_word("DISTINCT"):
        return None
    items, depth = list[list[Token]]([[]]), 0
    while not cursor.at_end and not (depth == 0 and cursor.peek().is_word("FROM")):
        token = cursor.next()
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_symbol(","):
            items.append([])
        else:
            items[-1].append(token)
    if not cursor.take("FROM") or cursor.next().name != relation:
        return None
    if begins_alias(cursor.peek()):
        cursor.take("AS")
        relation = cursor.next().name or relation
    return [_item(tokens, relation) for tokens in items] if cursor.at_end else None


def _item(tokens: Sequence[Token], relation: str) -> _Item:
    """Return an item of a SELECT: ``*``, ``t.*``, ``[t.]column``, ``[t.]column [AS] name``, or an expression.

    Args:
        relation: the name that a column may have before it; other names before it are those of structs.
    """
    rest = list(tokens)
    if len(rest) > 1 and rest[1].is_symbol(".") and (rest[0].name or "").lower() == relation.lower():
        rest = rest[2:]
    if len(rest) == 1 and rest[0].is_symbol("*"):
        return _Item(None)
    shown = tokens[-1].name or "".join(token.text for token in tokens) if tokens else ""
    if len(rest) > 1 and rest[-2].is_word("AS"):
        rest = [*rest[:-2], rest[-1]]
    is_column = len(rest) in (1, _WITH_ALIAS) and all(token.name is not None for token in rest)
    return _Item(shown, rest[0].name if is_column else None)
