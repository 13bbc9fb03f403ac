"""`tahoe serve --writable` as a process of its own: PyIceberg and DuckDB write Delta tables through it, and every reader of both formats
sees the same rows after each commit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

import tahoe
from scripts.follow_page import examples
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tests.duckdb_with import duckdb_with
from tests.interop.engines import canonical, read_deltalake, read_duckdb
from tests.interop.test_iceberg_rest import TOKEN, attached, start, stop
from tests.pages import ROOT

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


@dataclass(frozen=True)
class Served:
    """A writable warehouse, and the address at which it is served."""

    url: str
    root: Path

    def pyiceberg(self) -> RestCatalog:
        return RestCatalog("served", uri=self.url, token=TOKEN)

    def assert_equal(self, name: str, duck: duckdb.DuckDBPyConnection, *ids: int) -> None:
        """The rows of every reader of both sides are equal, and have these ids."""
        path = self.root / "sales" / name
        expected = tahoe.Table(path).to_arrow()
        assert sorted(expected["id"].to_pylist()) == sorted(ids)
        readers = (
            read_deltalake(str(path)),
            read_duckdb(str(path)),
            self.pyiceberg().load_table(("sales", name)).scan().to_arrow(),
            duck.execute(f"SELECT * FROM ice.sales.{name}").to_arrow_table(),
        )
        for rows in readers:
            assert canonical(rows) == canonical(expected)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("ware house")
    (root / "sales").mkdir()
    process, url = start(root, "--writable", TAHOE_WRITE_TOKEN=TOKEN)
    yield Served(url, root)
    stop(process)


@pytest.fixture(scope="module")
def duck(served: Served) -> Iterator[duckdb.DuckDBPyConnection]:
    with attached(served.url) as connection:
        yield connection


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{number}" for number in ids], "day": [None] * len(ids)}, schema=SCHEMA)


def test_pyiceberg_and_duckdb_write_one_table(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    orders = served.pyiceberg().create_table("sales.orders", SCHEMA)
    served.assert_equal("orders", duck)
    orders.append(rows(1, 2, 3))
    served.assert_equal("orders", duck, 1, 2, 3)
    duck.execute("INSERT INTO ice.sales.orders VALUES (4, 'from DuckDB', DATE '2026-01-02'), (5, NULL, NULL)")
    served.assert_equal("orders", duck, 1, 2, 3, 4, 5)
    orders.refresh().overwrite(rows(9), "id <= 2")
    served.assert_equal("orders", duck, 3, 4, 5, 9)
    orders.refresh().delete("name IS NULL")
    served.assert_equal("orders", duck, 3, 4, 9)
    orders.refresh().upsert(rows(9, 10), ["id"])
    served.assert_equal("orders", duck, 3, 4, 9, 10)
    history = tahoe.Table(served.root / "sales" / "orders").history()
    clients = {str(commit["operationParameters"].get("client")).split("/")[0].split(" ")[0] for commit in history[:-1]}
    assert clients == {"PyIceberg", "duckdb"}


def test_duckdb_deletes_updates_and_merges_by_position(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE TABLE ice.sales.events (id BIGINT, name VARCHAR, day DATE)")
    duck.execute("INSERT INTO ice.sales.events SELECT i, 'n' || i, NULL FROM range(1, 7) t(i)")
    served.assert_equal("events", duck, 1, 2, 3, 4, 5, 6)
    duck.execute("DELETE FROM ice.sales.events WHERE id IN (1, 4)")
    served.assert_equal("events", duck, 2, 3, 5, 6)
    duck.execute("UPDATE ice.sales.events SET name = 'changed' WHERE id = 5")
    served.assert_equal("events", duck, 2, 3, 5, 6)
    duck.execute(
        "MERGE INTO ice.sales.events t USING (VALUES (2, 'merged'), (9, 'new')) s(id, name) ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, NULL)"
    )
    served.assert_equal("events", duck, 2, 3, 5, 6, 9)
    names = dict(tahoe.Table(served.root / "sales" / "events").to_arrow().select(["id", "name"]).to_pandas().values)
    assert names == {2: "merged", 3: "n3", 5: "changed", 6: "n6", 9: "new"}
    duck.execute("DELETE FROM ice.sales.events")
    served.assert_equal("events", duck)


def test_duckdb_defines_tables(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE TABLE ice.sales.made AS SELECT i AS id, 'n' || i AS name FROM range(1, 4) t(i)")
    served.assert_equal("made", duck, 1, 2, 3)
    assert tahoe.Table(served.root / "sales" / "made").version() == 0
    duck.execute("ALTER TABLE ice.sales.made ADD COLUMN more INTEGER")
    duck.execute("INSERT INTO ice.sales.made VALUES (4, 'x', 7)")
    duck.execute("ALTER TABLE ice.sales.made RENAME COLUMN more TO rest")
    duck.execute("ALTER TABLE ice.sales.made DROP COLUMN name")
    duck.execute("INSERT INTO ice.sales.made VALUES (5, 8)")
    served.assert_equal("made", duck, 1, 2, 3, 4, 5)
    rest = tahoe.Table(served.root / "sales" / "made").to_arrow()
    assert {row["id"]: row["rest"] for row in rest.to_pylist()} == {1: None, 2: None, 3: None, 4: 7, 5: 8}
    duck.execute("BEGIN")
    duck.execute("INSERT INTO ice.sales.made VALUES (6, 9)")
    duck.execute("DELETE FROM ice.sales.made WHERE id <= 3")
    duck.execute("COMMIT")
    served.assert_equal("made", duck, 4, 5, 6)
    duck.execute("DROP TABLE ice.sales.made")
    assert not (served.root / "sales" / "made").exists()


def test_nested_values_of_duckdb_are_read_everywhere(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute(
        "CREATE TABLE ice.sales.nested (id BIGINT, s STRUCT(x INTEGER, y VARCHAR[]), m MAP(VARCHAR, DOUBLE), z TIMESTAMPTZ, "
        "t TIMESTAMP, d DECIMAL(18, 3), b BLOB, f FLOAT, o BOOLEAN, p DATE) PARTITIONED BY (p)"
    )
    duck.execute(
        "INSERT INTO ice.sales.nested VALUES (1, {'x': 1, 'y': ['a', NULL]}, MAP {'k': 1.5}, TIMESTAMPTZ '2020-01-01 00:00:00+00', "
        "TIMESTAMP '2020-01-01 01:02:03.456789', 1.5, 'ab'::BLOB, 1.5, true, DATE '2020-01-01'), "
        "(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
    )
    served.assert_equal("nested", duck, 1, 2)
    duck.execute("DELETE FROM ice.sales.nested WHERE p IS NULL")
    served.assert_equal("nested", duck, 1)


def test_a_transaction_of_duckdb_changes_several_tables_at_once(tmp_path: Path) -> None:
    root, coordinator = tmp_path / "warehouse", f"sqlite:///{tmp_path}/coordinator.db"
    (root / "bank").mkdir(parents=True)
    process, url = start(root, "--writable", TAHOE_WRITE_TOKEN=TOKEN, TAHOE_COORDINATOR=coordinator)
    try:
        client = RestCatalog("served", uri=url, token=TOKEN)
        for name in ("accounts", "ledger"):
            made = client.create_table(f"bank.{name}", SCHEMA, properties={"delta.feature.catalogManaged": "supported"})
            made.append(rows(1, 2))
        with attached(url) as duck:
            duck.execute(
                "BEGIN; INSERT INTO ice.bank.accounts VALUES (3, 'x', NULL); DELETE FROM ice.bank.ledger WHERE id = 1; COMMIT"
            )
        accounts, ledger = (
            tahoe.Table(root / "bank" / name, coordinator=SqlCoordinator(coordinator)) for name in ("accounts", "ledger")
        )
        assert sorted(accounts.to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert ledger.to_arrow()["id"].to_pylist() == [2]
        assert accounts.snapshot().state.transaction_id == ledger.snapshot().state.transaction_id
        assert client.load_table("bank.accounts").scan().to_arrow().num_rows == 3
    finally:
        stop(process)


def test_the_page_iceberg_writes_runs_in_order(tmp_path: Path) -> None:
    """Each block of the guide, against a server with the page's options and an address of its own."""
    blocks = {each.language: each.text for each in examples(ROOT / "docs/guide/iceberg-writes.md")}
    command, _, warehouse, *words = blocks["sh"].split()[1:]
    assert (command, warehouse, words) == ("serve", "warehouse", ["--writable"])
    (tmp_path / warehouse).mkdir()
    process, url = start(tmp_path / warehouse, *words)
    try:
        exec(blocks["python"].replace("http://127.0.0.1:8181", url), {})
        with duckdb_with("avro", "httpfs", "iceberg") as connection:
            connection.execute(blocks["sql"].replace("http://127.0.0.1:8181", url))
        rows = tahoe.Table(tmp_path / warehouse / "sales" / "orders").to_arrow().to_pylist()
        assert sorted((row["id"], row["name"]) for row in rows) == [(1, "one"), (2, "TWO"), (3, "three")]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=200)[1] == ""
