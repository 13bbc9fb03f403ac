"""REORG: tables become readable as Iceberg, and files lose what is dead in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tahoe.exceptions import InvalidRequest
from tahoe.log.replay import add_files
from tahoe.table import Table
from tahoe.txn.transaction import Operation
from tests.interop.engines import canonical
from tests.interop.iceberg import duckdb_iceberg, read_pyiceberg

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("part", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        pa.field("counts", pa.map_(pa.string(), pa.int32())),
        pa.field("inner", pa.struct([pa.field("a", pa.int32()), pa.field("list", pa.list_(pa.int64()))])),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field("price", pa.decimal128(9, 2)),
    ]
)


def rows(first: int, last: int) -> pa.Table:
    found = [
        {
            "id": i,
            "part": f"p{i % 2}",
            "tags": None if i % 5 == 0 else [f"t{i}", None],
            "counts": {"a": i, "b": None},
            "inner": {"a": i, "list": [i, i + 1]},
            "at": i * 1_000_000,
            "price": Decimal(i) / 4,
        }
        for i in range(first, last)
    ]
    return pa.Table.from_pylist(found, SCHEMA)


def made(path: Path, *, partitioned: bool = False, properties: dict[str, str] | None = None) -> Table:
    """A table of two files, or two a partition, written without any thought of Iceberg."""
    table = Table.create(path, SCHEMA, partition_by=["part"] if partitioned else [], properties=properties or {})
    table.append(rows(0, 10))
    table.append(rows(10, 20))
    return table


def paths(table: Table) -> set[str]:
    return set(table.files()["path"].to_pylist())


def entries(table: Table) -> list[dict[str, object]]:
    return [add.__dict__ if hasattr(add, "__dict__") else add for add in add_files(table.snapshot().files())]  # type: ignore[misc]


def assert_iceberg_readers_agree(table: Table) -> None:
    expected = canonical(table.to_arrow())
    location = table.uniform.sync().metadata_location
    readers: tuple[Callable[[str], pa.Table], ...] = (read_pyiceberg, duckdb_iceberg)
    for read in readers:
        assert canonical(read(location)) == expected, read.__name__


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partitioned", [False, True])
def test_after_the_upgrade_readers_of_iceberg_read_the_same_rows(tmp_path: Path, partitioned: bool, version: int) -> None:
    table = made(tmp_path / "t", partitioned=partitioned)
    before, old = canonical(table.to_arrow()), paths(table)
    upgrade = table.uniform.upgrade(version)
    assert canonical(table.to_arrow()) == before
    assert set(upgrade.rewritten) == old and not paths(table) & old
    assert all("field ids" in reasons for reasons in upgrade.rewritten.values())
    assert {add.tags["ICEBERG_COMPAT_VERSION"] for add in add_files(table.snapshot().files()) if add.tags} == {str(version)}
    assert_iceberg_readers_agree(table)
    operations = [(one["operation"], one["isBlindAppend"]) for one in table.history(3)]
    assert operations == [("SET TBLPROPERTIES", False), ("REORG", False), ("REORG TABLE UPGRADE UNIFORM", False)]


def test_a_second_upgrade_commits_nothing(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.uniform.upgrade()
    version = table.version()
    again = table.uniform.upgrade()
    assert (again.version, table.version()) == (version, version)
    assert not again.properties and not again.rewritten and not again.noted
