"""UniForm of tables that were converted: every snapshot of the Iceberg side is a version of the Delta side, and no row is there twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import TruncateTransform

from tahoe.api.table import Table
from tahoe.base.exceptions import ForeignWriter, Unsupported
from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.random_history import V2
from tests.iceberg_rows import append_partitioned
from tests.interop.iceberg import read_pyiceberg

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", None]})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    made = SqlCatalog("test", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}")
    made.create_namespace("db")
    yield made
    made.engine.dispose()


def in_order(rows: pa.Table) -> list[dict[str, object]]:
    return sorted(rows.select(["id", "name"]).to_pylist(), key=str)


def verified(table: Table) -> None:
    """The newest rows, and by time travel those of each snapshot, as PyIceberg reads them."""
    location = table.uniform.sync().metadata_location
    assert location is not None and verify(table.store) == table.version()
    document = newest_document(table.store)
    assert document is not None
    for snapshot in document["snapshots"]:
        version = int(snapshot["summary"]["delta-version"])
        theirs = read_pyiceberg(location, snapshot_id=snapshot["snapshot-id"])
        assert in_order(theirs) == in_order(table.to_arrow(version=version)), version
    assert in_order(read_pyiceberg(location)) == in_order(table.to_arrow())


def live_on(table: Table, first: int) -> None:
    """Rows come, change and go, and an older version comes back."""
    verified(table)
    table.append(pa.table({"id": pa.array([10, 11], pa.int64()), "name": ["x", "y"]}, ROWS.schema))
    table.update({"name": "'z'"}, "id = 2")
    verified(table)
    table.delete("id = 10")
    table.restore(first)
    verified(table)
    assert table.to_arrow().num_rows == 6


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    for name in ("one", "two"):
        pq.write_table(ROWS, tmp_path / f"{name}.parquet")
    table = Table(tmp_path)
    table.convert_to_delta()
    first = table.uniform.upgrade(2).version or table.version()
    live_on(table, first)


def converted(catalog: SqlCatalog) -> Table:
    """An Iceberg table of six rows, that Tahoe has converted and whose Iceberg side it shall write."""
    theirs = catalog.create_table("db.t", ROWS.schema)
    theirs.append(ROWS)
    theirs.append(ROWS)
    table = Table(theirs.location().removeprefix("file://"))
    table.convert_to_delta()
    return table


def test_an_iceberg_table_once_it_is_said_that_nobody_writes_it_any_more(catalog: SqlCatalog) -> None:
    table = converted(catalog)
    version = table.set_properties(V2)
    with pytest.raises(ForeignWriter, match=r"all of its rows are in the Delta table.*repair --discard") as caught:
        table.uniform.sync()
    assert "--adopt" not in str(caught.value)
    assert table.uniform.status().iceberg_version is None
    with pytest.raises(Unsupported) as refused:
        table.uniform.repair(adopt=True)
    assert refused.value.code == "TAHOE_UNIFORM_CANNOT_ADOPT"
    assert table.to_arrow().num_rows == 6, "no row is there twice"
    table.uniform.repair(discard=True)
    live_on(table, version)


def test_rows_that_the_old_catalog_appends_later_are_of_another_history(catalog: SqlCatalog) -> None:
    table = converted(catalog)
    table.set_properties(V2)
    table.uniform.repair(discard=True)
    catalog.load_table("db.t").append(ROWS)
    with pytest.raises(ForeignWriter):
        table.uniform.sync()
    with pytest.raises(Unsupported, match="another history"):
        table.uniform.repair(adopt=True)
    assert table.to_arrow().num_rows == 6
    table.uniform.repair(discard=True)
    verified(table)


def test_an_iceberg_table_whose_partitions_are_made_of_a_column(catalog: SqlCatalog) -> None:
    """The data files lack such a column, and IcebergCompat requires it there: the upgrade writes it."""
    theirs = catalog.create_table("db.t", ROWS.schema)
    with theirs.update_spec() as change:
        change.add_field("id", TruncateTransform(2), "id_trunc")
        change.add_field("name", TruncateTransform(1), "name_trunc")
    append_partitioned(theirs, ROWS)
    append_partitioned(theirs, ROWS)
    table = Table(theirs.location().removeprefix("file://"))
    table.convert_to_delta()
    first = table.uniform.upgrade(2).version
    assert first is not None
    table.uniform.repair(discard=True)
    location = table.uniform.sync().metadata_location
    assert location is not None
    assert sorted(read_pyiceberg(location, "id_trunc = 2")["id"].to_pylist()) == [2, 2, 3, 3]
    live_on(table, first)
