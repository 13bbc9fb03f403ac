"""Tables that Iceberg clients create: columns with the client's ids, and files that readers of both formats read."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

import tahoe
from tests.iceberg_clients import LocalClient, writable_catalog

NESTED = Schema(
    NestedField(1, "id", LongType(), required=True, doc="the key"),
    NestedField(2, "price", DecimalType(9, 2)),
    NestedField(3, "at", TimestamptzType()),
    NestedField(4, "local", TimestampType()),
    NestedField(5, "tags", ListType(8, StringType())),
    NestedField(6, "sizes", MapType(9, StringType(), 10, DoubleType())),
    NestedField(7, "inner", StructType(NestedField(11, "day", DateType()), NestedField(12, "ok", BooleanType()))),
)


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    return LocalClient(writable_catalog(tmp_path))


def test_columns_keep_their_ids_and_types(client: LocalClient, tmp_path: Path) -> None:
    created = client.create_table("default.t", NESTED, properties={"own": "kept", "comment": "about it"})
    assert created.schema() == NESTED
    assert created.properties["own"] == "kept"
    table = tahoe.Table(tmp_path / "t")
    assert [str(column.data_type) for column in table.schema()][:4] == ["long", "decimal(9,2)", "timestamp", "timestamp_ntz"]
    assert [column.physical_name for column in table.schema()] == ["id", "price", "at", "local", "tags", "sizes", "inner"]
    assert (table.snapshot().metadata.description, table.schema().field("id").nullable) == ("about it", False)


@pytest.mark.parametrize(("kind", "name"), [(TimeType(), "time"), (UUIDType(), "uuid"), (FixedType(4), "fixed")])
def test_a_type_that_delta_lacks_is_refused_by_name(client: LocalClient, tmp_path: Path, kind: object, name: str) -> None:
    with pytest.raises(BadRequestError, match=f"Column c .*{name}"):
        client.create_table("default.t", Schema(NestedField(1, "c", kind)))
    assert list(tmp_path.iterdir()) == []


def test_the_location_is_the_catalog_s(client: LocalClient, tmp_path: Path) -> None:
    assert client.create_table("default.t", NESTED, location=f"file://{tmp_path}/t").location() == f"file://{tmp_path}/t"
    with pytest.raises(BadRequestError, match="is in the folder of its name"):
        client.create_table("default.u", NESTED, location=f"file://{tmp_path}/elsewhere")


def test_properties_of_delta_and_unknown_format_versions_are_refused(client: LocalClient) -> None:
    with pytest.raises(BadRequestError, match=r"'delta\.appendOnly' is Delta's"):
        client.create_table("default.t", NESTED, properties={"delta.appendOnly": "true"})
    with pytest.raises(BadRequestError, match="no Iceberg format version 9"):
        client.create_table("default.t", NESTED, properties={"format-version": "9"})
