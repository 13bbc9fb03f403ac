"""`df.write`: writes rows to a table by its path (`save`) or by its name (`saveAsTable`, `insertInto`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.readwriter import DataFrameWriter

from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.saved import Save, insert_into, save_as_table
from tahoe.spark.commands.write_options import WriterCall, insert_request, refuse_buckets
from tahoe.spark.entry_points.reading import single_path
from tahoe.spark.entry_points.wrapping import bound_arguments, is_delta, is_enabled, wrap
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.records import items
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import parts_of
from tahoe.spark.names.new_entries import delta_entry, in_session_catalog
from tahoe.spark.names.settings import settings_of
from tahoe.spark.versions.schema_evolution import writer_evolves


def wrap_writer() -> None:
    """Add Delta support to ``df.write``, in sessions where it is enabled."""
    wrap(DataFrameWriter, "save", _save)
    wrap(DataFrameWriter, "saveAsTable", _save_as_table)
    wrap(DataFrameWriter, "insertInto", _insert_into)


def _save(original: Callable[..., None], writer: Any, *positional: Any, **named: Any) -> None:
    spark, arguments = writer._spark, bound_arguments(original, writer, *positional, **named)
    if not is_delta(spark, arguments["format"] or writer._jwrite.source()):
        original(writer, *positional, **named)
        return
    configure(writer, arguments)
    writer_options = _options_of(spark, writer)
    refuse_buckets(writer._jwrite.bucketColumnNames().isDefined())
    mode = str(writer._jwrite.curmode().name())
    call = WriterCall(mode, writer_options, _partition_by(writer), _cluster_by(writer), writer_evolves(writer))
    request = insert_request(call, settings_of(spark))
    insert(table_at(spark, single_path(arguments["path"], writer_options), writer_options), writer._df, request)


def _save_as_table(original: Callable[..., None], writer: Any, *positional: Any, **named: Any) -> None:
    spark = writer._spark
    if not is_enabled(spark):
        original(writer, *positional, **named)
        return
    arguments = bound_arguments(original, writer, *positional, **named)
    name = arguments["name"]
    configure(writer, arguments)
    if arguments["format"] is not None:
        writer.format(arguments["format"])
    parts, how = parts_of(spark, name), str(writer._jwrite.curmode().name())
    # Appending to an existing Delta table ignores the writer's format, which only applies to new tables.
    if not in_session_catalog(spark, parts) or not (
        is_delta(spark, str(writer._jwrite.source())) or (how == "Append" and delta_entry(spark, parts) is not None)
    ):
        original(writer, name)
        return
    refuse_buckets(writer._jwrite.bucketColumnNames().isDefined())
    partition_by, cluster_by = _partition_by(writer), _cluster_by(writer)
    call = WriterCall(how, _options_of(spark, writer), partition_by, cluster_by, writer_evolves(writer))
    save_as_table(spark, Save(parts, writer._df, call))


def _insert_into(
    original: Callable[..., None],
    writer: Any,
    tableName: str,  # noqa: N803 - PySpark's name
    overwrite: bool | None = None,
) -> None:
    spark, source = writer._spark, str(writer._jwrite.source())
    if not is_enabled(spark):
        original(writer, tableName, overwrite)
        return
    parts = parts_of(spark, tableName)
    # Spark rejects settings that conflict with insertInto.
    is_plain = (
        _partition_by(writer) is None and _cluster_by(writer) is None and not writer._jwrite.bucketColumnNames().isDefined()
    )
    if is_plain and in_session_catalog(spark, parts):
        replaces = str(writer._jwrite.curmode().name()) == "Overwrite" if overwrite is None else overwrite
        mode = "Overwrite" if replaces else "Append"
        call = WriterCall(mode, _options_of(spark, writer), evolves=writer_evolves(writer))
        if insert_into(spark, Save(parts, writer._df, call)):
            return
    if source.lower() != "delta":
        original(writer, tableName, overwrite)
        return
    # The format is irrelevant for an existing table; but Spark would look for the data source `delta`, and start Python for it.
    writer.format("parquet")
    try:
        original(writer, tableName, overwrite)
    finally:
        writer.format(source)


def configure(writer: Any, arguments: Mapping[str, Any]) -> None:
    """Apply the arguments of a writer's last method to the writer, as PySpark does."""
    writer.mode(arguments["mode"]).options(**arguments["options"])
    if arguments["partitionBy"] is not None:
        writer.partitionBy(arguments["partitionBy"])


def _options_of(spark: SparkSession, writer: Any) -> dict[str, str]:
    return Jvm.of(spark).dictionary(writer._jwrite.extraOptions().originalMap())


def _partition_by(writer: Any) -> list[str] | None:
    columns = writer._jwrite.partitioningColumns()
    return [str(name) for name in items(columns.get())] if columns.isDefined() else None


def _cluster_by(writer: Any) -> list[str] | None:
    columns = writer._jwrite.clusteringColumns()
    return [str(name) for name in items(columns.get())] if columns.isDefined() else None
