"""What a portable data source is given: options, in any case of letters, and the table that they name."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.exceptions import InvalidRequest, Unsupported
from tahoe.schema.types import StructType
from tahoe.schema.walk import geospatial_paths
from tahoe.spark.jvm.storage import storage_options
from tahoe.table import Table

__all__ = ["option_of", "partition_columns", "refuse_geospatial", "storage_settings", "table_of"]


def table_of(path: str, options: Mapping[str, str]) -> Table:
    """The table at a path. Raises `InvalidRequest` (``DELTA_PATH_DOES_NOT_EXIST``) where none is named."""
    if not path:
        raise InvalidRequest("Name the table's path: load(path) or save(path).", code="DELTA_PATH_DOES_NOT_EXIST")
    return Table(path, storage_options=storage_settings(path, options))


def storage_settings(path: str, options: Mapping[str, str]) -> dict[str, str]:
    """What the options say of the storage of a path."""
    return storage_options(path, {key: value for key, value in options.items() if key.startswith("fs.")})


def refuse_geospatial(schema: StructType) -> None:
    """Raise `Unsupported` for geometries and geographies: PySpark's Python data sources hand Spark no such values."""
    columns = geospatial_paths(schema)
    if columns:
        raise Unsupported(
            f"Geospatial types are not supported by the portable data source: column {', '.join(columns)}. Use a classic session after "
            "tahoe.enable(spark), or read and write without Spark (tahoe.Table), with values in Well-Known Binary.",
            code="DELTA_GEOSPATIAL_NOT_SUPPORTED",
            columns=columns,
        )


def option_of(options: Mapping[str, str], name: str, default: str) -> str:
    """An option by its name."""
    return next((value for key, value in options.items() if key.lower() == name.lower()), default)


def partition_columns(options: Mapping[str, str]) -> list[str] | None:
    """The columns that the option ``partitionBy`` names; None for none."""
    return [name.strip() for name in option_of(options, "partitionBy", "").split(",") if name.strip()] or None
