"""Tables that PyIceberg and DuckDB define and alter through `tahoe serve --writable`: every reader of both formats sees the same rows."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.types import LongType, StringType

import tahoe
from tests.interop.test_iceberg_commits import SCHEMA, Served, duck, rows, served

__all__ = ["duck", "served"]


def test_duckdb_creates_tables_with_rows(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute(
        "CREATE TABLE ice.sales.filled PARTITIONED BY (day) AS SELECT range AS id, DATE '2026-01-01' AS day FROM range(3)"
    )
    served.assert_equal("filled", duck, 0, 1, 2)
    duck.execute("BEGIN")
    duck.execute("CREATE TABLE ice.sales.both (id BIGINT, name VARCHAR)")
    duck.execute("INSERT INTO ice.sales.both VALUES (7, 'seven')")
    duck.execute("COMMIT")
    served.assert_equal("both", duck, 7)
    for name in ("filled", "both"):
        table = tahoe.Table(served.root / "sales" / name)
        assert [(commit["version"], commit["operation"]) for commit in table.history()] == [(0, "ICEBERG APPEND")]
        assert served.pyiceberg().load_table(("sales", name)).current_snapshot().snapshot_id == _id_in_history(table)


def test_pyiceberg_creates_a_table_with_rows(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    with served.pyiceberg().create_table_transaction("sales.staged", SCHEMA) as creation:
        creation.append(rows(1, 2))
    served.assert_equal("staged", duck, 1, 2)


def test_columns_of_one_table_change_through_both_clients(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    table = served.pyiceberg().create_table("sales.altered", SCHEMA)
    table.append(rows(1))
    duck.execute("ALTER TABLE ice.sales.altered ADD COLUMN zip VARCHAR")
    duck.execute("ALTER TABLE ice.sales.altered RENAME COLUMN name TO title")
    duck.execute("INSERT INTO ice.sales.altered VALUES (2, 'two', NULL, 'z')")
    served.assert_equal("altered", duck, 1, 2)
    with table.refresh().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("zip").move_first("title")
    with table.refresh().update_schema() as update:
        update.union_by_name(pa.schema([("zip", pa.string()), ("more", pa.int64())]))
    table.refresh().append(
        pa.table({"title": ["three"], "id": [3], "day": [None], "zip": ["new"], "more": [5]}, table.schema().as_arrow())
    )
    served.assert_equal("altered", duck, 1, 2, 3)
    actual = tahoe.Table(served.root / "sales" / "altered").to_arrow()
    assert actual.column_names == ["title", "id", "day", "zip", "more"]
    assert sorted(zip(actual["id"].to_pylist(), actual["zip"].to_pylist(), strict=True)) == [(1, None), (2, None), (3, "new")]
    schema = served.pyiceberg().load_table("sales.altered").schema()
    assert [(field.name, field.field_id, type(field.field_type)) for field in schema.fields][3:] == [
        ("zip", 5, StringType),
        ("more", 6, LongType),
    ]


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("ALTER COLUMN id TYPE BIGINT", "enableTypeWidening"),
        ("SET PARTITIONED BY (id)", "another partitioning"),
    ],
)
def test_changes_that_delta_lacks_are_refused_by_name(
    served: Served, duck: duckdb.DuckDBPyConnection, statement: str, named: str
) -> None:
    duck.execute("CREATE TABLE IF NOT EXISTS ice.sales.plain (id INTEGER)")
    with pytest.raises(duckdb.Error, match=named):
        duck.execute(f"ALTER TABLE ice.sales.plain {statement}")
    assert tahoe.Table(served.root / "sales" / "plain").version() == 0


def test_tables_and_namespaces_come_and_go(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE SCHEMA ice.fresh")
    duck.execute("CREATE TABLE ice.fresh.t AS SELECT range AS id FROM range(3)")
    duck.execute("DROP TABLE ice.fresh.t")
    duck.execute("CREATE TABLE ice.fresh.t AS SELECT range AS id, 'x' AS name FROM range(5)")
    duck.execute("ALTER TABLE ice.fresh.t RENAME TO moved")
    duck.execute("INSERT INTO ice.fresh.moved VALUES (9, 'nine')")
    catalog = served.pyiceberg()
    catalog.rename_table("fresh.moved", "sales.moved")
    served.assert_equal("moved", duck, 0, 1, 2, 3, 4, 9)
    catalog.load_table("sales.moved").append(pa.table({"id": [10], "name": ["ten"]}))
    served.assert_equal("moved", duck, 0, 1, 2, 3, 4, 9, 10)
    duck.execute("DROP SCHEMA ice.fresh")
    catalog.purge_table("sales.moved")
    assert not catalog.table_exists("sales.moved") and not catalog.namespace_exists("fresh")
    assert not (served.root / "sales" / "moved").exists() and not (served.root / "fresh").exists()


def test_a_table_without_rows_has_no_snapshot(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    catalog = served.pyiceberg()
    assert catalog.create_table("sales.empty", SCHEMA).current_snapshot() is None
    catalog.create_table_transaction("sales.without", SCHEMA).commit_transaction()
    for name in ("empty", "without"):
        served.assert_equal(name, duck)
        created = tahoe.Table(served.root / "sales" / name).history()[0]
        assert created["operation"] == "CREATE TABLE" and created["operationParameters"]["client"] == "PyIceberg 0.12.0"
        catalog.load_table(f"sales.{name}").append(rows(1))
        served.assert_equal(name, duck, 1)
        assert len(catalog.load_table(f"sales.{name}").snapshots()) == 1


def test_a_rollback_is_seen_by_every_reader(served: Served, duck: duckdb.DuckDBPyConnection) -> None:
    table = served.pyiceberg().create_table("sales.back", SCHEMA)
    table.append(rows(1, 2))
    before = table.refresh().current_snapshot()
    assert before is not None
    duck.execute("DELETE FROM ice.sales.back WHERE id = 1")
    served.assert_equal("back", duck, 2)
    table.refresh().manage_snapshots().rollback_to_snapshot(before.snapshot_id).commit()
    served.assert_equal("back", duck, 1, 2)
    assert served.pyiceberg().load_table("sales.back").current_snapshot() == before
    table.refresh().append(rows(3))
    served.assert_equal("back", duck, 1, 2, 3)


def _id_in_history(table: tahoe.Table) -> int:
    return int(table.history()[0]["operationParameters"]["snapshotId"])
