"""`spark.catalog`: `createTable` creates an empty table, or a name for an existing one; `refreshTable` runs REFRESH TABLE, `tableExists`
supports paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import Catalog
from pyspark.sql.types import StructType as SparkStruct

from tahoe.schema.types import StructType
from tahoe.spark.commands.create import TableDefinition
from tahoe.spark.commands.named import Creation, make_table
from tahoe.spark.entry_points.catalog_statements import wrap_statements
from tahoe.spark.entry_points.wrapping import bound_arguments, enabled_table, is_delta, is_enabled, wrap
from tahoe.spark.jvm.storage import table_at
from tahoe.spark.jvm.translate import from_spark_schema
from tahoe.spark.names.entries import parts_of, path_of
from tahoe.spark.names.new_entries import in_session_catalog
from tahoe.spark.names.options import path_option


def wrap_catalog() -> None:
    """Add Delta support to ``spark.catalog``, in sessions where it is enabled."""
    wrap(Catalog, "createTable", _create_table)
    wrap(Catalog, "refreshTable", _refresh_table)
    wrap(Catalog, "tableExists", table_exists)
    wrap_statements(Catalog)


def _create_table(original: Callable[..., DataFrame], catalog: Any, *positional: Any, **named: Any) -> DataFrame:
    spark: SparkSession = catalog._sparkSession
    arguments = bound_arguments(original, catalog, *positional, **named)
    is_delta_table = is_delta(spark, arguments["source"])
    is_ours = is_delta_table and in_session_catalog(spark, parts_of(spark, arguments["tableName"]))
    creation = requested_creation(spark, arguments) if is_ours else None
    if creation is None:
        return original(catalog, *positional, **named)
    make_table(spark, creation)
    return spark.table(arguments["tableName"])


def requested_creation(spark: Any, arguments: Mapping[str, Any]) -> Creation | None:
    """Return the request of a call of `createTable`; None for a schema that PySpark refuses."""
    schema, options = arguments["schema"], arguments["options"]
    if schema is not None and not isinstance(schema, SparkStruct):
        return None
    columns = StructType() if schema is None else from_spark_schema(schema)
    location = arguments["path"] if arguments["path"] is not None else path_option(options)
    definition = TableDefinition(columns, comment=arguments["description"] or None)
    return Creation(parts_of(spark, arguments["tableName"]), "create", definition, location, options)


def table_exists(original: Callable[..., bool], catalog: Any, tableName: str, dbName: str | None = None) -> bool:  # noqa: N803 - PySpark's
    """Run ``spark.catalog.tableExists`` of either kind of session: a path exists if a Delta table is there."""
    spark = catalog._sparkSession
    path = path_of(parts_of(spark, tableName)) if is_enabled(spark) and dbName is None else None
    return original(catalog, tableName, dbName) if path is None else table_at(spark, path, {}).exists()


def _refresh_table(original: Callable[..., None], catalog: Any, tableName: str) -> None:  # noqa: N803 - PySpark's name
    spark: SparkSession = catalog._sparkSession
    named = enabled_table(spark, tableName)
    if named is None:
        original(catalog, tableName)
    else:
        spark.sql(f"REFRESH TABLE {named.name}")
