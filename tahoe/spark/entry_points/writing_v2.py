"""`df.writeTo(name)`: creates, replaces and appends to named tables. The JVM writer does not expose its settings, so they are recorded here
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2

from tahoe.schema.types import StructType
from tahoe.spark.catalog.writable import BY_DATAFRAME
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.commands.saved import Save, save_into
from tahoe.spark.commands.write_options import WriterCall, partitioned_by_expression, refuse_matching
from tahoe.spark.entry_points.wrapping import is_delta, is_enabled, wrap
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.names.entries import parts_of
from tahoe.spark.names.new_entries import delta_entry, in_session_catalog
from tahoe.spark.names.options import path_option


@dataclass(slots=True)
class _WriterSettings:
    """The recorded settings of a writer."""

    name: str
    provider: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    partition_by: list[Any] = field(default_factory=list)
    cluster_by: list[str] = field(default_factory=list)


def wrap_writer_v2() -> None:
    """Add Delta support to ``df.writeTo``, in sessions where it is enabled."""
    wrap(DataFrameWriterV2, "__init__", _init)
    for name, record in _RECORDED.items():
        wrap(DataFrameWriterV2, name, _recording(record))
    for name, how in (("create", "create"), ("replace", "replace"), ("createOrReplace", "createOrReplace")):
        wrap(DataFrameWriterV2, name, _creating(how))
    wrap(DataFrameWriterV2, "overwrite", _overwrite)
    wrap(DataFrameWriterV2, "append", _saving("Append", {}))
    wrap(DataFrameWriterV2, "overwritePartitions", _saving("Overwrite", {"partitionOverwriteMode": "dynamic"}))


def _init(original: Callable[..., None], writer: Any, df: Any, table: str) -> None:
    original(writer, df, table)
    writer._tahoe_settings = _WriterSettings(table)


def _recording(record: Callable[..., None]) -> Callable[..., Any]:
    def call(original: Callable[..., Any], writer: Any, *arguments: Any, **named: Any) -> Any:
        answer = original(writer, *arguments, **named)
        record(writer._tahoe_settings, *arguments, **named)
        return answer

    return call


def _record_provider(settings: _WriterSettings, provider: str) -> None:
    settings.provider = provider


def _record_option(settings: _WriterSettings, key: str, value: object) -> None:
    settings.options[key] = _text(value)


def _record_options(settings: _WriterSettings, **options: object) -> None:
    settings.options.update({key: _text(value) for key, value in options.items()})


def _record_property(settings: _WriterSettings, property: str, value: str) -> None:
    settings.properties[property] = value


def _record_partitions(settings: _WriterSettings, col: object, *cols: object) -> None:
    settings.partition_by = [col, *cols]


def _record_clusters(settings: _WriterSettings, col: str, *cols: str) -> None:
    settings.cluster_by = [col, *cols]


_RECORDED: dict[str, Callable[..., None]] = {
    "using": _record_provider,
    "option": _record_option,
    "options": _record_options,
    "tableProperty": _record_property,
    "partitionedBy": _record_partitions,
    "clusterBy": _record_clusters,
}


def _creating(how: str) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, settings = writer._spark, writer._tahoe_settings
        parts = parts_of(spark, settings.name) if is_delta(spark, settings.provider) else None
        if parts is None or not in_session_catalog(spark, parts):
            original(writer)
            return
        refuse_matching(settings.options)
        location = path_option(settings.options)
        columns = tuple(_column(spark, column) for column in settings.partition_by)
        definition = TableDefinition(StructType(), columns, settings.properties, cluster_by=tuple(settings.cluster_by) or None)
        make_table(spark, Creation(parts, how, definition, location, settings.options, lambda: writer._df))

    return call


def _saving(mode: str, options: Mapping[str, str]) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, settings = writer._spark, writer._tahoe_settings
        parts = parts_of(spark, settings.name) if is_enabled(spark) else None
        if parts is None or not in_session_catalog(spark, parts) or delta_entry(spark, parts) is None:
            original(writer)
            return
        save_into(spark, Save(parts, writer._df, WriterCall(mode, {**settings.options, **options})))

    return call


def _overwrite(original: Callable[..., None], writer: Any, condition: Any) -> None:
    """Spark analyzes the condition; the option makes the table match columns as for a DataFrame."""
    spark, settings = writer._spark, writer._tahoe_settings
    parts = parts_of(spark, settings.name) if is_enabled(spark) else None
    if parts is not None and in_session_catalog(spark, parts) and delta_entry(spark, parts) is not None:
        # Spark would analyze the query again, and its subqueries could not read the written table (`statements.insert_sources`).
        rows = Jvm.of(spark).frame(spark._jsparkSession, writer._df._jdf.queryExecution().analyzed(), spark)
        writer._jwriter = rows._jdf.writeTo(settings.name)
        for key, value in (*settings.options.items(), (BY_DATAFRAME, "true")):
            writer._jwriter.option(key, value)
    original(writer, condition)


def _column(spark: SparkSession, column: Column | str) -> str:
    """Return the partition column; expressions are rejected."""
    if isinstance(column, str):
        return parts_of(spark, column)[-1]
    java: Any = column._jc
    node = java.node()
    if str(node.getClass().getSimpleName()) != "UnresolvedAttribute" or node.nameParts().size() != 1:
        raise partitioned_by_expression(column)
    return str(node.nameParts().apply(0))


def _text(value: object) -> str:
    """Return an option value as PySpark formats it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
