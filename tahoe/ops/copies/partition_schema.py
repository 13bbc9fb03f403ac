"""Convert a caller's mapping from partition column names to types into a schema."""

from __future__ import annotations

from collections.abc import Mapping

from tahoe.schema.schema_forms import schema_of
from tahoe.schema.types import StructType


def partition_schema(columns: Mapping[str, str] | StructType | None) -> StructType:
    """Return the partition columns as a schema.

    Args:
        columns: name → type, by its name in the Delta protocol or in SQL: ``date``, ``integer``, ``bigint``, ``decimal(10,2)``.

    Raises `Unsupported` (``DELTA_UNSUPPORTED_DATA_TYPES``): there is no such type.
    """
    return schema_of(columns or {})
