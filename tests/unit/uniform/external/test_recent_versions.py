"""VACUUM and Iceberg readers: files that they may be reading are not deleted."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SYSTEM_CLOCK
from tahoe.base.exceptions import ForeignWriter
from tahoe.store.object_store import open_store
from tahoe.uniform.external.recent_versions import LATELY_MS, recent_versions

UNIFORM = {
    "delta.universalFormat.enabledFormats": "iceberg",
    "delta.enableIcebergCompatV2": "true",
    "delta.columnMapping.mode": "name",
}


def rows(first: int) -> pa.Table:
    return pa.table({"id": range(first, first + 10)})


@pytest.fixture
def table() -> Table:
    """Return a table at version 3, with each version overwritten by the next."""
    url = f"memory://{SYSTEM_CLOCK.uuid()}/table"
    made = Table.create(url, rows(0).schema, properties=UNIFORM, store=open_store(url))
    for number in range(3):
        made.overwrite(rows(number * 10))
        made.uniform.wait()
    return made


def data_files(table: Table) -> set[str]:
    return {entry.name for entry in table.store.walk() if not entry.name.startswith(("_delta_log/", "metadata/"))}


def test_recently_shown_versions_are_returned(table: Table) -> None:
    now_ms = SYSTEM_CLOCK.now_ms()
    assert list(recent_versions(table.store, now_ms))[:3] == [3, 2, 1]
    assert list(recent_versions(table.store, now_ms + LATELY_MS + 1000)) == [3]
    assert recent_versions(open_store(f"memory://{SYSTEM_CLOCK.uuid()}/nothing"), now_ms) == ()


def test_files_of_readers_stay_and_so_does_the_iceberg_side(table: Table) -> None:
    before, metadata = data_files(table), {entry.name for entry in table.store.walk("metadata")}
    SYSTEM_CLOCK.sleep(0.01)
    assert table.vacuum(0, retention_check=False).deleted == 0
    assert data_files(table) == before
    table.uniform.wait()
    assert metadata <= {entry.name for entry in table.store.walk("metadata")}
    # A table without UniForm has no Iceberg readers to wait for.
    table.unset_properties(["delta.universalFormat.enabledFormats"])
    assert table.vacuum(0, retention_check=False).deleted == 2
    assert metadata <= {entry.name for entry in table.store.walk("metadata")}


def test_the_changes_of_another_writer_must_be_settled_first(table: Table) -> None:
    table.store.put("metadata/v99.metadata.json", json.dumps({"format-version": 2, "properties": {}}).encode())
    with pytest.raises(ForeignWriter):
        table.vacuum(0, retention_check=False)
    assert len(data_files(table)) == 3
