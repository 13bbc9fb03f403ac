"""Commits of PyIceberg as Delta commits: rows, history, one snapshot id on both sides, conflicts and repeated requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import Table as IcebergTable

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.testing.iceberg_verifier import verify
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.interop.engines import canonical

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
NAME = "sales.orders"


def rows(*ids: int, name: str = "n") -> pa.Table:
    return pa.table({"id": ids, "name": [f"{name}{number}" for number in ids]}, schema=SCHEMA)


@pytest.fixture
def client(tmp_path: Path) -> LocalClient:
    (tmp_path / "sales").mkdir()
    return LocalClient(writable_catalog(tmp_path))


@pytest.fixture
def orders(client: LocalClient) -> IcebergTable:
    return client.create_table(NAME, SCHEMA, properties={"commit.retry.num-retries": "0"})


def delta(client: LocalClient) -> tahoe.Table:
    return tahoe.Table(client._here._warehouse.url_of(("sales",), "orders"))


def assert_equal_sides(client: LocalClient, *ids: int) -> tahoe.Table:
    table = delta(client)
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(ids)
    assert canonical(client.load_table(NAME).scan().to_arrow()) == canonical(table.to_arrow())
    return table


def test_an_append_is_a_delta_commit_with_the_client_s_snapshot(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2), snapshot_properties={"own": "kept"})
    newest = assert_equal_sides(client, 1, 2).history(1)[0]
    snapshot = client.load_table(NAME).current_snapshot()
    assert snapshot is not None and snapshot.summary is not None
    assert (newest["version"], newest["operation"]) == (1, "ICEBERG APPEND")
    assert newest["operationParameters"] == {
        "client": "PyIceberg 0.12.0",
        "snapshotId": str(snapshot.snapshot_id),
        "summary": '{"own":"kept"}',
    }
    assert newest["operationMetrics"]["numRegisteredFiles"] == "1"
    assert newest["operationMetrics"]["numRewrittenFiles"] == "0"
    assert snapshot.summary["own"] == "kept" and snapshot.summary["delta-version"] == "1"
    assert client.load_table(NAME).scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows == 2


def test_rows_are_overwritten_deleted_and_upserted(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2, 3))
    orders.overwrite(rows(7), "id = 2")
    assert_equal_sides(client, 1, 3, 7)
    orders.delete("id = 1")
    assert_equal_sides(client, 3, 7)
    orders.upsert(rows(7, 8, name="new"), ["id"])
    table = assert_equal_sides(client, 3, 7, 8)
    assert sorted(table.to_arrow()["name"].to_pylist()) == ["n3", "new7", "new8"]
    operations = [commit["operation"] for commit in table.history()]
    assert operations == ["ICEBERG OVERWRITE", "ICEBERG OVERWRITE", "ICEBERG OVERWRITE", "ICEBERG APPEND", "CREATE TABLE"]
    orders.delete("id > 0")
    assert assert_equal_sides(client).history(1)[0]["operation"] == "ICEBERG DELETE"


def test_appends_are_rebased_and_other_changes_conflict(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2))
    first, second = client.load_table(NAME), client.load_table(NAME)
    delta(client).append(rows(3))
    first.append(rows(4))
    assert_equal_sides(client, 1, 2, 3, 4)
    with pytest.raises(CommitFailedException, match="which the new one changes, is not the newest"):
        second.delete("id = 1")
    assert_equal_sides(client, 1, 2, 3, 4)
    second.refresh().delete("id = 1")
    assert_equal_sides(client, 2, 3, 4)


def test_a_delta_commit_between_reading_and_committing_is_a_conflict(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2))
    writer = client._here._writer
    load = writer._warehouse.load_with_version

    def load_then_lose(*names: Any) -> Any:
        writer._warehouse.load_with_version = load
        current = load(*names)
        delta(client).append(rows(5))
        return current

    writer._warehouse.load_with_version = load_then_lose
    with pytest.raises(CommitFailedException):
        orders.delete("id = 1")
    assert sorted(delta(client).to_arrow()["id"].to_pylist()) == [1, 2, 5]


class Recorder:
    """Repeats requests to commit."""

    def __init__(self, client: LocalClient) -> None:
        self.requests: list[Any] = []
        self._catalog, answer = client._here, client._here.answer

        def recorded(request: Any) -> Any:
            if request.method == "POST" and not request.path.endswith("/metrics"):
                self.requests.append(request)
            return answer(request)

        client._here.answer = recorded  # type: ignore[method-assign]

    def again(self) -> Any:
        return self._catalog.answer(self.requests[-1])


def test_a_repeated_request_commits_once_and_has_the_same_answer(client: LocalClient, orders: IcebergTable) -> None:
    recorder = Recorder(client)
    orders.append(rows(1))
    first, second = recorder.again(), recorder.again()
    assert (first.status, first.content) == (200, second.content)
    assert assert_equal_sides(client, 1).version() == 1
    delta(client).append(rows(2))
    assert recorder.again().status == 200
    assert_equal_sides(client, 1, 2)


def test_a_commit_that_the_iceberg_side_does_not_show_yet_is_recognized(client: LocalClient, orders: IcebergTable) -> None:
    recorder = Recorder(client)
    orders.append(rows(1))
    UNIFORM_RUNTIME.drain(120, 120)
    table = delta(client)
    table.uniform.sync(rebuild=True)  # the rebuilt side has lost the client's snapshot
    assert recorder.again().status == 200
    assert table.version() == 1


def test_a_file_of_the_table_is_not_added_again(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1))
    (file,) = delta(client).files().to_pylist()
    with pytest.raises(Exception, match="is in the table already"):
        orders.add_files([f"{delta(client).url}/{file['path']}"], check_duplicate_files=False)
    assert_equal_sides(client, 1)


def test_append_only_tables_accept_appends_alone(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2))
    delta(client).set_properties({"delta.appendOnly": "true"})
    orders = client.load_table(NAME)
    orders.append(rows(3))
    with pytest.raises(Exception, match="DELTA_CANNOT_MODIFY_APPEND_ONLY"):
        client.load_table(NAME).delete("id = 1")
    assert_equal_sides(client, 1, 2, 3)


def test_the_change_feed_and_streams_have_each_commit_once(client: LocalClient, orders: IcebergTable) -> None:
    delta(client).set_properties({"delta.enableChangeDataFeed": "true"})
    orders = client.load_table(NAME)
    orders.append(rows(1, 2))
    orders.delete("id = 1")
    feed = delta(client).changes(1).select(["id", "_change_type", "_commit_version"]).to_pylist()
    net: dict[int, int] = {}
    for change in feed:
        net[change["id"]] = net.get(change["id"], 0) + (1 if change["_change_type"] == "insert" else -1)
    assert net == {1: 0, 2: 1}


def test_an_earlier_snapshot_made_current_is_a_restore(client: LocalClient, orders: IcebergTable) -> None:
    orders.append(rows(1, 2))
    earlier = orders.refresh().current_snapshot()
    assert earlier is not None
    orders.append(rows(3))
    orders.delete("id = 1")
    assert_equal_sides(client, 2, 3)
    client.load_table(NAME).manage_snapshots().set_current_snapshot(earlier.snapshot_id).commit()
    newest = assert_equal_sides(client, 1, 2).history(1)[0]
    assert newest["operation"] == "RESTORE"
    assert newest["operationParameters"]["client"] == "PyIceberg 0.12.0"
    assert newest["operationParameters"]["snapshotId"] == str(earlier.snapshot_id)
    now = client.load_table(NAME)
    assert now.current_snapshot() == earlier, "no snapshot is added"
    assert [entry.snapshot_id for entry in now.history()].count(earlier.snapshot_id) == 2
    now.append(rows(4))
    table = assert_equal_sides(client, 1, 2, 4)
    assert client.load_table(NAME).current_snapshot().parent_snapshot_id == earlier.snapshot_id
    assert verify(table.store, is_linear=False) == table.version()
    with pytest.raises(BadRequestError, match="the tag 'audit'"):
        client.load_table(NAME).manage_snapshots().create_tag(earlier.snapshot_id, "audit").commit()
