"""Readers of Iceberg that are not ours, each a function from a table's folder to Arrow, by path and at a snapshot."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable

from tests.duckdb_with import duckdb_with

__all__ = ["duckdb_directory", "duckdb_iceberg", "pyiceberg_table", "read_pyiceberg"]


def pyiceberg_table(location: str) -> StaticTable:
    return StaticTable.from_metadata(location)


def read_pyiceberg(location: str, where: str | None = None, snapshot_id: int | None = None) -> pa.Table:
    """Args: location: of the metadata file; where: PyIceberg's own filter text."""
    table = pyiceberg_table(location)
    scan = table.scan(snapshot_id=snapshot_id) if where is None else table.scan(row_filter=where, snapshot_id=snapshot_id)
    return scan.to_arrow()


def duckdb_iceberg(location: str, where: str | None = None, snapshot_id: int | None = None, columns: str = "*") -> pa.Table:
    """Args: location: of the metadata file; where: a SQL condition."""
    at = "" if snapshot_id is None else f", snapshot_from_id = {snapshot_id}"
    with _connection().cursor() as connection:
        return connection.execute(
            f"SELECT {columns} FROM iceberg_scan(?{at}) {'' if where is None else f'WHERE {where}'}",
            [location.removeprefix("file://")],
        ).to_arrow_table()


def duckdb_directory(path: Path) -> pa.Table:
    """By the table's folder alone: ``version-hint.text`` leads on."""
    with _connection().cursor() as connection:
        return connection.execute("SELECT * FROM iceberg_scan(?)", [str(path)]).to_arrow_table()


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all: to load the extensions takes longer than most scans."""
    return duckdb_with("avro", "iceberg")
