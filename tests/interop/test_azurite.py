"""Tables on Azure's Blob API (Azurite): the contract of stores, concurrent writers, every kind of commit, and other readers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tahoe import Table
from tahoe.base.exceptions import StorageFailure
from tahoe.store.log_store import LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.interleaving import in_threads
from tahoe.testing.store_suite import LogStoreContract
from tests.interop.azurite import Azurite, azurite

pytestmark = pytest.mark.readers

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite")) as running:
        running.create_container("tables")
        yield running


@pytest.fixture
def url() -> str:
    return f"az://tables/{uuid4()}"


class TestTheContract(LogStoreContract):
    @pytest.fixture
    def store(self, server: Azurite, url: str) -> LogStore:
        return open_store(url, server.options)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": ids, "p": [f"p {id % 3}" for id in ids]}, SCHEMA)


def ids(table: Table) -> list[int]:
    return sorted(table.to_arrow(columns=["id"])["id"].to_pylist())


def test_a_hundred_concurrent_appends_are_all_committed(server: Azurite, url: str) -> None:
    Table.create(url, SCHEMA, storage_options=server.options)

    def append(writer: int) -> None:
        table = Table(url, storage_options=server.options)
        for number in range(25):
            table.append(rows(100 * writer + number))

    in_threads([partial(append, writer) for writer in range(4)])
    table = Table(url, storage_options=server.options)
    assert (table.version(), ids(table)) == (100, sorted(100 * writer + number for writer in range(4) for number in range(25)))
    assert table.check(deep=True) == []


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_every_kind_of_commit(server: Azurite, url: str, vectors: str) -> None:
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": "true"}
    table = Table.create(url, SCHEMA, partition_by=["p"], properties=properties, storage_options=server.options)
    table.append(rows(*range(30)))
    table.delete("id < 5")
    table.update({"id": "id + 100"}, "id = 7")
    table.merge(rows(8, 50), "target.id = source.id").when_matched_delete().when_not_matched_insert_all().execute()
    expected = sorted([*(id for id in range(5, 30) if id not in (7, 8)), 50, 107])
    assert ids(table) == expected
    table.checkpoint()
    table.optimize()
    assert ids(Table(url, storage_options=server.options)) == expected
    table.restore(1)
    assert ids(table) == list(range(30)) and table.check(deep=True) == []
    table.vacuum(0, retention_check=False)
    assert ids(table) == list(range(30)) and table.check(deep=True) == []
    if vectors == "false":
        options = {**server.options, "azure_storage_allow_http": "true"}
        assert sorted(DeltaTable(url, storage_options=options).to_pyarrow_table(columns=["id"])["id"].to_pylist()) == list(
            range(30)
        )


def test_uniform_is_published_there(server: Azurite, url: str) -> None:
    uniform = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
    table = Table.create(url, SCHEMA, properties=uniform, storage_options=server.options)
    table.append(rows(1, 2))
    status = table.uniform.wait(timeout=60)
    assert (status.iceberg_version, status.lag_versions) == (1, 0)


def test_a_missing_container_is_named_with_a_remedy(server: Azurite) -> None:
    with pytest.raises(StorageFailure, match="container") as caught:
        Table("az://no-such-container/t", storage_options=server.options).append(rows(1))
    assert "ContainerNotFound" in str(caught.value) and "Try again" not in str(caught.value)


def test_a_wrong_key_is_refused_and_not_shown(server: Azurite, url: str) -> None:
    wrong = "Q0FOQVJZLVNFQ1JFVA=="
    with pytest.raises(StorageFailure) as caught:
        Table(url, storage_options=server.options | {"azure_storage_account_key": wrong}).version()
    assert caught.value.code == "TAHOE_ACCESS_DENIED" and wrong not in str(caught.value)
