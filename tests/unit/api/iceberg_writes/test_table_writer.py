"""The writer of a warehouse: tables by their names, and commits that the Iceberg side cannot show at the moment."""

from __future__ import annotations

from pathlib import Path

import pytest

import tahoe
from tahoe.api.iceberg_writes.table_writer import IcebergWriter
from tahoe.base.exceptions import CommitStateUnknown, InvalidRequest, NotFound, StorageFailure
from tahoe.uniform.commits.commit_requests import NewTable, TableChange
from tests.unit.uniform.serve.serving import warehouse_of

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


def test_a_commit_that_cannot_be_shown_is_an_unknown_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = IcebergWriter(warehouse := warehouse_of(tmp_path), tahoe.Table)

    def fails(*_: object) -> None:
        raise StorageFailure("the storage is down")

    monkeypatch.setattr(warehouse, "load_committed", fails)
    with pytest.raises(CommitStateUnknown, match="Version 0 of table t is committed") as raised:
        writer.create(("default",), NewTable("t", SCHEMA))
    assert raised.value.resolve()
    assert tahoe.Table(tmp_path / "t").version() == 0


def test_a_missing_table_is_not_found_and_a_missing_file_is_an_invalid_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = IcebergWriter(warehouse_of(tmp_path), tahoe.Table)
    with pytest.raises(NotFound):
        writer.commit(("default",), "t", TableChange())
    writer.create(("default",), NewTable("t", SCHEMA))
    assert writer.commit(("default",), "t", TableChange()).version == 0

    def misses(*_: object) -> None:
        raise NotFound("There is no file x.")

    monkeypatch.setattr("tahoe.api.iceberg_writes.table_writer.commit_change", misses)
    with pytest.raises(InvalidRequest, match="There is no file x"):
        writer.commit(("default",), "t", TableChange())
