"""`spark.readStream`: a table as a stream, by its path (`load`) or by its name (`table`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamReader

from tahoe.api.table import Table
from tahoe.spark.doors.reading import one_path
from tahoe.spark.doors.wrapping import is_delta, takes_names, wrap
from tahoe.spark.jvm.bridge import JavaObject, Jvm, is_classic
from tahoe.spark.jvm.private_fields import private_field, private_value
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import parts_of, table_named
from tahoe.spark.names.options import ReadRequest, travelling
from tahoe.spark.stream.stream_options import no_travel
from tahoe.spark.stream.streamed import read_stream

__all__ = ["wrap_stream_reader"]


def wrap_stream_reader() -> None:
    """Add Delta support to ``spark.readStream``, in sessions where it is enabled."""
    wrap(DataStreamReader, "load", _load)
    wrap(DataStreamReader, "table", _table)


def _load(
    original: Callable[..., DataFrame],
    reader: Any,
    path: Any = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    spark = reader._spark
    if not is_classic(spark) or not is_delta(spark, format or _Given.of(reader).source):
        return original(reader, path, format, schema, **options)
    if schema is not None:
        reader.schema(schema)
    reader.options(**options)
    given = _Given.of(reader)
    return _read(reader, _table_to_load(spark, one_path(path, given.options), given), given)


def _table_to_load(spark: Any, path: str, given: _Given) -> Table:
    table = table_at(spark, path, given.options)
    if "@" in path and not table.exists() and travelling(ReadRequest(path)) is not None:
        raise no_travel(f"the path '{path}'")
    return table


def _table(original: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
    spark = reader._spark
    named = table_named(spark, parts_of(spark, tableName)) if takes_names(spark) else None
    return original(reader, tableName) if named is None else _read(reader, named.table, _Given.of(reader))


def _read(reader: Any, table: Table, given: _Given) -> DataFrame:
    return read_stream(reader._spark, table, given.options, given.schema, given.name)


@dataclass(frozen=True, slots=True)
class _Given:
    """The settings of a JVM ``DataStreamReader``, which Spark stores in private fields.

    Args:
        name: supported from Spark 4.3 on.
    """

    source: str | None
    options: dict[str, str]
    schema: JavaObject | None
    name: str | None

    @classmethod
    def of(cls, reader: Any) -> _Given:
        """Read the fields of a reader."""
        jvm, java = Jvm.of(reader._spark), reader._jreader
        source, options, schema = (
            private_value(java, name, "read streams") for name in ("source", "extraOptions", "userSpecifiedSchema")
        )
        name_field = private_field(java, "userProvidedSourceName")
        name = None if name_field is None else name_field.get(java)
        return cls(
            source,
            jvm.dictionary(options.originalMap()),
            schema.get() if schema.isDefined() else None,
            str(name.get()) if name is not None and name.isDefined() else None,
        )
