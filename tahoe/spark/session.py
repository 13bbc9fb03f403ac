"""Delta switched on in a Spark session: `enable` makes `format("delta")` and ``delta.`/path` `` of that session mean Tahoe.

A classic session keeps all its state in the JVM, and so does the mark that Delta is on: a setting of the session, which copies of the
session (streaming makes some) inherit and new sessions do not. Methods of PySpark's session, reader and writer classes look at it. A call
with another format, or in a session without the mark, goes on to PySpark untouched.

A session of Spark Connect has no JVM here. Its servers load the portable source (`pyspark_delta`) by themselves; `enable` only lets
filters reach it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader, DataFrameWriter

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.process import UNIFORM_RUNTIME
from tahoe.spark.catalog.installed import give_names
from tahoe.spark.commands.insert import insert
from tahoe.spark.commands.write_options import insert_request
from tahoe.spark.jvm.bridge import Jvm, is_classic
from tahoe.spark.jvm.errors import install
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.options import read_request
from tahoe.spark.names.snapshots import moment, requested_snapshot
from tahoe.spark.scan.change_feed import read_changes
from tahoe.spark.scan.relation import read_snapshot
from tahoe.spark.scan.subfolders import subfolder_of
from tahoe.spark.slice_encoder import SparkSlices
from tahoe.spark.write.idempotent import reset_version

__all__ = ["ENABLED", "configure_spark_with_delta_pip", "enable", "is_enabled", "moment"]

ENABLED = "spark.tahoe.enabled"
"""The setting of a session in which Delta is on."""

_FILTERS = "spark.sql.python.filterPushdown.enabled"


def enable(spark: SparkSession) -> SparkSession:
    """The same session with Delta switched on. No JAR, no further setting, no restart; a second call does nothing.

    Afterwards ``spark.read.format("delta")`` and ``df.write.format("delta")`` read and write Delta tables at native speed. SQL knows
    them by name and as ``delta.`/path` `` (`tahoe.spark.catalog`, `tahoe.spark.statements`). All other formats, and all other sessions,
    stay as they are.
    """
    if not isinstance(spark, SparkSession) and not hasattr(spark, "read"):
        raise InvalidRequest(f"enable() takes a SparkSession, found {type(spark).__name__}.", code="TAHOE_NO_SPARK_SESSION")
    if is_classic(spark):
        install()
        give_names(spark)
        _wrap_classic()
    else:
        _wrap_connect()
        spark.conf.set(_FILTERS, "true")
    spark.conf.set(ENABLED, "true")
    UNIFORM_RUNTIME.slices = SparkSlices(spark)
    return spark


def is_enabled(spark: SparkSession) -> bool:
    """Whether `enable` was called for this session, or for one that it is a copy of."""
    return str(spark.conf.get(ENABLED, "false")).lower() == "true"


def configure_spark_with_delta_pip(
    spark_session_builder: SparkSession.Builder, extra_packages: list[str] | None = None
) -> SparkSession.Builder:
    """The builder, for programs written for delta-spark, which adds its JAR here. Tahoe has none: only `extra_packages` are added.

    Call `enable` on the session that the builder makes.
    """
    if not isinstance(spark_session_builder, SparkSession.Builder):
        raise TypeError(
            f"configure_spark_with_delta_pip() takes a SparkSession.Builder as its first argument, found {type(spark_session_builder)}. "
            "Give it the builder before getOrCreate() is called."
        )
    if extra_packages:
        return spark_session_builder.config("spark.jars.packages", ",".join(extra_packages))
    return spark_session_builder


# -- classic sessions --------------------------------------------------------------------------------------------------------


def _wrap_classic() -> None:
    _wrap(DataFrameReader, "load", _load)
    _wrap(DataFrameWriter, "save", _save)
    _wrap(DataFrameWriter, "saveAsTable", _save_as_table)


def _wrap(owner: type, name: str, replacement: Callable[..., Any]) -> None:
    """Put `replacement(original, self, …)` in the place of a method, once."""
    original = getattr(owner, name)
    if getattr(original, "_tahoe", False):
        return

    @functools.wraps(original)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        return replacement(original, self, *arguments, **named)

    method._tahoe = True  # type: ignore[attr-defined]
    setattr(owner, name, method)


def _load(
    original: Callable[..., DataFrame],
    reader: Any,
    path: Any = None,
    format: str | None = None,
    schema: Any = None,
    **options: Any,
) -> DataFrame:
    if not _is_delta(reader._spark, format or reader._jreader.source()):
        return original(reader, path, format, schema, **options)
    if schema is not None:
        reader.schema(schema)
    reader.options(**options)
    spark, java = reader._spark, reader._jreader
    given = Jvm.of(spark).dictionary(java.extraOptions().originalMap())
    return _read(spark, _one_path(path, given), given, bool(java.userSpecifiedSchema().isDefined()))


def _read(spark: SparkSession, path: str, given: Mapping[str, str], has_schema: bool) -> DataFrame:
    """What a reader with these options gives."""
    request = read_request(path, given, has_schema)
    if request.changes is not None:
        return read_changes(spark, table_at(spark, request.path, given), request.changes, options=request.hadoop)
    part = subfolder_of(spark, request, given)
    meant = request if part is None else part.request
    snapshot = requested_snapshot(spark, meant, given)
    newest = meant.version is None and meant.timestamp is None and "@" not in meant.path
    follows = table_at(spark, meant.path, given) if newest else None
    rows = read_snapshot(spark, snapshot, options=request.hadoop, follows=follows)
    return rows if part is None else rows.where(part.condition(spark, snapshot))


def _save(
    original: Callable[..., None],
    writer: Any,
    path: str | None = None,
    format: str | None = None,
    mode: str | None = None,
    partitionBy: Any = None,  # noqa: N803 - PySpark's name
    **options: Any,
) -> None:
    spark = writer._spark
    if not is_classic(spark) or not _is_delta(spark, format or writer._jwrite.source()):
        original(writer, path, format, mode, partitionBy, **options)
        return
    writer.mode(mode).options(**options)
    if partitionBy is not None:
        writer.partitionBy(partitionBy)
    java = writer._jwrite
    given = Jvm.of(spark).dictionary(java.extraOptions().originalMap())
    for name, columns in (("bucketBy", java.bucketColumnNames()), ("clusterBy", java.clusteringColumns())):
        if columns.isDefined():
            raise Unsupported(
                f"{name} of a Delta table is not supported by this version of Tahoe; leave it out, or use partitionBy.",
                code="DELTA_OPERATION_NOT_ALLOWED",
            )
    partitioning = java.partitioningColumns()
    columns = [partitioning.get().apply(i) for i in range(partitioning.get().size())] if partitioning.isDefined() else None
    evolve = hasattr(writer, "withSchemaEvolution") and bool(java._withSchemaEvolution())
    request = insert_request(
        str(java.curmode().name()),
        columns,
        given,
        Jvm.of(spark).dictionary(spark._jsparkSession.conf().getAll()),
        merge_schema=evolve,
    )
    target = _one_path(path, given)
    insert(table_at(spark, target, given), writer._df, request)
    reset_version(spark)


def _save_as_table(
    original: Callable[..., None], writer: Any, name: str, format: str | None = None, *rest: Any, **named: Any
) -> None:
    if is_classic(writer._spark) and _is_delta(writer._spark, format or writer._jwrite.source()):
        raise Unsupported(
            f"saveAsTable('{name}') needs a catalog of Delta tables, which this version of Tahoe does not have. "
            "Save to a path: df.write.format('delta').save(path).",
            code="TAHOE_CATALOG_NAME",
        )
    original(writer, name, format, *rest, **named)


def _is_delta(spark: SparkSession, source: str) -> bool:
    return source.lower() == "delta" and is_enabled(spark)


def _one_path(path: Any, options: Mapping[str, str]) -> str:
    if isinstance(path, (list, tuple)):
        if len(path) != 1:
            raise InvalidRequest(
                f"One Delta table is read at a time, found {len(path)} paths; read each and union the frames.",
                code="TAHOE_AMBIGUOUS_TABLE",
            )
        path = path[0]
    in_options = next((value for key, value in options.items() if key.lower() == "path"), None)
    if path is not None and in_options is not None and path != in_options:
        raise InvalidRequest(
            "The path is given twice, as the option 'path' and as an argument; leave one out.", code="TAHOE_AMBIGUOUS_TABLE"
        )
    found = path if path is not None else in_options
    if found is None:
        raise InvalidRequest("Name the table's path: load(path) or save(path).", code="DELTA_PATH_DOES_NOT_EXIST")
    return str(found)


# -- sessions of Spark Connect -----------------------------------------------------------------------------------------------


def _wrap_connect() -> None:
    from pyspark.sql.connect.readwriter import DataFrameReader as ConnectReader

    _wrap(ConnectReader, "load", _load_portable)


def _load_portable(
    original: Callable[..., DataFrame], reader: Any, path: Any = None, format: str | None = None, *rest: Any, **options: Any
) -> DataFrame:
    source = format or reader._format
    if source is not None and source.lower() == "delta":
        reader.option("pushFilters", "true")
    return original(reader, path, format, *rest, **options)
