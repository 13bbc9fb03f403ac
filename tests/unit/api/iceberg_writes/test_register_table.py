"""Registration of tables of other catalogs, and of dropped tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import BadRequestError, RESTError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform, Transform, YearTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

import tahoe
from tahoe.api.iceberg_writes import register_table
from tahoe.base.exceptions import StorageFailure
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.iceberg_rows import append_partitioned
from tests.interop.engines import canonical

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "name", StringType()),
    NestedField(3, "day", DateType()),
    identifier_field_ids=[1],
)
ARROW = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string()), ("day", pa.date32())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "name": [f"n{each}" for each in ids], "day": [each * 100 for each in ids]}, ARROW)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "warehouse"
    (root / "sales").mkdir(parents=True)
    return root


@pytest.fixture
def client(root: Path) -> LocalClient:
    return LocalClient(writable_catalog(root))


@pytest.fixture
def other(root: Path, tmp_path: Path) -> SqlCatalog:
    """Another catalog with the same folders."""
    catalog = SqlCatalog("other", uri=f"sqlite:///{tmp_path}/other.db", warehouse=f"file://{root}")
    catalog.create_namespace("sales")
    return catalog


def made(other: SqlCatalog, root: Path, name: str = "orders", **more: Any) -> IcebergTable:
    table = other.create_table(f"sales.{name}", SCHEMA, location=f"file://{root}/sales/{name}", **more)
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    table.append(rows(4))
    return table


def partitioned_by(source: int, transform: Transform[Any, Any], name: str) -> PartitionSpec:
    return PartitionSpec(PartitionField(source, 1000, transform, name))


@pytest.mark.parametrize("spec", [PartitionSpec(), partitioned_by(2, IdentityTransform(), "name")], ids=["plain", "by name"])
@pytest.mark.parametrize("format_version", ["1", "2"])
def test_a_table_of_another_catalog_becomes_a_delta_table(
    client: LocalClient, other: SqlCatalog, root: Path, spec: PartitionSpec, format_version: str
) -> None:
    before = made(other, root, partition_spec=spec, properties={"format-version": format_version})
    registered = client.register_table("sales.orders", before.metadata_location)
    delta = tahoe.Table(root / "sales" / "orders")
    assert canonical(registered.scan().to_arrow()) == canonical(delta.to_arrow()) == canonical(before.scan().to_arrow())
    assert registered.schema().identifier_field_names() == {"id"}
    registered.append(rows(5))
    delta.append(rows(6))
    assert sorted(client.load_table("sales.orders").scan().to_arrow()["id"].to_pylist()) == [1, 3, 4, 5, 6]
    assert sorted(delta.to_arrow()["id"].to_pylist()) == [1, 3, 4, 5, 6]
    assert delta.check(strict=True) == []
    with pytest.raises(TableAlreadyExistsError, match="already"):
        client.register_table("sales.orders", before.metadata_location)


def test_partitions_by_a_transform_become_a_generated_column(client: LocalClient, other: SqlCatalog, root: Path) -> None:
    spec = partitioned_by(3, YearTransform(), "year")
    before = other.create_table("sales.orders", SCHEMA, location=f"file://{root}/sales/orders", partition_spec=spec)
    append_partitioned(before, rows(1, 3, 4))
    registered = client.register_table("sales.orders", before.metadata_location)
    assert [(field.name, str(field.transform)) for field in registered.spec().fields] == [("year", "identity")]
    assert canonical(registered.scan().to_arrow().select(ARROW.names)) == canonical(before.scan().to_arrow())
    registered.append(rows(5).append_column("year", pa.array([None], pa.int32())))
    delta = tahoe.Table(root / "sales" / "orders")
    shown = client.load_table("sales.orders").scan().to_arrow()
    assert dict(zip(shown["id"].to_pylist(), shown["year"].to_pylist(), strict=True)) == {1: 1970, 3: 1970, 4: 1971, 5: 1971}
    assert delta.check(strict=True) == []


@pytest.mark.parametrize("step", ["convert", "upgrade_uniform"])
def test_an_interrupted_registration_is_finished_by_the_next(
    client: LocalClient, other: SqlCatalog, root: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = made(other, root)
    finished: Callable[..., Any] = getattr(register_table, step)

    def then_fails(*arguments: Any) -> None:
        finished(*arguments)
        raise StorageFailure("the storage is down")

    with monkeypatch.context() as patch:
        patch.setattr(register_table, step, then_fails)
        with pytest.raises(RESTError, match="storage is down"):
            client.register_table("sales.orders", before.metadata_location)
    registered = client.register_table("sales.orders", before.metadata_location)
    assert canonical(registered.scan().to_arrow()) == canonical(before.scan().to_arrow())


def test_a_dropped_table_comes_back(client: LocalClient, root: Path) -> None:
    table = client.create_table("sales.orders", SCHEMA)
    table.append(rows(1, 2))
    history = len(tahoe.Table(root / "sales" / "orders").history())
    client.drop_table("sales.orders")
    assert not client.table_exists("sales.orders")
    back = client.register_table("sales.orders", table.metadata_location)
    assert back.metadata_location == table.metadata_location
    assert back.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert len(tahoe.Table(root / "sales" / "orders").history()) == history
    assert list((root / ".dropped" / "sales").iterdir()) == []


def test_a_dropped_table_with_an_older_metadata_file_or_a_twin_stays(client: LocalClient, root: Path) -> None:
    first = client.create_table("sales.orders", SCHEMA).metadata_location
    client.load_table("sales.orders").append(rows(1))
    client.drop_table("sales.orders")
    with pytest.raises(RESTError, match="There is no Iceberg table"):
        client.register_table("sales.orders", first)
    for _ in range(2):
        client.create_table("sales.orders", SCHEMA)
        client.drop_table("sales.orders")
    with pytest.raises(BadRequestError, match="2 dropped tables named 'orders'"):
        client.register_table("sales.orders", first)
    assert len(list((root / ".dropped" / "sales").iterdir())) == 3


def test_tables_that_cannot_be_registered_are_refused_and_nothing_is_written(
    client: LocalClient, other: SqlCatalog, root: Path
) -> None:
    table = made(other, root)
    older = table.metadata.metadata_log[-1].metadata_file
    for name, location, problem in (
        ("orders", older, "newest metadata file"),
        ("others", table.metadata_location, "folder of its name"),
        ("orders", "file:///etc/passwd", "folder of its name"),
        ("orders", f"{table.location()}/metadata/../../x.metadata.json", "folder of its name"),
        ("orders", f"{table.location()}/data/x.metadata.json", "folder of its name"),
        ("_hidden", table.metadata_location, "cannot be named"),
    ):
        with pytest.raises(BadRequestError, match=problem):
            client.register_table(f"sales.{name}", location)
    with pytest.raises(RESTError, match="There is no Iceberg table"):
        client.register_table("sales.others", f"file://{root}/sales/others/metadata/v1.metadata.json")
    assert not list(root.rglob("_delta_log"))
