"""Creates a table by path or by name in sessions of Spark Connect: the client commits, and the server's catalog gets an entry.

A managed table gets its entry first, since Spark creates such entries only for empty folders. If the commit then fails, the entry is removed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest
from tahoe.ops.write.writer import WriterOptions
from tahoe.protocol.actions import AddFile
from tahoe.spark.commands.create import Rows
from tahoe.spark.commands.named import Creation, commit_new, commit_table, make_by_path, require_table, without_reserved
from tahoe.spark.connect.remote_rows import RemoteFiles
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import from_spark_schema, to_spark_schema, with_shown_metadata
from tahoe.spark.names.entries import path_of
from tahoe.spark.names.error_names import CREATIONS_BY_NAME, with_classes
from tahoe.spark.names.server_catalog import (
    ServerEntry,
    add_entry,
    full_parts,
    managed_entry,
    managed_location,
    plain_sql,
    server_entry,
)
from tahoe.spark.write.fitting import nullable_schema
from tahoe.sql.table_name import TableName
from tahoe.store.location import table_url
from tahoe.txn.prepare import future_config

if TYPE_CHECKING:
    from tahoe.txn.transaction import Transaction


def make_table(spark: SparkSession, creation: Creation) -> Table | None:
    """Create the table and its catalog entry; return the table, or None if an existing one stays.

    Raises: the errors of `tahoe.spark.commands.named.make_table`.
    """
    creation = without_reserved(replace(creation, write=written))
    with with_classes(CREATIONS_BY_NAME):
        path = path_of(creation.name)
        if path is not None:
            return make_by_path(spark, creation, path)
        entry = server_entry(spark, creation.name)
        return _new(spark, creation) if entry is None else _existing(spark, creation, entry)


def written(transaction: Transaction, rows: Rows) -> list[AddFile]:
    """Write the first rows of a table on the executors."""
    options = WriterOptions(rows.files.max_records_per_file, rows.files.compression)
    return RemoteFiles(transaction, future_config(transaction), options).new_files(rows.data, rows.files.optimized)


def _new(spark: SparkSession, creation: Creation) -> Table:
    name = ".".join(creation.name)
    if creation.mode == "replace":
        plain_sql(spark, f"DESCRIBE TABLE {TableName(None, creation.name)}")  # Spark raises its own error
    parts = full_parts(spark, creation.name)
    if creation.location is not None:
        table = table_at(spark, creation.location, creation.options)
        commit_new(spark, creation, table, name, managed=False)
        shown = to_spark_schema(with_shown_metadata(nullable_schema(table.schema())))
        add_entry(spark, parts, shown, creation.location, creation.definition.comment)
        return table
    table = table_at(spark, managed_location(spark, parts), creation.options)
    query = None if creation.query is None else creation.query()
    columns = creation.definition.schema if query is None else from_spark_schema(query.schema)
    if query is not None:
        creation = replace(creation, query=lambda: query)
    shown = to_spark_schema(with_shown_metadata(nullable_schema(columns)))
    with managed_entry(spark, parts, shown, creation.definition.comment):
        commit_new(spark, creation, table, name, managed=True)
    return table


def _existing(spark: SparkSession, creation: Creation, entry: ServerEntry) -> Table | None:
    """Handle an existing entry: reject it, leave it or replace its table."""
    name = ".".join(creation.name)
    if creation.mode == "create":
        add_entry(spark, entry.parts, SparkStruct().add("id", IntegerType()), None)  # Spark raises its own error
    if creation.mode == "createIfNotExists":
        return None
    if not entry.is_delta:
        raise InvalidRequest(
            f"{name} is a view, or a table of another format than Delta, which a Delta table does not replace. Drop it first.",
            code="DELTA_NOT_A_DELTA_TABLE",
            table=name,
        )
    if creation.location is not None and table_url(creation.location) != table_url(entry.location):
        raise InvalidRequest(
            f"The location of table {name} is '{entry.location}', and '{creation.location}' was given. Leave the location out, or drop the "
            "table first.",
            code="DELTA_TABLE_LOCATION_MISMATCH",
            table=name,
        )
    table = table_at(spark, entry.location, creation.options)
    require_table(creation, name, table)
    commit_table(spark, creation, table, entry.is_managed)
    return table
