"""The engines that are not ours, each a function from a path and a version to Arrow; and one form in which rows are compared."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa

from tests.duckdb_with import duckdb_with

__all__ = ["canonical", "read_deltalake", "read_duckdb", "read_polars", "restart_duckdb"]


def read_deltalake(path: str, version: int | None = None) -> pa.Table:
    """Through its query engine, which knows column mapping and deletion vectors; `to_pyarrow_table` does not."""
    table = deltalake.DeltaTable(path, version=version)
    return pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())


def read_duckdb(path: str, version: int | None = None) -> pa.Table:
    with _duckdb().cursor() as connection:
        if version is None:
            return connection.execute("SELECT * FROM delta_scan(?)", [path]).to_arrow_table()
        return connection.execute("SELECT * FROM delta_scan(?, version := ?)", [path, version]).to_arrow_table()


def restart_duckdb() -> None:
    """Have the next read open a new database: after an internal error DuckDB refuses everything else."""
    _duckdb.cache_clear()


def read_polars(path: str, version: int | None = None) -> pa.Table:
    return polars.scan_delta(path, version=version).collect().to_arrow()


def canonical(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in the order of their first column, each as (name, value) in the order of names, in values that compare."""
    names = sorted(rows.column_names)
    columns = [[(name, value) for value in _plain_values(rows[name])] for name in names]
    return sorted(zip(*columns, strict=True), key=repr) if names else [()] * rows.num_rows


def _plain_values(column: pa.ChunkedArray) -> list[Any]:
    values: list[Any] = column.to_pylist()
    return values if column.type in _PLAIN else [_plain(value) for value in values]


_PLAIN = (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.string(), pa.large_string(), pa.string_view())
"""Types whose values compare as they are."""


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, Decimal):
        return value.normalize()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [tuple(_plain(part) for part in item) if isinstance(item, tuple) else _plain(item) for item in value]
    return value


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One for all: to load the extension takes longer than most scans."""
    return duckdb_with("delta")
