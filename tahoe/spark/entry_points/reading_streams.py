"""`spark.readStream`: a table as a stream, by its path (`load`) or by its name (`table`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader

from tahoe.api.table import Table
from tahoe.spark.entry_points.reading import configure_reader, single_path
from tahoe.spark.entry_points.wrapping import bound_arguments, enabled_table, is_delta, wrap, wrap_newer
from tahoe.spark.jvm.bridge import JavaObject, Jvm
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.options import ReadRequest, travelling
from tahoe.spark.names.requested_changes import changes_request
from tahoe.spark.stream.read_stream import read_stream
from tahoe.spark.stream.stream_options import time_travel_error
from tahoe.spark.versions.members import private_value
from tahoe.spark.versions.source_names import source_name


def wrap_stream_reader() -> None:
    """Add Delta support to ``spark.readStream``, in sessions where it is enabled."""
    wrap(DataStreamReader, "load", _load)
    wrap(DataStreamReader, "table", _table)
    wrap_newer(DataStreamReader, "changes", _changes)


def _load(original: Callable[..., DataFrame], reader: Any, *positional: Any, **named: Any) -> DataFrame:
    spark, arguments = reader._spark, bound_arguments(original, reader, *positional, **named)
    if not is_delta(spark, arguments["format"] or _ReaderSettings.of(reader).source):
        return original(reader, *positional, **named)
    configure_reader(reader, arguments)
    settings = _ReaderSettings.of(reader)
    return _read(reader, _table_to_load(spark, single_path(arguments["path"], settings.options), settings), settings)


def _table_to_load(spark: Any, path: str, settings: _ReaderSettings) -> Table:
    table = table_at(spark, path, settings.options)
    if "@" in path and not table.exists() and travelling(ReadRequest(path)) is not None:
        raise time_travel_error(f"the path '{path}'")
    return table


def _table(original: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
    spark = reader._spark
    named = enabled_table(spark, tableName)
    return original(reader, tableName) if named is None else _read(reader, named.table, _ReaderSettings.of(reader))


def _changes(original: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
    spark = reader._spark
    named = enabled_table(spark, tableName)
    if named is None:
        return original(reader, tableName)
    settings = _ReaderSettings.of(reader)
    request = changes_request(spark, settings.options)
    return request.labelled(_read(reader, named.table, replace(settings, options=dict(request.options))))


def _read(reader: Any, table: Table, settings: _ReaderSettings) -> DataFrame:
    return read_stream(reader._spark, table, settings.options, settings.schema, settings.name)


@dataclass(frozen=True, slots=True)
class _ReaderSettings:
    """The settings of a JVM ``DataStreamReader``, which Spark stores in private fields."""

    source: str | None
    options: dict[str, str]
    schema: JavaObject | None
    name: str | None

    @classmethod
    def of(cls, reader: Any) -> _ReaderSettings:
        """Read the fields of a reader."""
        jvm, java = Jvm.of(reader._spark), reader._jreader
        source, options, schema = (
            private_value(java, name, "read streams") for name in ("source", "extraOptions", "userSpecifiedSchema")
        )
        return cls(
            source,
            jvm.dictionary(options.originalMap()),
            schema.get() if schema.isDefined() else None,
            source_name(java),
        )
