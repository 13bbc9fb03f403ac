"""Conversion of existing files and copies of tables, without Spark: functions that are methods of `Table`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from tahoe.base.exceptions import NotFound
from tahoe.base.lazy import late_modules
from tahoe.base.method_options import arguments_of
from tahoe.base.progress import Progress, shown
from tahoe.ops.tables.requests import CloneOptions, ConvertOptions, OpenTable

if TYPE_CHECKING:
    from tahoe.ops.copies import clone as clones
    from tahoe.ops.copies import (
        clone_source,
        copy_files,
        iceberg_table,
        parquet_folder,
        partition_schema,
        symlink_manifests,
    )
    from tahoe.ops.copies import convert as conversions
    from tahoe.store import location, outside
else:
    clones, clone_source, conversions, copy_files = late_modules(
        "tahoe.ops.copies", "clone", "clone_source", "convert", "copy_files"
    )
    iceberg_table, parquet_folder, partition_schema, symlink_manifests = late_modules(
        "tahoe.ops.copies", "iceberg_table", "parquet_folder", "partition_schema", "symlink_manifests"
    )
    location, outside = late_modules("tahoe.store", "location", "outside")


@arguments_of(ConvertOptions)
def convert_to_delta(self: OpenTable, options: ConvertOptions) -> conversions.Converted:
    """Convert the Parquet files or the Iceberg table at this path to a Delta table in place; a Delta table stays unchanged.

    ``tahoe.Table("/data/events").convert_to_delta({"day": "date"})``

    Returns: the result; errors are those of `tahoe.ops.copies.convert.convert`, `tahoe.ops.copies.parquet_folder.parquet_table` and
        `tahoe.ops.copies.iceberg_table.iceberg_table`; ``DELTA_PARTITION_SCHEMA_IN_ICEBERG_TABLES``.
    """
    request = conversions.ConvertRequest(options.statistics, options.properties or {}, dry_run=options.dry_run)
    columns = partition_schema.partition_schema(options.partition_by)
    folder = parquet_folder.FolderRequest(
        columns,
        options.statistics,
        use_stream_log=options.use_stream_log,
        configuration=request.properties,
        time_zone=self.time_zone,
    )

    def look(progress: Progress) -> parquet_folder.ConvertibleTable:
        if options.source == "iceberg" or (options.source is None and iceberg_table.is_iceberg(self.store)):
            iceberg_table.refuse_partition_columns(self.store.url, columns)
            iceberg = iceberg_table.IcebergRequest(options.statistics, request.properties, self.time_zone)
            return iceberg_table.iceberg_table(self.store, iceberg, progress)
        return parquet_folder.parquet_table(self.store, folder, progress)

    commit = partial(self.commit, user_metadata=options.user_metadata)
    with shown(self.clock) as progress:
        return conversions.convert(self.begin, commit, look, request, progress)


@arguments_of(CloneOptions)
def clone(self: OpenTable, options: CloneOptions) -> clones.Cloned:
    """Create an independent table with the rows of this one, or of the Iceberg table at this path.

    Repeating a deep clone, with `replace`, copies only new files. A shallow clone refers to the files of this table; a record of the clone
    here makes VACUUM keep them.

    Returns: the result, with the metrics of the SQL statement; errors are those of `tahoe.ops.copies.clone.clone`.
    """
    target = options.target
    if isinstance(target, str | os.PathLike):
        target = type(self)(target, storage_options=options.storage_options, clock=self.clock)  # type: ignore[call-arg]
    how = "createOrReplace" if options.replace else "create"
    request = clones.CloneRequest(options.shallow, how, options.properties or {}, options.dry_run)
    commit = partial(target.commit, user_metadata=options.user_metadata)
    with shown(self.clock) as progress:
        source = _clone_source(self, options, progress)
        return clones.clone(source, target.begin(), commit, partial(copy_files.copied_here, progress=progress), request)


def _clone_source(table: OpenTable, options: CloneOptions, progress: Progress) -> clone_source.CloneSource:
    """Return the table as the source; an Iceberg table if there is no Delta table."""
    is_newest = options.version is None and options.timestamp is None
    try:
        newest = table.snapshot()
    except NotFound as error:
        if error.code != "DELTA_TABLE_NOT_FOUND" or not is_newest or not iceberg_table.is_iceberg(table.store):
            raise
        converted = iceberg_table.iceberg_table(table.store, iceberg_table.IcebergRequest(time_zone=table.time_zone), progress)
        return clone_source.source_of_folder(converted, table.store, table.clock)
    snapshot = newest if is_newest else table.snapshot(options.version, options.timestamp)
    return clone_source.source_of_snapshot(snapshot, newest.version)


def generate(self: OpenTable, mode: str = "symlink_format_manifest", *, dry_run: bool = False) -> symlink_manifests.Generated:
    """Write manifests of the live files for readers that do not read the log; see `tahoe.ops.copies.symlink_manifests`.

    With ``delta.compatibility.symlinkFormatManifest.enabled`` each commit updates them.
    """
    with shown(self.clock) as progress:
        return symlink_manifests.generate(self.snapshot(), mode, progress, dry_run=dry_run)


def allow_shallow_clone(self: OpenTable, clone: str) -> None:
    """Register a shallow clone of this table that another writer made, so that it can read its files and VACUUM keeps them.

    Args:
        clone: the path or URL of the clone.
    """
    outside.record_clone(self.store, outside.CloneRecord(location.table_url(clone), None))
