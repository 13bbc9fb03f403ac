"""PySpark's methods in sessions of Spark Connect: reads use the portable source, which the server gets; writes and statements run from the
client (`tahoe.spark.connect`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql.catalog import Table as CatalogTable
from pyspark.sql.connect.catalog import Catalog
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.column import Column
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.expressions import ColumnReference
from pyspark.sql.connect.readwriter import DataFrameReader, DataFrameWriter, DataFrameWriterV2
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.streaming.readwriter import DataStreamReader

from tahoe.schema.types import StructType
from tahoe.settings.dataframe_options import FEED_RANGE
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation
from tahoe.spark.commands.saved import Save
from tahoe.spark.commands.upkeep import compact_after
from tahoe.spark.commands.write_options import (
    WriterCall,
    insert_request,
    partitioned_by_expression,
    refuse_buckets,
    refuse_matching,
)
from tahoe.spark.connect.conditions import as_sql, text_of
from tahoe.spark.connect.constants import in_utc
from tahoe.spark.connect.creation import make_table
from tahoe.spark.connect.definitions import listed_columns
from tahoe.spark.connect.insert import insert
from tahoe.spark.connect.merge import RemoteMergeBuilder
from tahoe.spark.connect.queries import changes_of, rows_named
from tahoe.spark.connect.requests import client_requests
from tahoe.spark.connect.requests.plan_reads import reads_delta
from tahoe.spark.connect.requests.server_errors import handle_error
from tahoe.spark.connect.requests.server_source import serve, table_with_options, without_secrets
from tahoe.spark.connect.server_store import server_store
from tahoe.spark.connect.statements import run_sql
from tahoe.spark.connect.views import prepare_cache
from tahoe.spark.connect.writes_by_name import existing, insert_into, save_as_table, save_into
from tahoe.spark.entry_points.catalog_methods import requested_creation, table_exists
from tahoe.spark.entry_points.catalog_statements import wrap_statements
from tahoe.spark.entry_points.connect_input_files import wrap_input_files
from tahoe.spark.entry_points.connect_streams import wrap_streams
from tahoe.spark.entry_points.connect_subqueries import views_of_subqueries
from tahoe.spark.entry_points.merging import wrap_merge_into
from tahoe.spark.entry_points.reading import single_path
from tahoe.spark.entry_points.wrapping import bound_arguments, enabled_table, is_delta, is_enabled, mark_enabled, wrap, wrap_newer
from tahoe.spark.entry_points.writing import configure
from tahoe.spark.jvm.storage import after_remote_commits, describe_commits, reach_storage_by, reaches_storage_by_server
from tahoe.spark.names.entries import parts_of, table_named
from tahoe.spark.names.options import ReadRequest, path_of_client, path_option, read_request, resolve_path_option, travelling
from tahoe.spark.names.server_catalog import SESSION_CATALOG, ServerEntry, delta_entries, server_entry
from tahoe.spark.names.settings import LATE_RANGES, is_on, settings_of, settings_read_once, user_metadata_of
from tahoe.spark.names.temporary_views import copy_views, forget_view, note_view
from tahoe.spark.portable.data_source_options import IS_STREAM, SESSION_SETTINGS, TIME_ZONE
from tahoe.spark.stream.stream_options import IGNORED_CHANGES
from tahoe.spark.write.enforce import session_time_zone

_FILTERS = "spark.sql.python.filterPushdown.enabled"
_MODES = {
    None: "ErrorIfExists",
    "error": "ErrorIfExists",
    "errorifexists": "ErrorIfExists",
    "append": "Append",
    "overwrite": "Overwrite",
    "ignore": "Ignore",
}


def enable_connect(spark: Any, *, through_server: bool = False) -> None:
    """Send the data source to the session's server, whose Python needs no Tahoe, and add Delta support to PySpark's Connect client.

    Args:
        through_server: whether the server reads and writes the tables' logs for the client.
    """
    if through_server:
        reach_storage_by(spark, partial(server_store, spark))
    if serve(spark):
        spark.conf.set(_FILTERS, "true")
        client_requests.enable(spark, views_of_subqueries)
    after_remote_commits(client_requests.persist_again, compact_after)
    describe_commits(user_metadata_of)
    wrap(SparkConnectClient, "_execute_and_fetch_as_iterator", client_requests.execute)
    wrap(SparkConnectClient, "_analyze", client_requests.analyze)
    wrap(SparkConnectClient, "_handle_error", handle_error)
    for name, database in _TEMPORARY_VIEWS.items():
        wrap(DataFrame, name, _creating_view(database))
    wrap_input_files()
    wrap_merge_into(DataFrame, RemoteMergeBuilder)
    wrap(DataFrameReader, "load", _load)
    wrap(DataFrameReader, "table", _read_table)
    wrap_newer(DataFrameReader, "changes", _reading_changes(is_stream=False))
    wrap_newer(DataStreamReader, "changes", _reading_changes(is_stream=True))
    wrap(SparkSession, "table", _session_table)
    wrap(SparkSession, "sql", _sql)
    wrap(DataFrameWriter, "save", _save)
    wrap(DataFrameWriter, "saveAsTable", _save_as_table)
    wrap(DataFrameWriter, "insertInto", _insert_into)
    for name, how in _CREATIONS.items():
        wrap(DataFrameWriterV2, name, _creating(how))
    wrap(DataFrameWriterV2, "append", _saving("Append", {}))
    wrap(DataFrameWriterV2, "overwritePartitions", _saving("Overwrite", {"partitionOverwriteMode": "dynamic"}))
    wrap(DataFrameWriterV2, "overwrite", _overwrite)
    for name in ("newSession", "cloneSession"):
        wrap_newer(SparkSession, name, _another_session)
    wrap(Catalog, "createTable", _create_table)
    wrap(Catalog, "tableExists", table_exists)
    wrap(Catalog, "listColumns", _list_columns)
    wrap(Catalog, "getTable", _get_table)
    wrap(Catalog, "listTables", _list_tables)
    wrap(Catalog, "cacheTable", _cache_table)
    wrap(Catalog, "clearCache", _clear_cache)
    wrap_statements(Catalog)
    wrap(DataStreamReader, "load", _load)
    wrap_streams()


# -- reading and statements ------------------------------------------------------------------------------------------------------


def _load(original: Callable[..., Any], reader: Any, *positional: Any, **named: Any) -> Any:
    spark, arguments = reader._client, bound_arguments(original, reader, *positional, **named)
    if not is_delta(spark, arguments["format"] or reader._format):
        return original(reader, *positional, **named)
    if arguments["schema"] is not None:
        reader.schema(arguments["schema"])
    reader.options(**arguments["options"])
    path = single_path(arguments["path"], reader._options)
    if isinstance(reader, DataFrameReader):
        read_request(path, reader._options, bool(reader._schema))
    in_path = travelling(ReadRequest(path))
    if in_path is not None and in_path.timestamp is not None:
        reader.option(TIME_ZONE, session_time_zone(spark))
    if isinstance(reader, DataStreamReader):
        reader.option(IS_STREAM, "true")
    if sent := _settings_for(spark, reader):
        reader.option(SESSION_SETTINGS, json.dumps(sent))
    reader._options = in_utc(spark, without_secrets(spark, reader._options))
    resolve_path_option(reader._options)
    return original(reader, None if arguments["path"] is None else path_of_client(path), "delta")


def _settings_for(spark: Any, reader: Any) -> dict[str, str]:
    """Return the settings that are true in the session and that the server's data source needs."""
    names = [LATE_RANGES] if any(name.lower() in _RANGE_OPTIONS for name in reader._options) else []
    if isinstance(reader, DataStreamReader):
        names += IGNORED_CHANGES.values()
    with settings_read_once(spark):
        return {name: "true" for name in names if is_on(spark, name)}


_RANGE_OPTIONS = frozenset(map(str.lower, FEED_RANGE))
"""The options of the change data feed and of streams for which a session has the setting `LATE_RANGES`."""


def _read_table(original: Callable[..., Any], reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
    spark = reader._client
    rows = rows_named(spark, parts_of(spark, tableName), reader._options) if is_enabled(spark) else None
    return original(reader, tableName) if rows is None else rows


def _reading_changes(*, is_stream: bool) -> Callable[..., Any]:
    def call(original: Callable[..., Any], reader: Any, tableName: str) -> Any:  # noqa: N803 - PySpark's name
        spark = reader._client
        named = enabled_table(spark, tableName)
        if named is None:
            return original(reader, tableName)
        return changes_of(spark, named.table.url, reader._options, is_stream=is_stream)

    return call


def _session_table(original: Callable[..., Any], spark: Any, tableName: str) -> Any:  # noqa: N803
    rows = rows_named(spark, parts_of(spark, tableName), {}) if is_enabled(spark) else None
    return original(spark, tableName) if rows is None else rows


def _sql(original: Callable[..., Any], spark: Any, sqlQuery: str, args: Any = None, **named: Any) -> Any:  # noqa: N803
    if isinstance(sqlQuery, str) and is_enabled(spark):
        with settings_read_once(spark):
            return run_sql(original, spark, sqlQuery, args, named)
    return original(spark, sqlQuery, args, **named)


def _another_session(original: Callable[..., Any], spark: Any, *positional: Any, **named: Any) -> Any:
    another = original(spark, *positional, **named)
    if is_enabled(spark):
        enable_connect(another, through_server=reaches_storage_by_server(spark))
        mark_enabled(another)
        if original.__name__ == "cloneSession":
            copy_views(spark, another)
    return another


_TEMPORARY_VIEWS: Mapping[str, tuple[str, ...]] = {
    "createTempView": (),
    "createOrReplaceTempView": (),
    "createGlobalTempView": ("global_temp",),
    "createOrReplaceGlobalTempView": ("global_temp",),
}


def _creating_view(database: tuple[str, ...]) -> Callable[..., None]:
    def call(original: Callable[..., None], rows: Any, name: str) -> None:
        original(rows, name)
        spark, parts = rows.sparkSession, (*database, name)
        if is_enabled(spark):
            forget_view(spark, parts)
            if reads_delta(rows._plan.to_proto(spark.client)):
                note_view(spark, parts, rows._plan)

    return call


# -- df.write ----------------------------------------------------------------------------------------------------------------------


def _save(original: Callable[..., None], writer: Any, *positional: Any, **named: Any) -> None:
    spark, arguments = writer._spark, bound_arguments(original, writer, *positional, **named)
    if not is_delta(spark, arguments["format"] or writer._write.source):
        original(writer, *positional, **named)
        return
    call = _call_of(writer, arguments)
    place, frame = single_path(arguments["path"], call.options), DataFrame(writer._df, spark)
    own = {key: value for key, value in call.options.items() if key.lower() != "coordinator"}
    insert(table_with_options(spark, place, call.options), frame, insert_request(replace(call, options=own), settings_of(spark)))


def _save_as_table(original: Callable[..., None], writer: Any, *positional: Any, **named: Any) -> None:
    spark, arguments = writer._spark, bound_arguments(original, writer, *positional, **named)
    parts = parts_of(spark, arguments["name"]) if is_enabled(spark) else ()
    how = _MODES[arguments["mode"] or writer._write.mode]
    appends = bool(parts) and how == "Append" and existing(spark, parts) is not None
    if not parts or not (appends or is_delta(spark, arguments["format"] or writer._write.source)):
        original(writer, *positional, **named)
        return
    save_as_table(spark, Save(parts, DataFrame(writer._df, spark), _call_of(writer, arguments)))


def _insert_into(original: Callable[..., None], writer: Any, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N803
    spark = writer._spark
    parts = parts_of(spark, tableName) if is_enabled(spark) else ()
    named = existing(spark, parts) if parts else None
    if named is None:
        original(writer, tableName, overwrite)
        return
    call = _call_of(writer)
    replaces = call.mode == "Overwrite" if overwrite is None else overwrite
    call = WriterCall("Overwrite" if replaces else "Append", call.options, call.partition_by, call.cluster_by, call.evolves)
    insert_into(spark, named, Save(parts, DataFrame(writer._df, spark), call))


def _call_of(writer: Any, arguments: Mapping[str, Any] | None = None) -> WriterCall:
    """Return the call of a writer, from the state of PySpark's client and the arguments of its last method."""
    if arguments is not None:
        configure(writer, arguments)
    write = writer._write
    refuse_buckets(write.num_buckets > 0)
    options = {key: value for key, value in write.options.items() if value is not None}
    evolves = bool(getattr(write, "with_schema_evolution", False))
    return WriterCall(_MODES[write.mode], options, write.partitioning_cols or None, write.clustering_cols or None, evolves)


# -- df.writeTo --------------------------------------------------------------------------------------------------------------------

_CREATIONS = {"create": "create", "replace": "replace", "createOrReplace": "createOrReplace"}


def _creating(how: str) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, write = writer._spark, writer._write
        if not is_delta(spark, write.provider):
            original(writer)
            return
        options = {key: str(value) for key, value in write.options.items() if value is not None}
        refuse_matching(options)
        location = path_option(options)
        properties = {key: str(value) for key, value in write.table_properties.items() if value is not None}
        columns = tuple(_partition_column(spark, column) for column in write.partitioning_columns)
        definition = TableDefinition(StructType(), columns, properties, cluster_by=tuple(write.clustering_columns) or None)
        parts = parts_of(spark, write.table_name)
        make_table(spark, Creation(parts, how, definition, location, options, lambda: DataFrame(writer._df, spark)))

    return call


def _partition_column(spark: Any, column: Column) -> str:
    """Return the name of a column to partition by; expressions are rejected."""
    parts = parts_of(spark, text_of(column)) if isinstance(column._expr, ColumnReference) else ()
    if len(parts) != 1:
        raise partitioned_by_expression(column)
    return parts[0]


def _saving(mode: str, more: Mapping[str, str]) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, write = writer._spark, writer._write
        options = {key: str(value) for key, value in write.options.items() if value is not None}
        evolves = bool(getattr(write, "with_schema_evolution", False))
        call = WriterCall(mode, {**options, **more}, evolves=evolves)
        if not is_enabled(spark) or not save_into(
            spark, Save(parts_of(spark, write.table_name), DataFrame(writer._df, spark), call)
        ):
            original(writer)

    return call


def _overwrite(original: Callable[..., None], writer: Any, condition: Any) -> None:
    named = is_enabled(writer._spark) and existing(writer._spark, parts_of(writer._spark, writer._write.table_name))
    if not named:
        original(writer, condition)
        return
    _saving("Overwrite", {"replaceWhere": as_sql(condition) or text_of(condition)})(original, writer)


# -- spark.catalog -----------------------------------------------------------------------------------------------------------------


def _create_table(original: Callable[..., Any], catalog: Any, *positional: Any, **named: Any) -> Any:
    spark, arguments = catalog._sparkSession, bound_arguments(original, catalog, *positional, **named)
    creation = requested_creation(spark, arguments) if is_delta(spark, arguments["source"]) else None
    if creation is None:
        return original(catalog, *positional, **named)
    make_table(spark, creation)
    return spark.table(arguments["tableName"])


def _list_columns(original: Callable[..., Any], catalog: Any, tableName: str, dbName: str | None = None) -> Any:  # noqa: N803
    spark = catalog._sparkSession
    if not is_enabled(spark):
        return original(catalog, tableName, dbName)
    parts = parts_of(spark, tableName)
    named = table_named(spark, parts if dbName is None else (dbName, *parts))
    return original(catalog, tableName, dbName) if named is None else listed_columns(named.table.snapshot())


def _get_table(original: Callable[..., CatalogTable], catalog: Any, tableName: str) -> CatalogTable:  # noqa: N803 - PySpark's name
    table, spark = original(catalog, tableName), catalog._sparkSession
    database = _database_of_entry(table)
    if database is None or not is_enabled(spark):
        return table
    return _as_in_catalog(table, server_entry(spark, (SESSION_CATALOG, database, table.name)))


def _list_tables(original: Callable[..., list[CatalogTable]], catalog: Any, *positional: Any, **named: Any) -> list[CatalogTable]:
    tables, spark = original(catalog, *positional, **named), catalog._sparkSession
    database = next(filter(None, map(_database_of_entry, tables)), None)
    if database is None or not is_enabled(spark):
        return tables
    entries = delta_entries(spark, database)  # the tables are those of one database
    return [_as_in_catalog(table, entries.get(table.name) if _database_of_entry(table) else None) for table in tables]


def _database_of_entry(table: CatalogTable) -> str | None:
    """Return the database of a table that may be Delta; None for others. To Spark, every table of a data source is managed."""
    return table.database if table.tableType == "MANAGED" and table.catalog == SESSION_CATALOG else None


def _as_in_catalog(table: CatalogTable, entry: ServerEntry | None) -> CatalogTable:
    """Return a table with the type and the comment of its entry if it is a Delta table."""
    if entry is None or not entry.is_delta:
        return table
    return table._replace(description=entry.comment, tableType="MANAGED" if entry.is_managed else "EXTERNAL")


def _cache_table(original: Callable[..., None], catalog: Any, tableName: str, storageLevel: Any = None) -> None:  # noqa: N803
    spark = catalog._sparkSession
    if is_enabled(spark):
        prepare_cache(spark, parts_of(spark, tableName))
    original(catalog, tableName, storageLevel)


def _clear_cache(original: Callable[..., None], catalog: Any) -> None:
    original(catalog)
    client_requests.forget_persisted(catalog._sparkSession.client)
