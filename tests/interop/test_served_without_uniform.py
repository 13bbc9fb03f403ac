"""`tahoe serve --iceberg --all` as a process: PyIceberg and DuckDB read tables without UniForm, and nothing in their folders changes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

import tahoe
from tests.duckdb_with import duckdb_with
from tests.interop.engines import canonical
from tests.interop.test_iceberg_rest import start

TIME = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "day": pa.array([date(2024, 1, 1), date(2024, 1, 1), None]),
        "time": pa.array([TIME, None, TIME], pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal("1.50"), None, Decimal("-3.25")], pa.decimal128(10, 2)),
        "tags": pa.array([["a", "b"], [], None]),
        "counts": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "where": pa.array([{"x": 1, "city": "Bern"}, None, {"x": 2, "city": None}]),
    }
)
DELETES = {"delta.enableDeletionVectors": "true"}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def make_tables(root: Path) -> dict[str, tahoe.Table]:
    """A table of each kind that is served, all without UniForm."""

    def table(
        name: str, rows: pa.Table = ROWS, properties: dict[str, str] | None = None, by: list[str] | None = None
    ) -> tahoe.Table:
        made = tahoe.Table.create(root / name, rows.schema, partition_by=by or [], properties=properties)
        made.append(rows)
        return made

    tables = {
        "nested": table("nested"),
        "partitioned": table("partitioned", by=["day"]),
        "deleted": table("deleted", properties=DELETES),
        "mapped": table("mapped", ROWS.drop(["tags", "counts"]), {"delta.columnMapping.mode": "name"}),
        "evolved": table("evolved"),
    }
    tables["deleted"].delete("id = 2")
    tables["mapped"].rename_column("price", "the price")
    tables["evolved"].append(pa.table({"id": [9], "later": ["x"]}), merge_schema=True)
    deltalake.write_deltalake(str(root / "rust"), ROWS.drop(["counts"]), partition_by=["id"])
    (root / "int96").mkdir()
    pq.write_table(ROWS.select(["id", "time"]), root / "int96" / "a.parquet", use_deprecated_int96_timestamps=True)
    tables |= {name: tahoe.Table(root / name) for name in ("rust", "int96")}
    tables["int96"].convert_to_delta()
    return tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tahoe.Table]:
    return make_tables(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="module")
def url(tables: dict[str, tahoe.Table], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = Path(tables["nested"].url.removeprefix("file://")).parent
    tahoe.Table.create(root / "variant", {"v": "variant"})
    process, url = start(root, "--all", XDG_CACHE_HOME=str(tmp_path_factory.mktemp("caches")))
    yield url
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=200)
    assert "Traceback" not in complaints


@pytest.fixture(scope="module")
def duck(url: str) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb_with("avro", "httpfs", "iceberg") as connection:
        connection.execute(f"ATTACH 'any' AS ice (TYPE iceberg, ENDPOINT '{url}', AUTHORIZATION_TYPE 'none')")
        yield connection


def test_two_readers_get_the_rows_of_every_kind_of_table_at_each_version_and_nothing_is_written_to_its_folder(
    tables: dict[str, tahoe.Table], url: str, duck: duckdb.DuckDBPyConnection
) -> None:
    catalog = RestCatalog("served", uri=url)
    assert {name for _, name in catalog.list_tables("default")} == {*tables, "variant"}
    for change in (None, lambda table: table.append(table.to_arrow()), lambda table: table.delete("id = 1")):
        for name, table in tables.items():
            if change is not None:
                change(table)
            before = contents(Path(table.url.removeprefix("file://")))
            expected = canonical(table.to_arrow())
            assert canonical(catalog.load_table(f"default.{name}").scan().to_arrow()) == expected, name
            assert canonical(duck.sql(f"FROM ice.default.{name}").to_arrow_table()) == expected, name
            assert contents(Path(table.url.removeprefix("file://"))) == before, name


def test_filters_skip_no_row(tables: dict[str, tahoe.Table], url: str, duck: duckdb.DuckDBPyConnection) -> None:
    catalog = RestCatalog("served", uri=url)
    for name in ("nested", "partitioned", "mapped", "rust"):
        expected = canonical(tables[name].to_arrow(filter="id >= 2 AND day IS NULL"))
        actual = catalog.load_table(f"default.{name}").scan(row_filter="id >= 2 AND day IS NULL").to_arrow()
        assert canonical(actual) == expected
        assert canonical(duck.sql(f"FROM ice.default.{name} WHERE id >= 2 AND day IS NULL").to_arrow_table()) == expected


def test_a_table_that_iceberg_cannot_show_gives_the_reason(url: str) -> None:
    with pytest.raises(BadRequestError, match="column 'v' of type variant"):
        RestCatalog("served", uri=url).load_table("default.variant")
