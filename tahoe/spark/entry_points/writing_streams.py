"""`df.writeStream`: writes the batches of a query to a table by its path (`start`) or by its name (`toTable`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.commands.write_options import Insert
from tahoe.spark.entry_points.wrapping import bound_arguments, configure_stream, is_delta, is_enabled, wrap
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import location_of, parts_of, path_of
from tahoe.spark.names.new_entries import delta_entry, in_session_catalog
from tahoe.spark.names.options import path_option
from tahoe.spark.names.settings import settings_of
from tahoe.spark.sink.sink import StreamWriterOptions, start_query
from tahoe.spark.sink.sink_request import path_of_stream, sink_request
from tahoe.spark.write.fitting import columns_of


def wrap_stream_writer() -> None:
    """Add Delta support to ``df.writeStream``, in sessions where it is enabled."""
    wrap(DataStreamWriter, "start", _start)
    wrap(DataStreamWriter, "toTable", _to_table)


def _start(original: Callable[..., StreamingQuery], writer: Any, *positional: Any, **named: Any) -> StreamingQuery:
    spark = writer._spark
    if not is_enabled(spark):
        return original(writer, *positional, **named)
    arguments = bound_arguments(original, writer, *positional, **named)
    path = arguments["path"]
    configure_stream(writer, arguments)
    settings = StreamWriterOptions.of(spark, writer._jwrite)
    if not is_delta(spark, settings.source):
        return original(writer, path)
    request = _request(spark, settings)
    location = path_of_stream(path, settings.options)
    return writer._sq(start_query(spark, table_at(spark, location, settings.options), settings, request, path=location))  # type: ignore[no-any-return]


def _to_table(original: Callable[..., StreamingQuery], writer: Any, *positional: Any, **named: Any) -> StreamingQuery:
    spark = writer._spark
    if not is_enabled(spark):
        return original(writer, *positional, **named)
    arguments = bound_arguments(original, writer, *positional, **named)
    name = arguments["tableName"]
    configure_stream(writer, arguments)
    settings, parts = StreamWriterOptions.of(spark, writer._jwrite), parts_of(spark, name)
    if not is_delta(spark, settings.source) or not in_session_catalog(spark, parts) or _is_not_delta(spark, parts):
        # Spark raises its own error: for a view, a table of another format, or one of another catalog.
        return original(writer, name)
    request = _request(spark, settings)
    location = _location(spark, writer, settings, parts)
    return writer._sq(start_query(spark, table_at(spark, location, settings.options), settings, request, path=location))  # type: ignore[no-any-return]


def _request(spark: SparkSession, settings: StreamWriterOptions) -> Insert:
    return sink_request(
        settings.output_mode, settings.partition_by, settings.options, settings_of(spark), cluster_by=settings.cluster_by
    )


def _is_not_delta(spark: SparkSession, parts: tuple[str, ...]) -> bool:
    """Return whether the name exists and is not that of a Delta table."""
    catalog = spark._jsparkSession.sessionState().catalog()
    if len(parts) == 1 and catalog.getTempView(parts[0]).isDefined():
        return True
    return (
        path_of(parts) is None
        and delta_entry(spark, parts) is None
        and spark.catalog.tableExists(".".join(f"`{part}`" for part in parts))
    )


def _location(spark: SparkSession, writer: Any, settings: StreamWriterOptions, parts: tuple[str, ...]) -> str:
    """Return the table's location; a missing table is created."""
    path = path_of(parts)
    entry = None if path is not None else delta_entry(spark, parts)
    if entry is not None:
        return location_of(entry)
    if path is None or not table_at(spark, path, settings.options).exists():
        definition = TableDefinition(columns_of(writer._df), settings.partition_by or (), cluster_by=settings.cluster_by)
        location = path_option(settings.options)
        make_table(spark, Creation(parts, "create", definition, location))
    return path if path is not None else location_of(delta_entry(spark, parts))
