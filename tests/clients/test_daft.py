"""Daft: `read_deltalake` of a table written by Spark, and `write_deltalake` into it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import tahoe
from tests.clients.child import needs

pytestmark = pytest.mark.clients


def test_a_table_is_read_filtered_and_read_at_a_version(orders: str, totals: tuple[int, int, Decimal]) -> None:
    needs("daft", "deltalake")
    import daft

    newest = daft.read_deltalake(orders)
    (row,) = newest.agg(newest["shop"].count(), newest["id"].sum(), newest["amount"].sum()).to_pylist()
    assert tuple(row.values()) == totals
    few = newest.where((newest["shop"] == "1") & (newest["id"] < 9)).sort("id").to_pydict()
    assert few["amount"] == [Decimal(1), Decimal(4), Decimal("7.5")]
    assert daft.read_deltalake(orders, version=0).count_rows() == 100


def test_rows_are_appended(orders: str, added: dict[str, list[Any]]) -> None:
    needs("daft", "deltalake")
    import daft

    rows = daft.from_pydict(added)
    rows = rows.with_column("amount", rows["amount"].cast(daft.DataType.decimal128(12, 2)))
    rows = rows.with_column("at", daft.lit(None).cast(daft.DataType.timestamp("us", "UTC")))
    rows.write_deltalake(orders, mode="append")
    assert tahoe.Table(orders).to_arrow(filter="id >= 1000", columns=list(added)).sort_by("id").to_pydict() == added
    assert tahoe.Table(orders).to_arrow().num_rows == 92
