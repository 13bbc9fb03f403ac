"""The columns of new data files that get Parquet bloom filters: those in the table's property.

``tahoe.bloomFilterColumns = 'key, address.city'``: for look-ups of single values in columns that rows are not sorted by (docs/design/023).
A setting that no longer fits the schema never fails a write; it is logged once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import signature
from typing import Any

from tahoe.base.exceptions import InvalidRequest
from tahoe.base.lazy import pq
from tahoe.protocol.config import TableConfig
from tahoe.protocol.statistics.collect import multipart_names
from tahoe.schema.types import ArrayType, MapType, PrimitiveType, StructField, leaves
from tahoe.settings.property_settings import property_text
from tahoe.settings.warn_once import warn_once

BLOOM_FILTER_COLUMNS = "tahoe.bloomFilterColumns"
_FALSE_POSITIVES = 0.01
_WITHOUT = ("boolean", "void", "variant")


def bloom_filter_columns(config: TableConfig) -> list[str]:
    """Return the Parquet paths of the columns that get a filter, with physical names; other entries of the property are logged once."""
    named = property_text(config.metadata.configuration, BLOOM_FILTER_COLUMNS) or ""
    if not named.strip():
        return []
    try:
        named_paths = {tuple(part.lower() for part in path): ".".join(path) for path in multipart_names(named)}
    except InvalidRequest as error:
        _log(config, f"is no list of columns ({error.message})")
        return []
    partitioned = {name.lower() for name in config.partition_columns}
    leaves_by_path = {tuple(field.name.lower() for field in leaf): leaf for leaf in leaves(config.schema) if _can_have_one(leaf)}
    matches = {path: leaf for path, leaf in leaves_by_path.items() if path in named_paths and path[0] not in partitioned}
    for path in named_paths.keys() - matches.keys():
        _log(config, f"names '{named_paths[path]}', which is no column of data files that can have a bloom filter")
    return [".".join(field.physical_name for field in leaf) for leaf in matches.values()]


def bloom_filter_options(paths: Sequence[str], rows: int) -> Mapping[str, Any]:
    """Return the bloom filter options of Arrow's Parquet writer.

    Args:
        paths: from `bloom_filter_columns`.
        rows: of a row group, the maximum number of distinct values.
    """
    if not paths or not rows:
        return {}
    if not _arrow_writes_them():
        warn_once(BLOOM_FILTER_COLUMNS, f"The property {BLOOM_FILTER_COLUMNS} is not followed: it needs a newer pyarrow.")
        return {}
    return {"bloom_filter_options": {path: {"ndv": rows, "fpp": _FALSE_POSITIVES} for path in paths}}


@cache
def _arrow_writes_them() -> bool:
    return "bloom_filter_options" in signature(pq.ParquetWriter.__init__).parameters


def _can_have_one(leaf: Sequence[StructField]) -> bool:
    data_type = leaf[-1].data_type
    if isinstance(data_type, ArrayType | MapType) or (isinstance(data_type, PrimitiveType) and data_type.name in _WITHOUT):
        return False
    return not any("." in field.physical_name for field in leaf)  # a dot separates struct fields in Parquet's settings


def _log(config: TableConfig, problem: str) -> None:
    warn_once(
        f"{BLOOM_FILTER_COLUMNS} {config.table} {problem}",
        f"The property {BLOOM_FILTER_COLUMNS} of table {config.table} {problem}.",
    )
