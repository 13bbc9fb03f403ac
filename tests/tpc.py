"""The tables of TPC-H and TPC-DS and their queries, as DuckDB's own generators make them: nothing of theirs is kept here."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.duckdb_with import duckdb_with

__all__ = ["REFRESHED", "generate", "queries", "tables"]

REFRESHED = ("item", "store_sales", "store_returns")
"""Some of the tables of TPC-DS that its data maintenance changes."""


def generate(name: str, scale: float) -> duckdb.DuckDBPyConnection:
    """A database with the tables of ``tpch`` or ``tpcds``.

    Args:
        scale: 1 is a gigabyte of text.
    """
    database = duckdb_with(name)
    database.execute(f"CALL {'dbgen' if name == 'tpch' else 'dsdgen'}(sf = {scale})")
    return database


def tables(database: duckdb.DuckDBPyConnection, folder: Path) -> dict[str, str]:
    """Each table as one Parquet file. Name → path."""
    actual = {}
    for (name,) in database.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall():
        actual[name] = str(folder / f"{name}.parquet")
        database.execute(f"COPY {name} TO '{actual[name]}' (FORMAT parquet)")
    return actual


def queries(database: duckdb.DuckDBPyConnection, name: str) -> dict[int, str]:
    """The queries of ``tpch`` or ``tpcds``, by number."""
    return dict(
        database.execute(f"SELECT query_nr, query FROM {name}_queries() ORDER BY 1").fetchall()[: 22 if name == "tpch" else 99]
    )
