"""CLONE on Spark: resolves names of the session's catalog to a source and a clone; the core does the rest (`tahoe.ops.copies.clone`).

    source   a Delta, Parquet or Iceberg table, or `format.`/path` `          clone   a path; a name, with or without a location

Executors copy the files of a large deep clone, some at a time; the driver's own threads copy small amounts faster than a job starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.log_fields import about
from tahoe.base.progress import Progress, shown
from tahoe.ops.copies.clone import Cloned, CloneRequest, clone
from tahoe.ops.copies.clone_source import CloneSource, FileCopy, source_of_folder, source_of_snapshot
from tahoe.ops.copies.copy_files import copied_here, copy_file
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table
from tahoe.ops.copies.parquet_folder import parquet_table
from tahoe.schema.types import StructType
from tahoe.spark.copies.catalog_table import catalog_table
from tahoe.spark.copies.convert import folder_of_entry, folder_request, source_folder
from tahoe.spark.executors.shipped import raised, run_on
from tahoe.spark.jvm.bridge import JavaObject, is_classic
from tahoe.spark.jvm.errors import quiet_errors
from tahoe.spark.jvm.job_progress import jobs_shown_by
from tahoe.spark.jvm.storage import hadoop_path, table_at
from tahoe.spark.jvm.translate import to_spark_schema
from tahoe.spark.names.entries import entry_at, is_delta, location_of, path_of, table_named
from tahoe.spark.names.new_entries import (
    full_identifier,
    is_view,
    new_entry,
    refuse_odd_name,
    uri_of_new,
    uri_of_text,
)
from tahoe.spark.names.server_catalog import add_entry, full_parts, managed_entry, managed_location, server_entry, set_columns
from tahoe.spark.names.settings import look_at_settings
from tahoe.spark.names.snapshots import parsed_timestamp
from tahoe.store.location import table_url
from tahoe.store.log_store import LogStore
from tahoe.txn.after_commit import logged_after_commit

CLONE_ROW = (
    "source_table_size bigint, source_num_of_files bigint, num_removed_files bigint, num_copied_files bigint, removed_files_size bigint, "
    "copied_files_size bigint"
)
"""The result columns of CLONE."""

_LITTLE = 64 << 20
"""The driver itself copies up to this many bytes, and up to `_FEW` files."""
_FEW = 64


@dataclass(frozen=True, slots=True)
class NamedCloneRequest:
    """A request to clone a table.

    Args:
        target: the identifiers of the clone's name.
        source: the identifiers of the source's name.
        clone: whether it is shallow, the handling of an existing table, and properties.
        version, timestamp: of the source; Spark parses the timestamp.
        location: of a clone with a name.
    """

    target: tuple[str, ...]
    source: tuple[str, ...]
    clone: CloneRequest
    version: int | None = None
    timestamp: str | None = None
    location: str | None = field(default=None)


def clone_named(
    spark: SparkSession, request: NamedCloneRequest, source: Table | None = None
) -> tuple[list[tuple[int, ...]], Table]:
    """Create the clone, and its catalog entry if it has a name; return the result row and the clone.

    Args:
        source: the source table, if it is known already.

    Raises: the errors of `tahoe.ops.copies.clone.clone` and `tahoe.ops.copies.parquet_folder.parquet_table`;
        ``DELTA_CLONE_UNSUPPORTED_SOURCE``; ``DELTA_CLONE_AMBIGUOUS_TARGET``: a path and a location; PySpark's ``AnalysisException`` for a
        name that exists, or is missing.
    """
    look_at_settings(spark)
    path = path_of(request.target)
    if path is not None:
        if request.location is not None and table_url(request.location) != table_url(path):
            raise InvalidRequest(
                f"Two paths were provided as the CLONE target so it is ambiguous which to use: '{path}' as the table and "
                f"'{request.location}' as its location. Leave one out.",
                code="DELTA_CLONE_AMBIGUOUS_TARGET",
                table=path,
            )
        target = table_at(spark, path, {})
        return _rows(_cloned(spark, request, target, source)), target
    if not is_classic(spark):
        return _on_server(spark, request, source)
    identifier = full_identifier(spark, request.target)
    catalog = spark._jsparkSession.sessionState().catalog()
    entry = entry_at(catalog, identifier)
    if entry is not None:
        if request.clone.how == "create":
            raise _exists(str(identifier.unquotedString()))
        target = table_at(spark, _place_of(entry, str(identifier.unquotedString())), {})
        return ([] if request.clone.how == "createIfNotExists" else _rows(_cloned(spark, request, target, source))), target
    if request.clone.how == "replace":
        raise _missing(str(identifier.unquotedString()))
    refuse_odd_name(spark, identifier)
    uri = uri_of_new(spark, identifier) if request.location is None else uri_of_text(spark, request.location)
    entry = new_entry(spark, identifier, uri, managed=request.location is None, comment=None)
    target = table_at(spark, location_of(entry), {})
    rows = _rows(_cloned(spark, request, target, source))
    catalog.createTable(entry, request.clone.how == "createIfNotExists", False)
    return rows, target


def _on_server(spark: SparkSession, request: NamedCloneRequest, source: Table | None) -> tuple[list[tuple[int, ...]], Table]:
    """Create the clone and its entry in the catalog of a Spark Connect server."""
    entry, name = server_entry(spark, request.target), ".".join(request.target)
    if entry is not None:
        if request.clone.how == "create":
            raise _exists(name)
        if not entry.is_delta:
            raise _takes_no_place(name)
        target = table_at(spark, entry.location, {})
        return ([] if request.clone.how == "createIfNotExists" else _rows(_cloned(spark, request, target, source))), target
    if request.clone.how == "replace":
        raise _missing(name)
    parts = full_parts(spark, request.target)
    if request.location is not None:
        target = table_at(spark, request.location, {})
        rows = _rows(_cloned(spark, request, target, source))
        add_entry(spark, parts, to_spark_schema(target.schema()), request.location)
        return rows, target
    target = table_at(spark, managed_location(spark, parts), {})
    with managed_entry(spark, parts, SparkStruct()):
        rows = _rows(_cloned(spark, request, target, source))
    with logged_after_commit("the entry of table %s has no columns", target.url, extra=about(target.url)):
        set_columns(spark, parts, to_spark_schema(target.schema()))
    return rows, target


def _exists(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"Table {name} already exists. Replace it (CREATE OR REPLACE TABLE … CLONE), leave it (IF NOT EXISTS), or choose another name.",
        code="DELTA_TABLE_ALREADY_EXISTS",
        table=name,
    )


def _missing(name: str) -> NotFound:
    return NotFound(
        f"Table {name} cannot be replaced as it does not exist. Use CREATE OR REPLACE TABLE … CLONE.",
        code="DELTA_CANNOT_REPLACE_MISSING_TABLE",
        table=name,
    )


def _rows(done: Cloned) -> list[tuple[int, ...]]:
    return [tuple(done.metrics.values())]


def _place_of(entry: JavaObject, name: str) -> str:
    if is_view(entry) or not is_delta(entry):
        raise _takes_no_place(name)
    return location_of(entry)


def _takes_no_place(name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{name} is no Delta table, and a clone cannot take its place. Drop it first, or choose another name.",
        code="DELTA_NOT_A_DELTA_TABLE",
        table=name,
    )


def _cloned(spark: SparkSession, request: NamedCloneRequest, target: Table, source: Table | None) -> Cloned:
    with shown(target.clock) as progress, quiet_errors(spark):
        source_files = _source(spark, request, source, progress)
        return clone(source_files, target.begin(), target.commit, partial(_copied, spark, progress=progress), request.clone)


# -- the source --------------------------------------------------------------------------------------------------------------


def _source(spark: SparkSession, request: NamedCloneRequest, table: Table | None, progress: Progress) -> CloneSource:
    named = table_named(spark, request.source) if table is None else None
    table = table if named is None else named.table
    if table is not None:
        newest = table.snapshot()
        timestamp = None if request.timestamp is None else parsed_timestamp(spark, request.timestamp)
        snapshot = newest if request.version is None and timestamp is None else table.snapshot(request.version, timestamp)
        name = f"delta.`{hadoop_path(table.url)}`" if named is None or named.is_by_path else named.full_name
        return source_of_snapshot(snapshot, newest.version, name)
    return _folder(spark, request, progress)


def _folder(spark: SparkSession, request: NamedCloneRequest, progress: Progress) -> CloneSource:
    entry, name = catalog_table(spark, request.source), ".".join(request.source)
    if entry is not None:
        provider, name = "view" if entry.is_view else entry.provider, entry.name
        table = table_at(spark, entry.location, {}) if provider == "parquet" else None
    else:
        provider, path = source_folder(spark, request.source)
        table = table_at(spark, path, {}) if provider in ("parquet", "iceberg") else None
        name = f"{provider}.`{path}`"
        if provider == "delta":
            raise NotFound(f"{path} is not a Delta table. Check the path.", code="DELTA_TABLE_NOT_FOUND", table=path)
    travels = request.version is not None or request.timestamp is not None
    if table is None or travels:
        reason = "" if table is None else ", which has no versions"
        raise InvalidRequest(
            f"Unsupported clone source '{name}', whose format is {provider}{reason}. Delta tables at any version, Parquet, and Iceberg "
            "tables by their path, as they are now, can be cloned; write anything else as a Delta table.",
            code="TABLE_OR_VIEW_NOT_FOUND" if entry is None and travels else "DELTA_CLONE_UNSUPPORTED_SOURCE",
            table=name,
        )
    folder = folder_request(spark, StructType(()), True)
    if provider == "iceberg":
        iceberg = iceberg_table(
            table.store, IcebergRequest(configuration=folder.configuration, time_zone=folder.time_zone), progress
        )
        return source_of_folder(iceberg, table.store, table.clock, name)
    if entry is not None:
        folder = folder_of_entry(spark, entry, table, folder)
    return source_of_folder(parquet_table(table.store, folder, progress), table.store, table.clock, name)


# -- copies ------------------------------------------------------------------------------------------------------------------


def _copied(spark: SparkSession, source: LogStore, target: LogStore, copies: Sequence[FileCopy], progress: Progress) -> int:
    """A `tahoe.ops.copies.clone.Copier` that runs Spark tasks."""
    little = len(copies) <= _FEW and sum(file.size or 0 for file in copies) <= _LITTLE
    if little or any(store.url.startswith("memory:") for store in (source, target)):
        return copied_here(source, target, copies, progress)
    with jobs_shown_by(spark, progress):
        return sum(raised(run_on(spark, copy_file, copies, source, target)))
