"""The event time column of a stream: finds the column of `withWatermark` in the plan of the starting query.

EventTimeWatermark(t) ─► … projections, filters ─► StreamingRelation of the table, with the column t
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.records import items
from tahoe.spark.names.settings import is_on
from tahoe.spark.stream.running_query import running_query

_SETTING = "spark.databricks.delta.withEventTimeOrder.enabled"


def event_time_column(spark: SparkSession, source: JavaObject, query: str | None, option: bool | None, table: str) -> str | None:
    """Return the table column of a query's watermark, if the initial snapshot is to be read in its order, otherwise None.

    Args:
        source: the streamed table in the query's plan (`StreamedTable.java`).
        query: the query's id.
        option: the option `withEventTimeOrder`; None if it is not set, and the session's setting applies.
        table: the table's URL, for messages.

    Raises:
        InvalidRequest: ``DELTA_ILLEGAL_OPTION`` if the option is set and the query has no watermark.
        Unsupported: ``TAHOE_OPTION_NOT_SUPPORTED`` if the watermark is not on exactly one unchanged column of the table.
    """
    if not (is_on(spark, _SETTING) if option is None else option):
        return None
    columns: set[str] = set()
    for path in _paths(running_query(spark, query, "read a stream withEventTimeOrder").analyzedPlan(), source):
        marked = [(depth, node) for depth, node in enumerate(path) if str(node.nodeName()) == "EventTimeWatermark"]
        columns |= {_column(path[depth + 1 :], node.eventTime(), table) for depth, node in marked}
        if not marked:
            columns.add("")
    if columns == {""}:
        if option is None:
            return None  # the setting applies to all streams, and without a watermark the order does not matter
        raise InvalidRequest(
            f"The option 'withEventTimeOrder' of a stream of table {table} needs withWatermark, whose column says when rows are late, and "
            "the query has none for it. Call withWatermark on the stream, or leave the option out.",
            code="DELTA_ILLEGAL_OPTION",
            option="withEventTimeOrder",
            table=table,
        )
    if len(columns) != 1:
        raise _refused(
            table, "the query reads the table several times or has several watermarks for it, and not all by one column"
        )
    return columns.pop()


def _paths(node: JavaObject, source: JavaObject, above: tuple[JavaObject, ...] = ()) -> Iterator[tuple[JavaObject, ...]]:
    """Yield the paths of nodes from the top of a plan down to each leaf of the table."""
    path = (*above, node)
    if str(node.nodeName()) == "StreamingRelation" and node.dataSource().equals(source):
        yield path
    for child in items(node.children()):
        yield from _paths(child, source, path)


def _column(below: tuple[JavaObject, ...], marked: JavaObject, table: str) -> str:
    """Return the table column that a watermark marks, following the nodes between the two."""
    for node in below:
        if str(node.nodeName()) == "Project":
            column = next((output for output in items(node.projectList()) if output.exprId().equals(marked.exprId())), None)
            if column is not None and str(column.nodeName()) == "Alias":
                column = column.child()
            if column is None or str(column.nodeName()) != "AttributeReference":
                raise _refused(table, f"the column '{marked.name()}' of withWatermark is computed, and not one of the table")
            marked = column
        elif str(node.nodeName()) not in _KEEPING:
            raise _refused(table, f"withWatermark stands above {node.nodeName()}, out of which rows may come in another order")
    column = next((output for output in items(below[-1].output()) if output.exprId().equals(marked.exprId())), None)
    if column is None:
        raise _refused(table, f"the column '{marked.name()}' of withWatermark is not one of the table")
    return str(column.name())


_KEEPING = frozenset({"EventTimeWatermark", "Filter", "Generate", "StreamingRelation", "SubqueryAlias", "View"})
"""Nodes, besides projections, that return rows in the same batch with unchanged timestamps."""


def _refused(table: str, why: str) -> Unsupported:
    return Unsupported(
        f"'withEventTimeOrder' is not supported for this stream of table {table}: {why}. Call withWatermark right behind spark.readStream, "
        "on a column of the table; or set the option to false.",
        code="TAHOE_OPTION_NOT_SUPPORTED",
        option="withEventTimeOrder",
        table=table,
    )
