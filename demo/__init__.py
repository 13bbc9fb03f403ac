"""The demonstration (`make demo`): a year of flights from CSV to gold, read back by every available engine.

landing/2013-01.csv … ─► bronze (as delivered) ─► silver (typed, by month) ─► gold (joined, by month, UniForm on) ◄─ audit (MERGE)
                                                                               │
                                          Delta: Spark, Tahoe, deltalake, DuckDB ┴ Iceberg: PyIceberg, DuckDB
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["CATALOG", "IDENTIFIER", "OUTPUT", "STREAMED"]

OUTPUT = Path("demo-output").resolve()

# The Iceberg catalog, a SQLite file. PyIceberg reads the names of catalogs from the environment when it is imported.
CATALOG = "demo"
IDENTIFIER = "flights.gold"
STREAMED = "flights.streamed"
os.environ.update(
    {
        "PYICEBERG_CATALOG__DEMO__TYPE": "sql",
        "PYICEBERG_CATALOG__DEMO__URI": f"sqlite:///{OUTPUT}/catalog.db",
        "PYICEBERG_CATALOG__DEMO__WAREHOUSE": f"file://{OUTPUT}/warehouse",
    }
)
