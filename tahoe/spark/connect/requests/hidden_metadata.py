"""The column `_metadata` of Delta tables in a request to a Spark Connect server.

A Python data source has no hidden columns. So where a plan names `_metadata`, its reads get it as one of their columns, and the plan leaves
it out again: it is dropped above the node that names it, and stars do not mean it. As in Spark, it is known above a filter or an alias of a
table, and not above a choice of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tahoe.base.exceptions import TahoeError
from tahoe.spark.connect.requests.plan_parts import Message, expressions_of, outermost_relations, parts_of_message
from tahoe.spark.connect.requests.plan_reads import delta_source, inputs
from tahoe.spark.connect.requests.query_columns import names_in
from tahoe.spark.connect.requests.query_versions import request_of
from tahoe.spark.connect.requests.server_source import table_with_options
from tahoe.spark.portable.file_metadata import FILE_METADATA, METADATA, has_own_metadata
from tahoe.sql.dialect import tokenize
from tahoe.sql.stars import is_star, without_column

_PASSING = frozenset({"filter", "sort", "limit", "offset", "sample", "subquery_alias", "hint", "repartition", "join"}) | {
    "repartition_by_expression",
    "collect_metrics",
}
"""The nodes above which the column of their input is known."""
_NAMING = _PASSING | {"project", "aggregate", "with_columns"}
"""The nodes that can name the column."""
_OTHER_COLUMNS = f"`(?!{METADATA}$).*`"


def hide_metadata(spark: Any, message: Message) -> None:
    """Provide the column `_metadata` to the nodes of a plan that name it.

    Args:
        spark: the session of the request.
        message: a plan, or a part of one, with reads of Delta tables.
    """
    request = _Request(spark)
    for relation in outermost_relations(message):
        request.provides(relation, is_wanted=False)


@dataclass(frozen=True, slots=True)
class _Request:
    """A request to the server, whose plan is changed in place."""

    spark: Any

    def provides(self, relation: Message, *, is_wanted: bool) -> bool:
        """Provide the column to the nodes below that name it; return whether the relation has it.

        Args:
            is_wanted: whether a node above names it.
        """
        kind = relation.WhichOneof("rel_type")
        if kind is None:
            return False
        node = getattr(relation, kind)
        if kind == "read":
            return is_wanted and self._reads_it(node)
        if kind == "with_relations" and node.root.WhichOneof("rel_type") == "sql":
            self._provide_to_query(node)
            return False
        is_passing = kind in _PASSING and not (kind == "join" and node.using_columns)
        named = [part for part in expressions_of(node) if METADATA in names_in(part).names] if kind in _NAMING else []
        provided = [self.provides(each, is_wanted=bool(named) or (is_wanted and is_passing)) for each in inputs(node)]
        if not any(provided) or kind == "aggregate":
            return False
        for part in named:
            _name_plainly(part)
        if kind == "project":
            for expression in node.expressions:
                _narrow_stars(expression)
            return False
        if is_wanted and is_passing:
            return True
        _drop(relation)
        return False

    def _provide_to_query(self, query: Message) -> None:
        """Provide the column to the text of a query in SQL."""
        sql = query.root.sql
        references = {
            each.subquery_alias.alias: each for each in query.references if each.WhichOneof("rel_type") == "subquery_alias"
        }
        is_named = METADATA in names_in(sql).names and without_column(sql.query, references, METADATA) is not None
        for each in query.references:
            if each.WhichOneof("rel_type") != "subquery_alias":
                self.provides(each, is_wanted=False)
        having = [name for name, each in references.items() if self.provides(each.subquery_alias.input, is_wanted=is_named)]
        if having:
            sql.query = without_column(sql.query, having, METADATA)

    def _reads_it(self, read: Message) -> bool:
        """Let a read have the column, unless it is not of a version of a Delta table, or the table has a column with the name."""
        source = delta_source(read)
        # A relation that the server has returned has the option, and its query hides the column.
        if source is None or FILE_METADATA in source.options or not self._has_metadata(source):
            return False
        source.options[FILE_METADATA] = "true"
        return True

    def _has_metadata(self, source: Message) -> bool:
        try:
            request = request_of(source)
            if request is None or request.changes is not None:
                return False
            snapshot = table_with_options(self.spark, request.path, source.options).snapshot(request.version, request.timestamp)
        except TahoeError:  # the server raises it, or reads a table that this client cannot read
            return True
        return not has_own_metadata(snapshot.schema)


def _name_plainly(message: Message) -> None:
    """Remove the mark of a hidden column from the names in an expression (``DataFrame.metadataColumn``)."""
    for name, part in parts_of_message(message):
        if name == "unresolved_attribute":
            part.ClearField("is_metadata_column")
        _name_plainly(part)


def _narrow_stars(expression: Message) -> None:
    """Let the stars in an expression, or in a list of them, not mean the column, apart from that of ``count(*)``."""
    for name, part in parts_of_message(expression):
        if name == "unresolved_function" and part.function_name.lower() == "count":
            continue
        if name == "expression_string":
            part.expression = _with_narrow_stars(part.expression)
        elif name != "unresolved_star":
            _narrow_stars(part)
            continue
        else:
            qualifier, plan_id = part.unparsed_target.removesuffix("*"), part.plan_id if part.HasField("plan_id") else None
            expression.unresolved_regex.col_name = f"{qualifier}{_OTHER_COLUMNS}"
            if plan_id is not None:
                expression.unresolved_regex.plan_id = plan_id


def _with_narrow_stars(text: str) -> str:
    tokens, parts, end = tokenize(text), [], 0
    for place, token in enumerate(tokens):
        if is_star(tokens, place):
            parts.append(f"{text[end : token.stop]} EXCEPT ({METADATA})")
            end = token.stop
    return "".join([*parts, text[end:]])


def _drop(relation: Message) -> None:
    """Put a node that drops the column above a relation, in its place."""
    inner = type(relation)()
    inner.CopyFrom(relation)
    relation.Clear()
    relation.drop.input.CopyFrom(inner)
    relation.drop.column_names.append(METADATA)
