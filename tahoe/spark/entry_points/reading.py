"""`spark.read`: a table by its path (`load`), and the change data feed of a named table (`table`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.readwriter import DataFrameReader

from tahoe.base.exceptions import InvalidRequest
from tahoe.settings.dataframe_options import warn_of_range_without_feed
from tahoe.spark.entry_points.wrapping import bound_arguments, enabled_table, is_delta, is_enabled, wrap, wrap_newer
from tahoe.spark.jvm.bridge import Jvm
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.names.entries import parts_of, table_named
from tahoe.spark.names.options import path_option, read_request
from tahoe.spark.names.requested_changes import changes_request
from tahoe.spark.names.snapshots import requested_snapshot
from tahoe.spark.scan.change_feed import read_changes, read_requested_changes
from tahoe.spark.scan.relation import read_snapshot
from tahoe.spark.scan.snapshot_plans import SnapshotPlans
from tahoe.spark.scan.subfolders import subfolder_of


def wrap_reader() -> None:
    """Add Delta support to ``spark.read``, in sessions where it is enabled."""
    wrap(DataFrameReader, "load", _load)
    wrap(DataFrameReader, "table", _table)
    wrap_newer(DataFrameReader, "changes", _changes)


def _load(original: Callable[..., DataFrame], reader: Any, *positional: Any, **named: Any) -> DataFrame:
    arguments = bound_arguments(original, reader, *positional, **named)
    if not is_delta(reader._spark, arguments["format"] or reader._jreader.source()):
        return original(reader, *positional, **named)
    configure_reader(reader, arguments)
    spark, java = reader._spark, reader._jreader
    reader_options = Jvm.of(spark).dictionary(java.extraOptions().originalMap())
    return _read(
        spark, single_path(arguments["path"], reader_options), reader_options, bool(java.userSpecifiedSchema().isDefined())
    )


def _read(spark: SparkSession, path: str, options: Mapping[str, str], has_schema: bool) -> DataFrame:
    """Return the rows for a reader with these options."""
    request = read_request(path, options, has_schema)
    if request.changes is not None:
        changes = request.changes.with_versions_first()
        return read_changes(spark, table_at(spark, request.path, options), changes, options=request.hadoop)
    warn_of_range_without_feed(options)
    part = subfolder_of(spark, request, options)
    table_request = request if part is None else part.request
    snapshot = requested_snapshot(spark, table_request, options)
    newest = table_request.version is None and table_request.timestamp is None and "@" not in table_request.path
    follows = table_at(spark, table_request.path, options) if newest else None
    if request.hadoop:
        rows = read_snapshot(spark, snapshot, options=request.hadoop, follows=follows)
    else:
        rows = SnapshotPlans.of(spark).frame(spark, snapshot, follows)
    return rows if part is None else rows.where(part.condition(spark, snapshot))


def _table(original: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
    spark = reader._spark
    if is_enabled(spark):
        options = Jvm.of(spark).dictionary(reader._jreader.extraOptions().originalMap())
        if any(key.lower() in ("readchangefeed", "readchangedata") for key in options):
            named = table_named(spark, parts_of(spark, tableName))
            request = None if named is None else read_request(named.table.url, options, has_schema=False)
            if named is not None and request is not None and request.changes is not None:
                return read_changes(spark, named.table, request.changes, options=request.hadoop)
    return original(reader, tableName)


def _changes(original: Callable[..., DataFrame], reader: Any, tableName: str) -> DataFrame:  # noqa: N803 - PySpark's name
    """Read the changes as a scan of files, which Spark plans better than the relation that its catalog returns for a CHANGES clause."""
    spark, java = reader._spark, reader._jreader
    named = enabled_table(spark, tableName)
    if named is None:
        return original(reader, tableName)
    options = Jvm.of(spark).dictionary(java.extraOptions().originalMap())
    request = changes_request(spark, options)
    has_schema = bool(java.userSpecifiedSchema().isDefined())
    return read_requested_changes(spark, named.table, request, has_schema=has_schema)


def configure_reader(reader: Any, arguments: Mapping[str, Any]) -> None:
    """Apply the arguments of `load` to a reader, as PySpark does."""
    if arguments["schema"] is not None:
        reader.schema(arguments["schema"])
    reader.options(**arguments["options"])


def single_path(path: object, options: Mapping[str, str]) -> str:
    """Return the path of a reader or writer, from its argument or its options.

    Raises `InvalidRequest`: ``TAHOE_AMBIGUOUS_TABLE``, ``DELTA_PATH_DOES_NOT_EXIST``.
    """
    if isinstance(path, (list, tuple)):
        if len(path) != 1:
            raise InvalidRequest(
                f"One Delta table is read at a time, found {len(path)} paths; read each and union the frames.",
                code="TAHOE_AMBIGUOUS_TABLE",
            )
        path = path[0]
    in_options = path_option(options)
    if path is not None and in_options is not None and path != in_options:
        raise InvalidRequest(
            "The path is given twice, as the option 'path' and as an argument; leave one out.", code="TAHOE_AMBIGUOUS_TABLE"
        )
    chosen = path if path is not None else in_options
    if chosen is None:
        raise InvalidRequest("Name the table's path: load(path) or save(path).", code="DELTA_PATH_DOES_NOT_EXIST")
    return str(chosen)
