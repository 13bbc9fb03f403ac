"""Tables without UniForm, served with Iceberg metadata in a folder of the server's own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tahoe.base.exceptions import InvalidRequest, StorageFailure
from tahoe.store.object_store import open_store
from tahoe.testing.log_builder import Log, add
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog
from tahoe.uniform.serve.warehouse import DEFAULT, Warehouse
from tests.unit.uniform.serve.serving import ROWS, UNIFORM, ask, make_table, names, refused, warehouse_of

TABLES = "/v1/namespaces/default/tables"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def beside(tmp_path: Path) -> Warehouse:
    return warehouse_of(tmp_path / "warehouse", metadata_path=tmp_path / "cache")


def test_without_the_folder_a_table_without_uniform_is_neither_listed_nor_loaded(tmp_path: Path) -> None:
    make_table(tmp_path / "t", {})
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))
    assert names(ask(catalog, TABLES)) == []
    assert "--all" in refused(ask(catalog, f"{TABLES}/t"), 400, "BadRequestException")


def test_a_table_without_uniform_is_listed_loaded_and_followed_and_its_folder_stays_as_it_is(tmp_path: Path) -> None:
    table = make_table(tmp_path / "warehouse" / "t", {"delta.enableDeletionVectors": "true"})
    warehouse = beside(tmp_path)
    catalog = ReadOnlyCatalog(warehouse)
    for expected, change in enumerate((None, lambda: table.append(ROWS), lambda: table.delete("id = 1")), start=1):
        if change is not None:
            change()
        before = contents(tmp_path / "warehouse")
        assert names(ask(catalog, TABLES)) == ["t"]
        current = warehouse.load((DEFAULT,), "t")
        assert current.version == table.version() == expected
        assert current.location.startswith(f"file://{tmp_path}/cache/")
        assert contents(tmp_path / "warehouse") == before
    assert warehouse.iceberg_note((DEFAULT,), "t") == "yes, converted by this server"
    assert [snapshot["summary"]["operation"] for snapshot in current.document["snapshots"]] == ["append", "append", "delete"]


def test_another_server_continues_in_the_same_folder(tmp_path: Path) -> None:
    table = make_table(tmp_path / "warehouse" / "t", {})
    beside(tmp_path).load((DEFAULT,), "t")
    table.append(ROWS)
    assert len(beside(tmp_path).load((DEFAULT,), "t").document["snapshots"]) == 2


def test_a_table_with_uniform_is_served_from_its_own_folder(tmp_path: Path) -> None:
    make_table(tmp_path / "warehouse" / "t", UNIFORM)
    warehouse = beside(tmp_path)
    assert warehouse.load((DEFAULT,), "t").location.startswith(f"file://{tmp_path}/warehouse/t/metadata/")
    assert warehouse.iceberg_note((DEFAULT,), "t") == "yes"
    assert not (tmp_path / "cache").exists()


def test_a_table_created_again_or_with_column_mapping_since_is_converted_from_the_beginning(tmp_path: Path) -> None:
    table = make_table(tmp_path / "warehouse" / "t", {})
    warehouse = beside(tmp_path)
    first = warehouse.load((DEFAULT,), "t")
    table.set_properties({"delta.columnMapping.mode": "name"})
    mapped = warehouse.load((DEFAULT,), "t")
    assert mapped.location.rpartition("/")[0] != first.location.rpartition("/")[0]
    shutil.rmtree(tmp_path / "warehouse" / "t")
    tahoe.Table.create(tmp_path / "warehouse" / "t", pa.schema([("other", pa.int64())]))
    again = warehouse.load((DEFAULT,), "t")
    assert again.version == 0
    assert [field["name"] for field in again.document["schemas"][0]["fields"]] == ["other"]


def test_a_table_that_iceberg_cannot_show_is_listed_and_gives_the_reason(tmp_path: Path) -> None:
    tahoe.Table.create(tmp_path / "warehouse" / "t", {"v": "variant"})
    warehouse = beside(tmp_path)
    assert list(warehouse.iceberg_tables((DEFAULT,))) == ["t"]
    with pytest.raises(InvalidRequest, match="column 'v' of type variant"):
        warehouse.load((DEFAULT,), "t")
    assert "column 'v' of type variant" in warehouse.iceberg_note((DEFAULT,), "t")


def test_a_file_without_statistics_is_named_and_noted(tmp_path: Path) -> None:
    Log(open_store(tmp_path / "warehouse" / "t")).begin(add("a.parquet", stats=None))
    warehouse = beside(tmp_path)
    with pytest.raises(StorageFailure, match=r"no number of records in its statistics.*Try again") as failure:
        warehouse.load((DEFAULT,), "t")
    assert "sync" not in str(failure.value)
    assert "File a.parquet has no number of records" in warehouse.iceberg_note((DEFAULT,), "t")


@pytest.mark.parametrize("folder", ["warehouse", "warehouse/t", "warehouse/.cache", "link"])
def test_the_folder_is_refused_inside_of_the_warehouse(tmp_path: Path, folder: str) -> None:
    make_table(tmp_path / "warehouse" / "t", {})
    (tmp_path / "link").symlink_to(tmp_path / "warehouse" / "t")
    with pytest.raises(InvalidRequest, match="is in the warehouse"):
        warehouse_of(tmp_path / "warehouse", metadata_path=tmp_path / folder)


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_metadata_goes_to_object_stores_too(kind: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(f"{kind}_url")
    options = request.getfixturevalue("s3_options") if kind == "s3" else {}
    tahoe.Table.create(f"{url}/warehouse/t", ROWS.schema, storage_options=options).append(ROWS)
    warehouse = warehouse_of(f"{url}/warehouse", options, metadata_path=f"{url}/metadata")
    assert warehouse.load((DEFAULT,), "t").location.startswith(f"{url}/metadata/")
