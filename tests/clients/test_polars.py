"""Polars: `scan_delta` of a table written by Spark, `write_delta` into it, and the same table through `tahoe.Table.to_polars`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import tahoe
from tests.clients.child import needs

pytestmark = pytest.mark.clients


def test_a_table_is_scanned_filtered_and_read_at_a_version(orders: str, totals: tuple[int, int, Decimal]) -> None:
    needs("polars", "deltalake")
    import polars as pl

    table = tahoe.Table(orders)
    for newest, first in (
        (pl.scan_delta(orders), pl.scan_delta(orders, version=0)),
        (table.to_polars(), table.to_polars(version=0)),
    ):
        assert newest.select(pl.len(), pl.col("id").sum(), pl.col("amount").sum()).collect().row(0) == totals
        few = newest.filter((pl.col("shop") == "1") & (pl.col("id") < 9)).sort("id").collect()
        assert few["amount"].to_list() == [Decimal(1), Decimal(4), Decimal("7.5")]
        assert first.select(pl.len()).collect().item() == 100


def test_rows_are_appended(orders: str, added: dict[str, list[Any]]) -> None:
    needs("polars", "deltalake")
    import polars as pl

    rows = pl.DataFrame(added).with_columns(pl.col("amount").cast(pl.Decimal(12, 2)))
    rows.with_columns(pl.lit(None, dtype=pl.Datetime("us", "UTC")).alias("at")).write_delta(orders, mode="append")
    assert tahoe.Table(orders).to_arrow(filter="id >= 1000", columns=list(added)).sort_by("id").to_pydict() == added
    assert tahoe.Table(orders).to_arrow().num_rows == 92
