"""Read the rows of one table at one version with every available engine, as Arrow data."""

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
from pyiceberg.catalog import load_catalog
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as IcebergTable
from pyspark.sql import SparkSession

import tahoe
from demo import CATALOG
from demo.checksum import checksum

__all__ = ["Reading", "read_with_all"]


@dataclass(frozen=True)
class Reading:
    """The result of one engine: the number of rows, their checksum, and the seconds until they were Arrow."""

    engine: str
    format: str
    version: int
    rows: int
    columns: int
    checksum: str
    seconds: float


def read_with_all(spark: SparkSession, path: str, version: int, identifier: str) -> Iterator[Reading]:
    """One `Reading` per engine: of a Delta version, and of its Iceberg snapshot, by path and by name in the catalog."""
    metadata_file = _metadata_file(path)
    by_path = StaticTable.from_metadata(f"file://{metadata_file}")
    snapshot = _snapshot_of(by_path, version)

    def polars_rows() -> Any:
        return polars.scan_iceberg(by_path, snapshot_id=snapshot, reader_override="native").collect().to_arrow()

    engines: list[tuple[str, str, Callable[[], Any]]] = [
        ("Spark", "Delta", lambda: spark.read.format("delta").option("versionAsOf", version).load(path).toArrow()),
        ("Tahoe, no Spark", "Delta", lambda: tahoe.Table(path).to_arrow(version=version)),
        ("deltalake", "Delta", lambda: _deltalake(path, version)),
        ("DuckDB", "Delta", lambda: _duckdb("SELECT * FROM delta_scan(?, version := ?)", path, version)),
        ("PyIceberg, by path", "Iceberg", lambda: by_path.scan(snapshot_id=snapshot).to_arrow()),
        (
            "PyIceberg, catalog",
            "Iceberg",
            lambda: load_catalog(CATALOG).load_table(identifier).scan(snapshot_id=snapshot).to_arrow(),
        ),
        ("DuckDB", "Iceberg", lambda: _duckdb("SELECT * FROM iceberg_scan(?, snapshot_from_id := ?)", metadata_file, snapshot)),
        ("Polars", "Iceberg", polars_rows),
    ]
    for engine, table_format, read in engines:
        started = perf_counter()
        rows = pa.table(read())
        seconds = perf_counter() - started
        yield Reading(engine, table_format, version, rows.num_rows, rows.num_columns, checksum(rows), seconds)


def _metadata_file(path: str) -> str:
    """The newest Iceberg metadata, as any reader finds it in a table's folder."""
    folder = Path(path) / "metadata"
    return str(folder / f"v{(folder / 'version-hint.text').read_text().strip()}.metadata.json")


def _snapshot_of(table: IcebergTable, version: int) -> int:
    """The id of the Iceberg snapshot of a Delta version, from the snapshot's summary."""
    for snapshot in table.snapshots():
        if snapshot.summary is not None and snapshot.summary["delta-version"] == str(version):
            return snapshot.snapshot_id
    raise LookupError(f"No Iceberg snapshot stands for version {version}.")


def _deltalake(path: str, version: int) -> Any:
    # Tables with column mapping are read through its query engine.
    table = deltalake.DeltaTable(path, version=version)
    return deltalake.QueryBuilder().register("gold", table).execute("SELECT * FROM gold").read_all()


def _duckdb(query: str, *parameters: Any) -> pa.Table:
    packages = Path(sysconfig.get_paths()["purelib"])
    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as connection:
        # The extensions come as Python packages, so nothing is downloaded.
        for name in ("avro", "iceberg", "delta"):
            (library,) = (packages / f"duckdb_extension_{name}").rglob(f"{name}.duckdb_extension")
            connection.execute(f"LOAD '{library}'")
        return connection.execute(query, list(parameters)).to_arrow_table()
