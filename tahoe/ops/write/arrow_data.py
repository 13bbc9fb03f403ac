"""The forms in which users pass rows: Arrow data, frames of pandas and Polars, relations of DuckDB, other tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Protocol, TypeAlias

import pyarrow as pa

from tahoe.base.exceptions import InvalidRequest
from tahoe.schema.arrow_values import empty_table
from tahoe.schema.types import StructType


class ArrowStream(Protocol):
    """Any object with the Arrow PyCapsule interface: frames of pandas, Polars, DuckDB relations, …"""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


ArrowData: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream


def as_table(data: ArrowData) -> pa.Table:
    """Return the data in memory; a stream is read to its end."""
    tables, schema = tables_of(data)
    return pa.concat_tables([empty_table(schema), *tables])


def in_hand(data: ArrowData, schema: StructType | None = None) -> pa.Table | pa.RecordBatch | pa.RecordBatchReader:
    """Return the data as an Arrow object, without a pandas frame's unnamed index, which is not a column of the user's.

    A named index becomes a column of that name, as pandas itself converts it.

    Args:
        schema: of the table; columns that it has are kept.

    Raises `InvalidRequest` for objects that are no Arrow data.
    """
    if not isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        if not hasattr(data, "__arrow_c_stream__"):
            lazy = " Collect a lazy frame first." if hasattr(data, "collect") else ""
            raise InvalidRequest(
                f"Rows must come as Arrow data, found {type(data).__name__}; give a pyarrow Table or RecordBatchReader, a frame of "
                f"pandas (2.2 or newer) or Polars, or whatever else has __arrow_c_stream__.{lazy}",
                code="TAHOE_NOT_ARROW_DATA",
            )
        data = pa.RecordBatchReader.from_stream(data)
    indexes = {name for name in _unnamed_indexes(data.schema) if schema is None or schema.find(name) is None}
    if not indexes:
        return data
    names = [name for name in data.schema.names if name not in indexes]
    if not isinstance(data, pa.RecordBatchReader):
        return data.select(names)
    columns = pa.schema([data.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(columns, (batch.select(names) for batch in data))


def _unnamed_indexes(schema: pa.Schema) -> list[str]:
    """Return the columns that pandas made from an unnamed index, according to its metadata in the schema."""
    pandas_metadata = (schema.metadata or {}).get(b"pandas")
    if pandas_metadata is None:
        return []
    try:
        indexes = json.loads(pandas_metadata)["index_columns"]
    except (ValueError, TypeError, KeyError):
        return []  # not written by pandas
    return [name for name in indexes if isinstance(name, str) and _UNNAMED_INDEX.fullmatch(name)]


_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


def tables_of(data: ArrowData, schema: StructType | None = None) -> tuple[Iterable[pa.Table], pa.Schema]:
    """Return the data as tables without an unnamed index, and their schema; everything but a stream is one table."""
    data = in_hand(data, schema)
    if isinstance(data, pa.Table):
        return [data], data.schema
    if isinstance(data, pa.RecordBatch):
        return [pa.Table.from_batches([data])], data.schema
    return (pa.Table.from_batches([batch]) for batch in data), data.schema
