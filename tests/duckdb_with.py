"""DuckDB with extensions that come as Python packages, so that nothing is downloaded."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import duckdb

__all__ = ["duckdb_with"]


def duckdb_with(*extensions: str) -> duckdb.DuckDBPyConnection:
    """A new database that has loaded these extensions, and no others by itself; its time zone is UTC."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    for name in extensions:
        connection.execute(f"LOAD '{_library(name)}'")
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    return connection


def _library(name: str) -> Path:
    (library,) = Path(sysconfig.get_path("purelib"), f"duckdb_extension_{name}").rglob(f"{name}.duckdb_extension")
    return library
