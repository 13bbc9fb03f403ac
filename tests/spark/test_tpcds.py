"""TPC-DS's tables through CREATE … AS SELECT and the changes that its data maintenance makes: the same statements on DuckDB's own tables are
the measure, row for row, after each of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tahoe import Table
from tests.tpc import REFRESHED, generate, tables

SCALE = 0.01
DAYS = "BETWEEN 2451000 AND 2451060"

_UPDATES = """SELECT i_item_sk + CASE WHEN i_item_sk % 3 = 0 THEN 1000 ELSE 0 END AS i_item_sk, {others}, i_item_sk % 2 = 0 AS closes
    FROM item WHERE i_item_sk % 5 < 3"""
_MERGE_ITEMS = """MERGE INTO item t USING (SELECT * FROM item_updates) s ON t.i_item_sk = s.i_item_sk
    WHEN MATCHED AND s.closes THEN UPDATE SET i_rec_end_date = DATE '2003-01-08'
    WHEN MATCHED THEN UPDATE SET i_current_price = t.i_current_price + 1, i_item_desc = s.i_item_desc
    WHEN NOT MATCHED THEN INSERT ({columns}) VALUES ({values})"""
_MERGE_RETURNS = """MERGE INTO store_returns t USING (SELECT DISTINCT ss_ticket_number AS n FROM store_sales WHERE ss_sold_date_sk {days}) s
    ON t.sr_ticket_number = s.n WHEN MATCHED THEN DELETE"""


@pytest.fixture(params=["refreshed", pytest.param("all", marks=pytest.mark.soak)])
def loaded(request, spark, tmp_path):
    """The measure, and the names of the tables that are there; as Delta tables they are in the current database."""
    database = generate("tpcds", SCALE)
    spark.sql("CREATE DATABASE tpcds")
    spark.sql("USE tpcds")
    names = []
    for name, path in tables(database, tmp_path).items():
        if request.param == "refreshed" and name not in REFRESHED:
            continue
        parted = "PARTITIONED BY (ss_store_sk) " if name == "store_sales" else ""
        mapped = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') " if name in ("store_sales", "item") else ""
        spark.sql(f"CREATE TABLE {name} USING delta {parted}{mapped}AS SELECT * FROM parquet.`{path}`")
        names.append(name)
    yield database, names
    spark.sql("USE default")
    spark.sql("DROP DATABASE tpcds CASCADE")


def test_data_maintenance_leaves_the_rows_that_duckdb_leaves(
    spark, loaded
):  # three tables made, six statements on each side: about 8 s
    measure, names = loaded
    for name in names:
        _same(spark, measure, name)
    item = [row[0] for row in measure.execute("DESCRIBE item").fetchall()]
    sales = [row[0] for row in measure.execute("DESCRIBE store_sales").fetchall()]
    updates = _UPDATES.format(others=", ".join(item[1:]))
    measure.execute(f"CREATE TABLE item_updates AS {updates}")
    spark.sql(f"CREATE TABLE item_updates USING delta AS {updates}")
    later = ", ".join(f"{entry} + 7000000" if entry == "ss_ticket_number" else entry for entry in sales)
    changes = (
        ("store_sales", f"INSERT INTO store_sales SELECT {later} FROM store_sales WHERE ss_sold_date_sk {DAYS}"),
        ("store_returns", _MERGE_RETURNS.format(days=DAYS)),
        ("store_sales", f"DELETE FROM store_sales WHERE ss_sold_date_sk {DAYS} AND ss_ticket_number < 7000000"),
        ("inventory", "DELETE FROM inventory WHERE inv_date_sk BETWEEN 2451000 AND 2451200"),
        ("inventory", "UPDATE inventory SET inv_quantity_on_hand = inv_quantity_on_hand + 1 WHERE inv_item_sk % 7 = 3"),
        ("item", _MERGE_ITEMS.format(columns=", ".join(item), values=", ".join(f"s.{entry}" for entry in item))),
        (
            "inventory",
            "INSERT INTO inventory (inv_item_sk, inv_date_sk) SELECT i_item_sk, 2460000 FROM item WHERE i_item_sk > 1000",
        ),
    )
    for name, statement in changes:
        if name not in names:
            continue
        measure.execute(statement)
        spark.sql(statement)
        _same(spark, measure, name)
    spark.sql("INSERT OVERWRITE item SELECT * FROM item WHERE i_item_sk % 2 = 1")
    measure.execute("DELETE FROM item WHERE i_item_sk % 2 = 0")
    _same(spark, measure, "item")


def _same(spark, measure, name: str) -> None:
    """Every row of the table, as Spark counts them and the core reads them, is one of the measure's, and the other way round."""
    table = Table(Path(spark.sql(f"DESCRIBE DETAIL {name}").first()["location"].removeprefix("file:")))
    measure.register("mine", table.to_arrow())
    for item, other in (("mine", name), (name, "mine")):
        more = measure.execute(f"SELECT * FROM {item} EXCEPT ALL SELECT * FROM {other}").fetchall()
        assert more == [], (name, item, more[:3])
    measure.unregister("mine")
    assert spark.table(name).count() == measure.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
