"""CONVERT TO DELTA on Spark: a folder or an Iceberg table by path, or a Parquet table of the catalog, whose entry becomes a Delta entry.

name ─┬─ parquet.`/path`, iceberg.`/path` ─────────────► the core converts the folder
      ├─ a Parquet entry ─► columns, partitions ───────► the core converts its folder ─► the entry becomes delta
      └─ a Delta table, or delta.`/path` ──────────────► nothing to do

The driver reads many footers in parallel; no data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType as SparkStruct

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, NotFound
from tahoe.base.progress import Progress, shown
from tahoe.ops.copies.convert import Converted, ConvertRequest, convert
from tahoe.ops.copies.iceberg_table import IcebergRequest, iceberg_table, refuse_partition_columns
from tahoe.ops.copies.parquet_folder import ConvertibleTable, FolderRequest, parquet_table
from tahoe.schema.types import DataType, StructField, StructType
from tahoe.spark.commands.write_options import WriterCall, insert_request
from tahoe.spark.copies.catalog_table import CatalogTable, catalog_table
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.settings import is_on, settings_of
from tahoe.spark.versions.connect_frames import parsed_type
from tahoe.spark.write.idempotent import without_application

_CONF = "spark.databricks.delta.convert."
_HIVE_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_TRANSIENT = "transient_lastDdlTime"


def convert_named(
    spark: SparkSession,
    parts: Sequence[str],
    partition_schema: str | SparkStruct | None = None,
    *,
    statistics: bool = True,
) -> Table:
    """Convert the named table to a Delta table, and return it.

    Args:
        parts: the identifiers of a name in the catalog, of ``parquet.`/path` `` or of ``iceberg.`/path` ``.
        partition_schema: the partition columns in the folder names, or their DDL; None if there are none, or the catalog has them.

    Raises:
        InvalidRequest: ``DELTA_MISSING_PROVIDER_FOR_CONVERT``, ``DELTA_CONVERT_NON_PARQUET_TABLE``: the table has another format;
            ``DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER``, ``DELTA_CONVERT_METASTORE_METADATA_MISMATCH``: the catalog differs; and the
            errors of `tahoe.ops.copies.convert.convert` and `tahoe.ops.copies.iceberg_table.iceberg_table`.
        NotFound: ``TABLE_OR_VIEW_NOT_FOUND``.
    """
    entry = catalog_table(spark, parts)
    if isinstance(partition_schema, str):
        partition_schema = cast(SparkStruct, parsed_type(spark, partition_schema))
    columns = None if partition_schema is None else from_spark_schema(partition_schema)
    if entry is not None:
        return _of_catalog(spark, entry, columns, statistics)
    provider, path = source_folder(spark, parts)
    table = table_at(spark, path, {})
    if provider == "delta":
        return table
    if provider not in ("parquet", "iceberg"):
        raise _other_format(".".join(parts), provider)
    request = folder_request(spark, columns or StructType(()), statistics)
    look: Callable[[Progress], ConvertibleTable]
    if provider == "iceberg":
        refuse_partition_columns(path, columns)
        look = partial(iceberg_table, table.store, IcebergRequest(statistics, request.configuration, request.time_zone))
    else:
        look = partial(parquet_table, table.store, request)
    _convert(spark, table, look, ConvertRequest(statistics, request.configuration, _names(columns)))
    return table


def source_folder(spark: SparkSession, parts: Sequence[str]) -> tuple[str, str]:
    """Return the format and path in ``parquet.`/path` ``.

    Raises:
        InvalidRequest: ``DELTA_MISSING_PROVIDER_FOR_CONVERT``: a path without a format.
        NotFound: ``TABLE_OR_VIEW_NOT_FOUND``: a name that the catalog lacks.
    """
    name = ".".join(parts)
    if len(parts) == 2 and "/" in parts[1]:
        return parts[0].lower(), parts[1]
    if len(parts) == 1 and "/" in parts[0]:
        raise InvalidRequest(
            f"CONVERT TO DELTA only supports parquet tables. Please rewrite your target as parquet.`{name}` if it's a parquet directory.",
            code="DELTA_MISSING_PROVIDER_FOR_CONVERT",
            table=name,
        )
    raise NotFound(
        f"There is no table '{name}'. Check the name, or the database that is in use; a folder is named as parquet.`/path`.",
        code="TABLE_OR_VIEW_NOT_FOUND",
        table=name,
    )


def _convert(
    spark: SparkSession, table: Table, look: Callable[[Progress], ConvertibleTable], request: ConvertRequest
) -> Converted:
    with shown(table.clock) as progress:
        return convert(table.begin, table.commit, look, request, progress)


def folder_request(
    spark: SparkSession, columns: StructType, statistics: bool, properties: Mapping[str, str] | None = None
) -> FolderRequest:
    """Return the request to read a folder, with the session's settings."""
    settings = settings_of(spark)
    return FolderRequest(
        partition_schema=columns,
        statistics=statistics,
        time_zone=str(spark.conf.get("spark.sql.session.timeZone")),
        bad_values_are_null=_is_on(spark, "partitionValues.ignoreCastFailure", False),
        use_stream_log=_is_on(spark, "useMetadataLog", True),
        configuration={
            **insert_request(WriterCall("Append"), without_application(settings)).options.properties,
            **(properties or {}),
        },
    )


def _is_on(spark: SparkSession, name: str, default: bool) -> bool:
    return is_on(spark, _CONF + name, usual=default)


def _names(columns: StructType | None) -> list[str]:
    """Return the partition columns that the user named, for the history."""
    return [] if columns is None else columns.names


def _other_format(name: str, provider: str) -> InvalidRequest:
    return InvalidRequest(
        f"CONVERT TO DELTA only supports parquet tables, and Iceberg tables by their path, but you are trying to convert a {provider} "
        f"source: {name}. Read it with Spark, and write it as a Delta table.",
        code="DELTA_CONVERT_NON_PARQUET_TABLE",
        table=name,
    )


# -- tables of the catalog -----------------------------------------------------------------------------------------------------


def _of_catalog(spark: SparkSession, entry: CatalogTable, columns: StructType | None, statistics: bool) -> Table:
    if entry.is_view:
        raise InvalidRequest(
            f"Operation not allowed: `Converting a view to a Delta table` is not supported: {entry.name} is a view. "
            "Convert the table below it.",
            code="DELTA_OPERATION_NOT_ALLOWED",
            table=entry.name,
        )
    if not entry.is_delta and not entry.is_parquet:
        raise _other_format(entry.name, entry.provider)
    table = table_at(spark, entry.location, {})
    if entry.is_delta:
        return table
    partitioning = entry.partition_schema()
    if columns is not None and [_plain(column) for column in columns] != [_plain(column) for column in partitioning]:
        raise InvalidRequest(
            f"CONVERT TO DELTA was called with a partition schema different from the partition schema inferred from the catalog, please "
            f"avoid providing the schema so that the partition schema can be chosen from the catalog: catalog {partitioning}, provided "
            f"{columns}; table {entry.name}.",
            code="DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
            table=entry.name,
        )
    entry.check_can_become_delta()
    properties = entry.properties()
    if table.begin().snapshot is not None:
        _adopt_properties(spark, table, entry.name, properties)
    else:
        folder = folder_of_entry(spark, entry, table, folder_request(spark, partitioning, statistics, properties))
        request = ConvertRequest(statistics, folder.configuration, _names(columns), entry.quoted)
        _convert(spark, table, partial(parquet_table, table.store, folder), request)
    entry.become_delta()
    return table


def _plain(column: StructField) -> tuple[str, DataType]:
    return column.name, column.data_type


def folder_of_entry(spark: SparkSession, entry: CatalogTable, table: Table, request: FolderRequest) -> FolderRequest:
    """Return the request with the columns and the partitions in the catalog."""
    request = replace(request, partition_schema=entry.partition_schema())
    if _is_on(spark, "useCatalogSchema", True):
        request = replace(request, schema=entry.schema())
    if not request.partition_schema.fields or not _is_on(spark, "useCatalogPartitions", True):
        return request
    folders = entry.folders_below(table.url)
    if not folders:
        raise InvalidRequest(
            f"CONVERT TO DELTA: no partition information was found in the catalog for table {entry.name}. Let the catalog find them "
            f"(MSCK REPAIR TABLE), or set {_CONF}useCatalogPartitions to false, so that the folders define the partitions.",
            code="DELTA_CONVERSION_NO_PARTITION_FOUND",
            table=entry.name,
        )
    return replace(request, folders=frozenset(folders))


def _adopt_properties(spark: SparkSession, table: Table, name: str, properties: Mapping[str, str]) -> None:
    """Handle a folder that is a Delta table already, with an entry of another format: the entry's properties become the table's."""
    transaction = table.begin()
    existing = dict(transaction.existing().metadata.configuration)
    if {**existing, **properties} == existing:
        return
    if existing and _is_on(spark, "metadataCheck.enabled", True):
        raise InvalidRequest(
            f"You are trying to convert a table which already has a delta log where the table properties in the catalog don't match the "
            f"configuration in the delta log: table {name} has {dict(properties)} in the catalog, and {existing} in the log of {table.url}. "
            f"Make the properties in the catalog those of the log, or set {_CONF}metadataCheck.enabled to false.",
            code="DELTA_CONVERT_METASTORE_METADATA_MISMATCH",
            table=name,
        )
    table.set_properties(dict(properties))
