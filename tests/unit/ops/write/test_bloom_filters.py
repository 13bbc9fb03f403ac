"""Bloom filters of the columns that a table names, in every file that is written without Spark."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import TahoeWarning
from tahoe.log.replay import add_files
from tahoe.ops.write import bloom_filters
from tahoe.settings.warn_once import reset_warnings
from tahoe.store.object_store import open_store

SCHEMA = pa.schema(
    {"p": pa.string(), "key": pa.int64(), "s": pa.struct({"t": pa.string()}), "tags": pa.list_(pa.string()), "b": pa.bool_()}
)


@pytest.fixture(autouse=True)
def nothing_reported() -> Iterator[None]:
    reset_warnings()
    yield
    reset_warnings()


def table_of(columns: str, mode: str = "none") -> Table:
    store = open_store(f"memory://{SYSTEM_CLOCK.uuid()}/table")
    properties = {"tahoe.bloomFilterColumns": columns, "delta.columnMapping.mode": mode}
    return Table.create(store.url, SCHEMA, partition_by=["p"], properties=properties, store=store)


def append(table: Table, first: int = 0) -> None:
    rows = [{"p": "a", "key": i * 7919, "s": {"t": f"text {i}"}, "tags": ["x"], "b": True} for i in range(first, first + 1000)]
    table.append(pa.Table.from_pylist(rows, SCHEMA))


def filters(table: Table) -> list[int]:
    """How many columns of each live file have a filter."""
    groups = [pq.read_metadata(io.BytesIO(table.store.get(add.path))).row_group(0) for add in add_files(table.files())]
    return [sum(group.column(i).bloom_filter_offset is not None for i in range(group.num_columns)) for group in groups]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_appends_and_optimize_give_the_columns_filters(mode: str) -> None:
    plain, table = table_of("", mode), table_of("KEY, s.t", mode)
    for item in (plain, table):
        append(item)
        append(item, 1000)
    assert (filters(plain), filters(table)) == ([0, 0], [2, 2])
    for item in (plain, table):
        item.update({"b": "false"}, "key = 0")
        item.optimize()
    assert (filters(plain), filters(table)) == ([0], [2])
    grown = sum(table.files()["size"].to_pylist()) - sum(plain.files()["size"].to_pylist())
    assert 2 * 2000 <= grown <= 2 * 2000 * 3, "about ten bits a value, rounded up to a power of two"
    assert table.to_arrow().sort_by("key").equals(plain.to_arrow().sort_by("key"))
    assert table.check(deep=True) == []


@pytest.mark.parametrize(
    ("columns", "reported"),
    [("gone", "'gone'"), ("key, tags", "'tags'"), ("p", "'p'"), ("b", "'b'"), ("s", "'s'"), ("a b c,,", "list")],
)
def test_columns_that_can_have_no_filter_are_reported_once_and_fail_no_write(columns: str, reported: str) -> None:
    table = table_of(columns)
    with pytest.warns(TahoeWarning, match=f"tahoe.bloomFilterColumns of table .*{reported}"):
        append(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        append(table)
    assert table.to_arrow().num_rows == 2000


def test_an_arrow_that_writes_none_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_filters, "_arrow_writes_them", lambda: False)
    table = table_of("key")
    with pytest.warns(TahoeWarning, match="needs a newer pyarrow"):
        append(table)
    assert table.to_arrow().num_rows == 1000
