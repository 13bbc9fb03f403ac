"""Requirements on a table with a coordinator: in-commit timestamps that stay enabled, and a configured coordinator."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.coordinator.coordinated_store import CoordinatedStore
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.ops.rows.insert import WriteOptions, stage_write
from tahoe.store.object_store import open_store

ENABLED = "delta.enableInCommitTimestamps"
MANAGED = {"delta.feature.catalogManaged": "supported"}
SCHEMA = pa.schema([("id", pa.int64())])


def made(folder: Path, properties: dict[str, str]) -> Table:
    url = f"memory://{uuid.uuid4()}/t"
    coordinator = SqlCoordinator(f"sqlite:///{folder}/c.db")
    return Table.create(url, SCHEMA, properties=properties, store=open_store(url), coordinator=coordinator)


def timestamps(table: Table) -> dict[str, str]:
    return {key: value for key, value in table.snapshot().metadata.configuration.items() if "ommitTimestamp" in key}


def test_timestamps_are_on_and_stay_on(tmp_path: Path) -> None:
    table = made(tmp_path, {})
    table.append(pa.table({"id": [1]}))
    table.add_feature("catalogManaged")
    noted = timestamps(table)
    assert noted[ENABLED] == "true" and noted["delta.inCommitTimestampEnablementVersion"] == "2"
    table.overwrite(pa.table({"other": ["a"]}), overwrite_schema=True)
    table.restore(version=1)
    assert timestamps(table) == noted, "also where an older version's properties come back"
    assert table.to_arrow()["id"].to_pylist() == [1] and table.check(strict=True) == []


@pytest.mark.parametrize(
    "off", [lambda table: table.set_properties({ENABLED: "false"}), lambda table: table.unset_properties([ENABLED])]
)
def test_timestamps_cannot_be_disabled(tmp_path: Path, off) -> None:  # type: ignore[no-untyped-def]
    table = made(tmp_path, MANAGED)
    with pytest.raises(InvalidRequest) as caught:
        off(table)
    assert caught.value.code == "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"
    with pytest.raises(InvalidRequest) as caught:
        made(tmp_path, {**MANAGED, ENABLED: "false"})
    assert caught.value.code == "DELTA_CANNOT_MODIFY_CATALOG_MANAGED_DEPENDENCIES"


def test_a_table_needs_a_configured_coordinator(tmp_path: Path) -> None:
    plain = Table(f"memory://{uuid.uuid4()}/t")
    plain.append(pa.table({"id": [1]}))
    for make in (lambda: plain.add_feature("catalogManaged"), lambda: plain.set_properties(MANAGED)):
        with pytest.raises(InvalidRequest) as caught:
            make()
        assert caught.value.code == "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION"
    assert plain.version() == 0


@pytest.mark.damages_tables
def test_a_writer_of_a_table_that_was_dropped_meanwhile_commits_nothing(tmp_path: Path) -> None:
    table = made(tmp_path, MANAGED)
    table.append(pa.table({"id": [1]}))
    transaction = table.begin()
    operation = stage_write(transaction, pa.table({"id": [2]}), WriteOptions("append"))
    assert isinstance(table.store, CoordinatedStore)
    table.store.coordinator.forget(table.url)
    for entry in list(table.store.walk("")):
        table.store.delete(entry.name)
    with pytest.raises(Unsupported, match="does not know it"):
        table.commit(transaction, operation)
    assert list(table.store.walk("")) == []
