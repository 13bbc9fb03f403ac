"""CLONE on Spark: resolves names of the session's catalog to a source and a clone; the core does the rest (`tahoe.ops.copies.clone`).

    source   a Delta, Parquet or Iceberg table, or `format.`/path` `          clone   a path; a name, with or without a location

Executors copy the files of a large deep clone, some at a time; the driver's own threads copy small amounts faster than a job starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.progress import Progress, shown
from tahoe.ops.copies.clone import Cloned, CloneRequest, clone
from tahoe.ops.copies.clone_source import CloneSource, FileCopy, source_of_folder, source_of_snapshot
from tahoe.ops.copies.copy_files import copied_here, copy_file
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table
from tahoe.ops.copies.parquet_folder import parquet_table
from tahoe.schema.types import StructType
from tahoe.spark.commands.row_changes import refuse_connect, user_metadata_of
from tahoe.spark.copies.convert import folder_of_entry, folder_request, source_folder
from tahoe.spark.executors.shipped import raised, run_each
from tahoe.spark.jvm.bridge import JavaObject
from tahoe.spark.jvm.errors import told_once
from tahoe.spark.jvm.job_progress import shown_jobs
from tahoe.spark.jvm.storage import hadoop_path, table_at
from tahoe.spark.names.entries import entry_at, entry_of, is_delta, location_of, path_of, table_named
from tahoe.spark.names.new_entries import (
    full_identifier,
    is_view,
    new_entry,
    refuse_odd_name,
    uri_of_new,
    uri_of_text,
)
from tahoe.spark.names.settings import look_at_settings
from tahoe.spark.names.snapshots import moment
from tahoe.store.location import table_url
from tahoe.store.log_store import LogStore

__all__ = ["CLONE_ROW", "AskedClone", "clone_named"]

CLONE_ROW = (
    "source_table_size bigint, source_num_of_files bigint, num_removed_files bigint, num_copied_files bigint, removed_files_size bigint, "
    "copied_files_size bigint"
)
"""The result columns of CLONE."""

_LITTLE = 64 << 20
"""The driver itself copies up to this many bytes, and up to `_FEW` files."""
_FEW = 64


@dataclass(frozen=True, slots=True)
class AskedClone:
    """A request to clone a table.

    Args:
        target: the identifiers of the clone's name.
        source: the identifiers of the source's name.
        request: whether it is shallow, the handling of an existing table, and properties.
        version, timestamp: of the source; Spark parses the timestamp.
        location: of a clone with a name.
    """

    target: tuple[str, ...]
    source: tuple[str, ...]
    request: CloneRequest
    version: int | None = None
    timestamp: str | None = None
    location: str | None = field(default=None)


def clone_named(spark: SparkSession, asked: AskedClone, source: Table | None = None) -> tuple[list[tuple[int, ...]], Table]:
    """Create the clone, and its catalog entry if it has a name; return the result row and the clone.

    Args:
        source: the source table, if it is known already.

    Raises: the errors of `tahoe.ops.copies.clone.clone` and `tahoe.ops.copies.parquet_folder.parquet_table`;
        ``DELTA_CLONE_UNSUPPORTED_SOURCE``; ``DELTA_CLONE_AMBIGUOUS_TARGET``: a path and a location; PySpark's ``AnalysisException`` for a
        name that exists, or is missing.
    """
    refuse_connect(spark, "CLONE")
    look_at_settings(spark)
    path = path_of(asked.target)
    if path is not None:
        if asked.location is not None and table_url(asked.location) != table_url(path):
            raise InvalidRequest(
                f"Two paths were provided as the CLONE target so it is ambiguous which to use: '{path}' as the table and '{asked.location}' "
                "as its location. Leave one out.",
                code="DELTA_CLONE_AMBIGUOUS_TARGET",
                table=path,
            )
        target = table_at(spark, path, {})
        return _rows(_cloned(spark, asked, target, source)), target
    identifier = full_identifier(spark, asked.target)
    catalog = spark._jsparkSession.sessionState().catalog()
    entry = entry_at(catalog, identifier)
    if entry is not None:
        if asked.request.how == "create":
            raise _exists(str(identifier.unquotedString()))
        target = table_at(spark, _place_of(entry, str(identifier.unquotedString())), {})
        return ([] if asked.request.how == "createIfNotExists" else _rows(_cloned(spark, asked, target, source))), target
    if asked.request.how == "replace":
        raise _missing(str(identifier.unquotedString()))
    refuse_odd_name(spark, identifier)
    uri = uri_of_new(spark, identifier) if asked.location is None else uri_of_text(spark, asked.location)
    entry = new_entry(spark, identifier, uri, managed=asked.location is None, comment=None)
    target = table_at(spark, location_of(entry), {})
    rows = _rows(_cloned(spark, asked, target, source))
    catalog.createTable(entry, asked.request.how == "createIfNotExists", False)
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
        raise InvalidRequest(
            f"{name} is no Delta table, and a clone cannot take its place. Drop it first, or choose another name.",
            code="DELTA_NOT_A_DELTA_TABLE",
            table=name,
        )
    return location_of(entry)


def _cloned(spark: SparkSession, asked: AskedClone, target: Table, source: Table | None) -> Cloned:
    commit = partial(target.commit, user_metadata=user_metadata_of(spark))
    with shown(target.clock) as progress, told_once(spark):
        found = _source(spark, asked, source, progress)
        return clone(found, target.begin(), commit, partial(_copied, spark), asked.request, progress)


# -- the source --------------------------------------------------------------------------------------------------------------


def _source(spark: SparkSession, asked: AskedClone, known: Table | None, progress: Progress) -> CloneSource:
    named = table_named(spark, asked.source) if known is None else None
    table = known if named is None else named.table
    if table is not None:
        newest = table.snapshot()
        timestamp = None if asked.timestamp is None else moment(spark, asked.timestamp)
        snapshot = newest if asked.version is None and timestamp is None else table.snapshot(asked.version, timestamp)
        name = f"delta.`{hadoop_path(table.url)}`" if named is None or named.entry is None else named.full_name
        return source_of_snapshot(snapshot, newest.version, name)
    return _folder(spark, asked, progress)


def _folder(spark: SparkSession, asked: AskedClone, progress: Progress) -> CloneSource:
    entry, name = entry_of(spark, asked.source), ".".join(asked.source)
    if entry is not None:
        provider = str(entry.provider().get()).lower() if entry.provider().isDefined() else "view"
        table, name = (
            table_at(spark, location_of(entry), {}) if provider == "parquet" else None,
            str(entry.identifier().unquotedString()),
        )
    else:
        provider, path = source_folder(asked.source)
        table = table_at(spark, path, {}) if provider in ("parquet", "iceberg") else None
        name = f"{provider}.`{path}`"
        if provider == "delta":
            raise NotFound(f"There is no Delta table at {path}. Check the path.", code="DELTA_TABLE_NOT_FOUND", table=path)
    travels = asked.version is not None or asked.timestamp is not None
    if table is None or travels:
        reason = "" if table is None else ", which has no versions"
        raise InvalidRequest(
            f"Unsupported clone source '{name}', whose format is {provider}{reason}. Delta tables at any version, Parquet, and Iceberg "
            "tables by their path, as they are now, can be cloned; write anything else as a Delta table.",
            code="TABLE_OR_VIEW_NOT_FOUND" if entry is None and travels else "DELTA_CLONE_UNSUPPORTED_SOURCE",
            table=name,
        )
    request = folder_request(spark, StructType(()), True)
    if provider == "iceberg":
        found = iceberg_table(
            table.store, IcebergRequest(configuration=request.configuration, time_zone=request.time_zone), progress
        )
        return source_of_folder(found, table.store, table.clock, name)
    if entry is not None:
        request = folder_of_entry(spark, entry, table, request)
    return source_of_folder(parquet_table(table.store, request, progress), table.store, table.clock, name)


# -- copies ------------------------------------------------------------------------------------------------------------------


def _copied(spark: SparkSession, source: LogStore, target: LogStore, copies: Sequence[FileCopy], progress: Progress) -> int:
    """A `tahoe.ops.copies.clone.Copier` that runs Spark tasks."""
    little = len(copies) <= _FEW and sum(one.size or 0 for one in copies) <= _LITTLE
    if little or any(store.url.startswith("memory:") for store in (source, target)):
        return copied_here(source, target, copies, progress)
    with shown_jobs(spark):
        return sum(raised(run_each(spark.sparkContext, copy_file, copies, source, target)))
