"""Every engine at hand, asked for the rows of one table at one version, as Arrow."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

import tahoe
from demo.checksum import checksum

__all__ = ["Reading", "read_with_all"]


@dataclass(frozen=True)
class Reading:
    """What one engine found: how many rows, their checksum, and the seconds until they were Arrow."""

    engine: str
    format: str
    version: int
    rows: int
    columns: int
    checksum: str
    seconds: float


def read_with_all(spark: SparkSession, path: str, catalog: Catalog, identifier: str, version: int) -> Iterator[Reading]:
    """One `Reading` an engine, of the Delta version and of the Iceberg snapshot that stands for it."""
    metadata_file = str(Path(path) / "metadata" / f"v{version}.metadata.json")
    snapshot_id = _snapshot_of(StaticTable.from_metadata(f"file://{metadata_file}"), version)
    engines: list[tuple[str, str, Callable[[], Any]]] = [
        ("Spark", "Delta", lambda: spark.read.format("delta").option("versionAsOf", version).load(path).toArrow()),
        ("Tahoe, no Spark", "Delta", lambda: tahoe.Table(path).to_arrow(version=version)),
        ("deltalake", "Delta", lambda: _deltalake(path, version)),
        ("DuckDB", "Delta", lambda: _duckdb("SELECT * FROM delta_scan(?, version := ?)", path, version)),
        ("PyIceberg, by path", "Iceberg", lambda: StaticTable.from_metadata(f"file://{metadata_file}").scan().to_arrow()),
        ("PyIceberg, catalog", "Iceberg", lambda: catalog.load_table(identifier).scan(snapshot_id=snapshot_id).to_arrow()),
        ("DuckDB", "Iceberg", lambda: _duckdb("SELECT * FROM iceberg_scan(?)", metadata_file)),
        (
            "Polars",
            "Iceberg",
            lambda: polars.scan_iceberg(f"file://{metadata_file}", reader_override="native").collect().to_arrow(),
        ),
    ]
    for engine, table_format, read in engines:
        started = perf_counter()
        rows = pa.table(read())
        seconds = perf_counter() - started
        yield Reading(engine, table_format, version, rows.num_rows, rows.num_columns, checksum(rows), seconds)


def _snapshot_of(table: StaticTable, version: int) -> int:
    """The id of the Iceberg snapshot that stands for a Delta version."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        raise LookupError(f"The Iceberg metadata for Delta version {version} has no snapshot.")
    return snapshot.snapshot_id


def _deltalake(path: str, version: int) -> Any:
    # Tables with column mapping are read through its query engine.
    table = deltalake.DeltaTable(path, version=version)
    return deltalake.QueryBuilder().register("gold", table).execute("SELECT * FROM gold").read_all()


def _duckdb(query: str, *parameters: Any) -> pa.Table:
    connection = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    packages = Path(sysconfig.get_paths()["purelib"])
    # The extensions come as Python packages, so nothing is downloaded.
    for name in ("avro", "iceberg", "delta"):
        (library,) = (packages / f"duckdb_extension_{name}").rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{library}'")
    with connection:
        return connection.execute(query, list(parameters)).to_arrow_table()
