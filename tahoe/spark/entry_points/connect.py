"""Spark Connect sessions, which support Delta tables by path: filters reach the portable source, and DDL on named tables is rejected.

The server has Spark's own catalog. There a statement such as CREATE TABLE … USING delta creates an entry, and ALTER TABLE changes it;
neither commits to a table's log, and the table cannot be read by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pyspark.sql.connect.catalog import Catalog
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from tahoe.base.exceptions import Unsupported
from tahoe.expr.tree.predicate import quote_identifier
from tahoe.spark.entry_points.wrapping import is_delta, is_enabled, wrap
from tahoe.sql.catalog_ddl import CatalogDdl, catalog_ddl

_MAY_BE_DDL = re.compile(r"\b(?:alter|comment\s+on|create|replace)\b.*?\btable\b", re.IGNORECASE | re.DOTALL)
_PROVIDER = re.compile(r"^Provider: delta$", re.IGNORECASE | re.MULTILINE)
_ALTERNATIVE = (
    "Create and alter it by its path: df.write.format('delta').save(path), or without Spark tahoe.Table.create(path, schema), "
    "tahoe.Table(path).add_columns(…) and set_properties(…). Read it with spark.read.format('delta').load(path). A classic session has "
    "tables by name."
)


def wrap_connect() -> None:
    """Add Delta support to Spark Connect sessions where it is enabled."""
    wrap(DataFrameReader, "load", _load)
    wrap(SparkSession, "sql", _sql)
    wrap(DataFrameWriter, "saveAsTable", _save_as_table)
    for name in ("create", "replace", "createOrReplace"):
        wrap(DataFrameWriterV2, name, _create)
    wrap(Catalog, "createTable", _create_table)
    wrap(DataStreamWriter, "toTable", _to_table)


def _load(
    original: Callable[..., Any], reader: Any, path: Any = None, format: str | None = None, *rest: Any, **options: Any
) -> Any:
    source = format or reader._format
    if source is not None and source.lower() == "delta":
        reader.option("pushFilters", "true")
    return original(reader, path, format, *rest, **options)


def _sql(original: Callable[..., Any], spark: Any, sqlQuery: str, *rest: Any, **named: Any) -> Any:  # noqa: N803 - PySpark's name
    if isinstance(sqlQuery, str) and _MAY_BE_DDL.search(sqlQuery) is not None and is_enabled(spark):
        for statement in catalog_ddl(sqlQuery):
            if _is_of_delta(original, spark, statement):
                raise _refused(statement.words, str(statement.table))
    return original(spark, sqlQuery, *rest, **named)


def _is_of_delta(sql: Callable[..., Any], spark: Any, statement: CatalogDdl) -> bool:
    if statement.table is not None and statement.table.path is not None:
        return True
    if statement.creates:
        return statement.provider != "hive" and is_delta(spark, statement.provider)
    if statement.table is None or not spark.catalog.tableExists(str(statement.table)):
        return False
    *database, name = statement.table.parts
    inside = f"IN {'.'.join(map(quote_identifier, database))} " if database else ""
    tables = sql(spark, f"SHOW TABLE EXTENDED {inside}LIKE '{name}'").collect()
    return any(_PROVIDER.search(str(row["information"])) is not None for row in tables)


def _save_as_table(
    original: Callable[..., None], writer: Any, name: str, format: str | None = None, *rest: Any, **options: Any
) -> None:
    if is_delta(writer._spark, format or writer._write.source):
        raise _refused("saveAsTable", name)
    original(writer, name, format, *rest, **options)


def _create(original: Callable[..., None], writer: Any) -> None:
    if is_delta(writer._spark, writer._write.provider):
        raise _refused("writeTo", writer._table_name)
    original(writer)


def _create_table(
    original: Callable[..., Any],
    catalog: Any,
    tableName: str,  # noqa: N803 - PySpark's name
    path: str | None = None,
    source: str | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    if is_delta(catalog._sparkSession, source):
        raise _refused("createTable", tableName)
    return original(catalog, tableName, path, source, *rest, **options)


def _to_table(
    original: Callable[..., Any],
    writer: Any,
    tableName: str,  # noqa: N803 - PySpark's name
    format: str | None = None,
    *rest: Any,
    **options: Any,
) -> Any:
    if is_delta(writer._session, format or writer._write_proto.format or None):
        raise _refused("toTable", tableName)
    return original(writer, tableName, format, *rest, **options)


def _refused(operation: str, table: str) -> Unsupported:
    return Unsupported(
        f"{operation} of the Delta table {table} is not supported in a session of Spark Connect: it would change the server's catalog, and "
        f"commit nothing to a table. Nothing was changed. {_ALTERNATIVE}",
        code="DELTA_OPERATION_NOT_ALLOWED",
        operation=operation,
        table=table,
    )
