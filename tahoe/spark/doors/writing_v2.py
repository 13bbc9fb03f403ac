"""`df.writeTo(name)`: creates, replaces and appends to named tables. The JVM writer does not expose its settings, so they are recorded here
too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2

from tahoe.base.exceptions import Unsupported
from tahoe.schema.types import StructType
from tahoe.spark.catalog.writable import BY_DATAFRAME
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.commands.saved import Save, save_into
from tahoe.spark.commands.write_options import refuse_matching
from tahoe.spark.doors.wrapping import is_delta, takes_names, wrap
from tahoe.spark.names.entries import parts_of
from tahoe.spark.names.new_entries import delta_entry, in_session_catalog

__all__ = ["wrap_writer_v2"]


@dataclass(slots=True)
class _Told:
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
    for name, note in _NOTES.items():
        wrap(DataFrameWriterV2, name, _noting(note))
    for name, how in (("create", "create"), ("replace", "replace"), ("createOrReplace", "createOrReplace")):
        wrap(DataFrameWriterV2, name, _making(how))
    wrap(DataFrameWriterV2, "overwrite", _overwrite)
    wrap(DataFrameWriterV2, "append", _saving("Append", {}))
    wrap(DataFrameWriterV2, "overwritePartitions", _saving("Overwrite", {"partitionOverwriteMode": "dynamic"}))


def _init(original: Callable[..., None], writer: Any, df: Any, table: str) -> None:
    original(writer, df, table)
    writer._tahoe_told = _Told(table)


def _noting(note: Callable[..., None]) -> Callable[..., Any]:
    def call(original: Callable[..., Any], writer: Any, *arguments: Any, **named: Any) -> Any:
        answer = original(writer, *arguments, **named)
        note(writer._tahoe_told, *arguments, **named)
        return answer

    return call


def _note_provider(told: _Told, provider: str) -> None:
    told.provider = provider


def _note_option(told: _Told, key: str, value: Any) -> None:
    told.options[key] = _text(value)


def _note_options(told: _Told, **options: Any) -> None:
    told.options.update({key: _text(value) for key, value in options.items()})


def _note_property(told: _Told, property: str, value: str) -> None:
    told.properties[property] = value


def _note_partitions(told: _Told, col: Any, *cols: Any) -> None:
    told.partition_by = [col, *cols]


def _note_clusters(told: _Told, col: str, *cols: str) -> None:
    told.cluster_by = [col, *cols]


_NOTES: dict[str, Callable[..., None]] = {
    "using": _note_provider,
    "option": _note_option,
    "options": _note_options,
    "tableProperty": _note_property,
    "partitionedBy": _note_partitions,
    "clusterBy": _note_clusters,
}


def _making(how: str) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, told = writer._spark, writer._tahoe_told
        parts = parts_of(spark, told.name) if takes_names(spark) and is_delta(spark, told.provider) else None
        if parts is None or not in_session_catalog(spark, parts):
            original(writer)
            return
        refuse_matching(told.options)
        location = next((value for key, value in told.options.items() if key.lower() in ("path", "location")), None)
        columns = tuple(_column(spark, one) for one in told.partition_by)
        definition = TableDefinition(StructType(), columns, told.properties, cluster_by=tuple(told.cluster_by) or None)
        make_table(spark, Creation(parts, how, definition, location, told.options, lambda: writer._df))

    return call


def _saving(mode: str, options: Mapping[str, str]) -> Callable[..., None]:
    def call(original: Callable[..., None], writer: Any) -> None:
        spark, told = writer._spark, writer._tahoe_told
        parts = parts_of(spark, told.name) if takes_names(spark) else None
        if parts is None or not in_session_catalog(spark, parts) or delta_entry(spark, parts) is None:
            original(writer)
            return
        save_into(spark, Save(parts, writer._df, mode, None, {**told.options, **options}))

    return call


def _overwrite(original: Callable[..., None], writer: Any, condition: Any) -> None:
    """Spark analyzes the condition; the option makes the table match columns as for a DataFrame."""
    parts = parts_of(writer._spark, writer._tahoe_told.name) if takes_names(writer._spark) else None
    if parts is not None and in_session_catalog(writer._spark, parts) and delta_entry(writer._spark, parts) is not None:
        writer._jwriter.option(BY_DATAFRAME, "true")
    original(writer, condition)


def _column(spark: SparkSession, column: Column | str) -> str:
    """Return the partition column; expressions are rejected."""
    if isinstance(column, str):
        return parts_of(spark, column)[-1]
    java: Any = column._jc
    node = java.node()
    if str(node.getClass().getSimpleName()) != "UnresolvedAttribute" or node.nameParts().size() != 1:
        raise Unsupported(
            f"Partitioning by expressions ({column}) is not supported for Delta tables; use plain columns.",
            code="DELTA_OPERATION_NOT_ALLOWED",
        )
    return str(node.nameParts().apply(0))


def _text(value: Any) -> str:
    """Return an option value as PySpark formats it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
