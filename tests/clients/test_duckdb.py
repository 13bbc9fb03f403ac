"""DuckDB's delta extension: `delta_scan` and ATTACH of a table written by Spark, and the same table through `tahoe.Table.to_duckdb`."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tahoe
from tests.clients.child import needs

pytestmark = pytest.mark.clients

_TOTALS = "count(*), sum(id)::BIGINT, sum(amount)"


def test_a_table_is_scanned_attached_and_read_at_a_version(orders: str, totals: tuple[int, int, Decimal]) -> None:
    needs("duckdb", "duckdb-extension-delta")
    from tests.duckdb_with import duckdb_with

    con = duckdb_with("delta")
    con.execute(f"ATTACH '{orders}' AS newest (TYPE delta)")
    con.execute(f"ATTACH '{orders}' AS oldest (TYPE delta, VERSION 0)")
    assert con.sql(f"SELECT {_TOTALS} FROM delta_scan('{orders}')").fetchone() == totals
    assert con.sql(f"SELECT {_TOTALS} FROM newest").fetchone() == totals
    assert con.sql("SELECT count(*) FROM oldest").fetchone() == (100,)
    few = con.sql(f"SELECT amount FROM delta_scan('{orders}') WHERE shop = '1' AND id < 9 ORDER BY id").fetchall()
    assert few == [(Decimal(1),), (Decimal(4),), (Decimal("7.5"),)]
    assert tahoe.Table(orders).to_duckdb().aggregate(_TOTALS).fetchone() == totals
