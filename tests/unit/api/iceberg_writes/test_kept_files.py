"""Files of DuckDB, which deletes those of a commit without an answer, stay in the table."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError

import tahoe
from tahoe.api.iceberg_writes import kept_files
from tahoe.api.iceberg_writes.incoming_files import IncomingFile
from tahoe.protocol.actions import AddFile
from tahoe.store.location import decode_path
from tahoe.txn.transaction import Transaction
from tests.iceberg_clients import LocalClient, writable_catalog

SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1, 2]}, SCHEMA)


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    client = LocalClient(writable_catalog(tmp_path))
    client._session.headers["X-Client-Version"] = "duckdb/v1.5.5(linux_amd64)"
    client.create_table("default.t", SCHEMA)
    return client


def delete_files_of_client(path: Path) -> int:
    """Delete all data files but those that the table names, as the client does; return their number."""
    table = tahoe.Table(path)
    live = {path / decode_path(name, table.url) for name in table.files()["path"].to_pylist()}
    gone = [file for file in path.rglob("*.parquet") if file not in live and "_delta_log" not in file.parts]
    for file in gone:
        file.unlink()
    return len(gone)


def test_the_table_stays_readable_when_the_client_deletes_its_files(client: LocalClient, tmp_path: Path) -> None:
    client.load_table("default.t").append(ROWS)
    newest = tahoe.Table(tmp_path / "t").history(1)[0]
    assert newest["operationMetrics"]["numRegisteredFiles"] == "1"
    assert delete_files_of_client(tmp_path / "t") == 1
    assert tahoe.Table(tmp_path / "t").to_arrow()["id"].to_pylist() == [1, 2]
    assert client.load_table("default.t").scan().to_arrow()["id"].to_pylist() == [1, 2]


def test_vacuum_deletes_the_first_names(client: LocalClient, tmp_path: Path) -> None:
    client.load_table("default.t").append(ROWS)
    table = tahoe.Table(tmp_path / "t")
    assert table.vacuum(0, retention_check=False).deleted == 1
    assert delete_files_of_client(tmp_path / "t") == 0
    assert table.to_arrow()["id"].to_pylist() == [1, 2]


def test_rows_are_written_again_in_object_stores(client: LocalClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "local_path", lambda url: None)
    client.load_table("default.t").append(ROWS)
    metrics = tahoe.Table(tmp_path / "t").history(1)[0]["operationMetrics"]
    assert (metrics["numRegisteredFiles"], metrics["numRewrittenFiles"]) == ("0", "1")
    assert "deletes the files of a commit without an answer" in metrics["rewrittenFiles"]
    assert delete_files_of_client(tmp_path / "t") == 1
    assert tahoe.Table(tmp_path / "t").to_arrow()["id"].to_pylist() == [1, 2]


def test_a_file_that_is_deleted_before_the_commit_is_named(
    client: LocalClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def local_path(url: str) -> str:
        delete_files_of_client(tmp_path / "t")
        return str(tmp_path / "t")

    monkeypatch.setattr(kept_files, "local_path", local_path)
    with pytest.raises(BadRequestError, match="was deleted meanwhile"):
        client.load_table("default.t").append(ROWS)
    assert tahoe.Table(tmp_path / "t").version() == 0


def test_other_clients_files_keep_their_names(tmp_path: Path) -> None:
    client = LocalClient(writable_catalog(tmp_path))
    client.create_table("default.t", SCHEMA).append(ROWS)
    assert delete_files_of_client(tmp_path / "t") == 0


@pytest.mark.parametrize("name", ["own.parquet", "data/part=a%20b/own.parquet"])
def test_the_second_name_is_in_the_folder_of_the_first(tmp_path: Path, name: str) -> None:
    table = tahoe.Table.create(tmp_path / "t", SCHEMA)
    stored = tmp_path / "t" / decode_path(name, table.url)
    stored.parent.mkdir(parents=True, exist_ok=True)
    stored.write_bytes(b"rows")
    file = IncomingFile(AddFile(name, {}, 4, 1, True), 1, None)
    (kept,) = kept_files.kept_files(Transaction(table.store, table.snapshot(), table.clock), [file], "duckdb/v1.5.5")
    second = tmp_path / "t" / decode_path(kept.add.path, table.url)
    assert second.parent == stored.parent and second != stored and second.samefile(stored)
