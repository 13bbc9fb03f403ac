"""Views over Delta tables in sessions of Spark Connect.

A temporary view is one of a DataFrame (`tahoe.spark.names.temporary_views`). A permanent one is in the server's catalog: the server
resolves its query by the entries of the tables, which therefore get the tables' columns first, and the client makes its rows
(`tahoe.spark.connect.queries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.settings.warn_once import warn_once
from tahoe.spark.connect.queries import ReferenceRows, rows_named
from tahoe.spark.jvm.translate import to_spark_schema, with_shown_metadata
from tahoe.spark.names.server_catalog import plain_sql, server_relation, set_columns
from tahoe.spark.names.temporary_views import forget_view, rows_of_view
from tahoe.spark.write.fitting import nullable_schema
from tahoe.sql.view_statements import CacheStatement, ViewColumn, ViewStatement


def as_temporary(spark: SparkSession, view: ViewStatement) -> ViewStatement | None:
    """Return the statement that creates a temporary view: this one, or the replacement of the one that ALTER VIEW names; None for a
    permanent view.
    """
    if not view.alters:
        return view if view.scope else None
    altered = server_relation(spark, view.name.identifiers)
    if altered is None or not altered.is_temporary:
        return None
    return replace(view, replaces=True, scope="TEMPORARY" if len(altered.parts) == 1 else "GLOBAL TEMPORARY")


def create_temporary_view(rows: DataFrame, view: ViewStatement) -> None:
    """Create a temporary view of these rows."""
    if view.columns:
        rows = _with_columns(rows, view)
    if view.comment is not None:
        warn_once(
            "comment of a temporary view",
            f"The comment of the temporary view {view.name} is not stored: in a session of Spark Connect, one over Delta tables has none.",
        )
    how = f"create{'OrReplace' if view.replaces else ''}{'Global' if view.scope.startswith('GLOBAL') else ''}TempView"
    getattr(rows, how)(view.name.parts[-1])


def cache_view(rows: DataFrame, statement: CacheStatement) -> None:
    """Create a temporary view of these rows and cache it. Raises `InvalidRequest` for an unknown storage level."""
    name, options = statement.name.parts[-1], ""
    if (level := statement.storage_level) is not None:
        if not isinstance(getattr(StorageLevel, level.upper(), None), StorageLevel):
            raise InvalidRequest(
                f"'{level}' is no storage level. Give one of PySpark's, such as MEMORY_AND_DISK.",
                code="DELTA_ILLEGAL_OPTION",
                option="storageLevel",
            )
        options = f" OPTIONS ('storageLevel' = '{level}')"
    rows.createTempView(name)
    forget_view(rows.sparkSession, (name,))
    plain_sql(rows.sparkSession, f"CACHE {'LAZY ' if statement.is_lazy else ''}TABLE {quote_identifier(name)}{options}")


def prepare_cache(spark: SparkSession, parts: Sequence[str]) -> None:
    """Give a temporary view that will be cached the rows of now.

    Raises `Unsupported` for a Delta table, and for a permanent view over some: they would show the rows of one version for ever.
    """
    entry = server_relation(spark, parts)
    if entry is None or not entry.is_temporary:
        if rows_named(spark, parts, {}) is not None:
            raise _no_cache(".".join(parts))
    elif (rows := rows_of_view(spark, entry)) is not None:
        (rows.createOrReplaceTempView if len(parts) == 1 else rows.createOrReplaceGlobalTempView)(parts[-1])
        forget_view(spark, parts)


def _no_cache(name: str) -> Unsupported:
    return Unsupported(
        f"CACHE TABLE of {name} is not supported in a session of Spark Connect: later statements would not read the cached rows. Cache a "
        f"query: CACHE TABLE a_new_name AS SELECT * FROM {name}.",
        code="TAHOE_SPARK_CONNECT",
        table=name,
    )


def _with_columns(rows: DataFrame, view: ViewStatement) -> DataFrame:
    names = rows.columns
    if len(names) != len(view.columns):
        kind = "NOT_ENOUGH" if len(names) < len(view.columns) else "TOO_MANY"
        raise InvalidRequest(
            f"The view {view.name} lists {len(view.columns)} columns ({', '.join(column.name for column in view.columns)}), and its query "
            f"returns {len(names)} ({', '.join(names)}). List one for each.",
            code=f"CREATE_VIEW_COLUMN_ARITY_MISMATCH.{kind}_DATA_COLUMNS",
            view=str(view.name),
        )
    rows = rows.toDF(*(column.name for column in view.columns))
    return rows.select(*map(_commented, view.columns))


def _commented(column: ViewColumn) -> Column:
    own = sf.col(quote_identifier(column.name))
    return own if column.comment is None else own.alias(column.name, metadata={"comment": column.comment})


def prepare_permanent_view(spark: SparkSession, view: ViewStatement, delta: Sequence[ReferenceRows]) -> None:
    """Give the entries of the query's Delta tables the tables' columns, so that the server can resolve the query.

    Args:
        delta: the references of the query.

    Raises `Unsupported` (`TAHOE_SPARK_CONNECT`) for a table by its path, an older version, or a change data feed: the server knows none.
    """
    for rows in delta:
        reference, table = rows.reference, rows.table
        if reference.name is None:
            raise _not_in_a_view(view, f"{reference.function}(…)")
        if table is None and not reference.changes:
            continue
        if table is None or table.on_server is None or reference.stop != reference.name_stop:
            raise _not_in_a_view(view, view.query[reference.start : reference.stop])
        columns = to_spark_schema(with_shown_metadata(nullable_schema(table.table.schema())))
        set_columns(spark, table.on_server.parts, columns)


def _not_in_a_view(view: ViewStatement, source: str) -> Unsupported:
    return Unsupported(
        f"{source} in the permanent view {view.name} is not supported in a session of Spark Connect: the server's catalog does not know it. "
        "Name a table of the catalog, or create a temporary view: CREATE TEMPORARY VIEW … AS SELECT.",
        code="TAHOE_SPARK_CONNECT",
        view=str(view.name),
    )
