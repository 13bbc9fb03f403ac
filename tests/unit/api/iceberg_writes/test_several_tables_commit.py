"""Transactions of Iceberg clients over several tables: all tables change at once, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tahoe.base.exceptions import StorageFailure
from tahoe.coordinator.sql_coordinator import SqlCoordinator
from tahoe.uniform.serve.rest_protocol import Request, Response
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.unit.api.iceberg_writes.hand_made import KINDS, Writer, rows
from tests.unit.uniform.serve.serving import LOCAL, content, refused

MANAGED = {"delta.feature.catalogManaged": "supported", **KINDS["files are rewritten"]}


class Warehouse:
    """A server of two tables, ``a.t`` and ``b.t``."""

    def __init__(self, root: Path, coordinator: SqlCoordinator | None, **properties: str) -> None:
        for name in "ab":
            (root / name).mkdir()
        self.a, self.b = (Writer(root / name, coordinator, **properties) for name in "ab")
        for table in (self.a, self.b):
            table.table.append(rows(1, 2))
        self.catalog = writable_catalog(root, coordinator=coordinator)

    def post(self, path: str, body: object) -> Response:
        return self.catalog.answer(Request("POST", path, "", LOCAL, json.dumps(body).encode()))

    def commit(self, **requests: dict[str, Any]) -> Response:
        """Commit requests, by namespace, as one transaction."""
        return self.commit_changes(*requests.items())

    def commit_changes(self, *requests: tuple[str, dict[str, Any]]) -> Response:
        changes = [{"identifier": {"namespace": [name], "name": "t"}, **request} for name, request in requests]
        return self.post("/v1/transactions/commit", {"table-changes": changes})

    def assert_ids(self, a: list[int], b: list[int]) -> None:
        """Check the rows as Delta and as Iceberg, and both tables by the specification."""
        client = LocalClient(self.catalog)
        for writer, name, ids in ((self.a, "a.t", a), (self.b, "b.t", b)):
            writer.assert_ids(*ids)
            assert sorted(client.load_table(name).scan().to_arrow()["id"].to_pylist()) == ids
            assert writer.table.check(strict=True) == []


@pytest.fixture
def managed(tmp_path: Path) -> Warehouse:
    root = tmp_path / "warehouse"
    root.mkdir()
    return Warehouse(root, SqlCoordinator(f"sqlite:///{tmp_path}/c.db"), **MANAGED)


def test_all_tables_change_at_once(managed: Warehouse) -> None:
    a, b = managed.a, managed.b
    append = a.request("append", a.data_file(3))
    delete = b.request("delete", b.position_deletes(**{b.files()[0]: [0]}))
    assert managed.commit(a=append, b=delete) == Response(204)
    managed.assert_ids([1, 2, 3], [2])
    newest = [writer.table.history(1)[0] for writer in (a, b)]
    assert [entry["operation"] for entry in newest] == ["ICEBERG APPEND", "ICEBERG DELETE"]
    assert len({writer.table.snapshot().state.transaction_id for writer in (a, b)}) == 1
    assert append["updates"][0]["snapshot"]["snapshot-id"] == a.document["current-snapshot-id"]


def test_a_transaction_that_is_sent_again_commits_nothing(managed: Warehouse) -> None:
    requests = {name: writer.request("append", writer.data_file(3)) for name, writer in (("a", managed.a), ("b", managed.b))}
    for _ in range(2):
        assert managed.commit(**requests) == Response(204)
    managed.assert_ids([1, 2, 3], [1, 2, 3])
    again = {"a": requests["a"], "b": managed.b.request("append", managed.b.data_file(4))}
    assert "which" not in refused(managed.commit(**again), 400, "BadRequestException")
    managed.assert_ids([1, 2, 3], [1, 2, 3])


def test_one_unmet_requirement_stops_all(managed: Warehouse) -> None:
    a, b = managed.a, managed.b
    append, delete = a.request("append", a.data_file(3)), b.request("delete", b.position_deletes(**{b.files()[0]: [0]}))
    b.table.append(rows(9))
    message = refused(managed.commit(a=append, b=delete), 409, "CommitFailedException")
    assert "is not the newest" in message
    managed.assert_ids([1, 2], [1, 2, 9])


def test_an_append_is_rebased_past_a_concurrent_append(managed: Warehouse) -> None:
    a, b = managed.a, managed.b
    requests = {"a": a.request("append", a.data_file(3)), "b": b.request("append", b.data_file(3))}
    b.table.append(rows(9))
    assert managed.commit(**requests) == Response(204)
    managed.assert_ids([1, 2, 3], [1, 2, 3, 9])


def test_a_table_that_only_has_requirements_must_stay_unchanged(managed: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = managed.a, managed.b
    looked_at = {"requirements": b.request("append")["requirements"], "updates": []}
    assert managed.commit(a=a.request("append", a.data_file(3)), b=looked_at) == Response(204)
    managed.assert_ids([1, 2, 3], [1, 2])
    request = a.request("append", a.data_file(4))
    ratify = SqlCoordinator.ratify

    def after_another_writer(self: SqlCoordinator, commits: Any, unchanged: Any = {}) -> Any:  # noqa: B006 - never changed
        monkeypatch.undo()
        b.table.append(rows(9))
        return ratify(self, commits, unchanged)

    monkeypatch.setattr(SqlCoordinator, "ratify", after_another_writer)
    refused(managed.commit(a=request, b=looked_at), 409, "CommitFailedException")
    managed.assert_ids([1, 2, 3], [1, 2, 9])


def test_a_failure_between_the_tables_changes_none(managed: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = {name: writer.request("append", writer.data_file(3)) for name, writer in (("a", managed.a), ("b", managed.b))}

    def fails(*_: object) -> None:
        raise StorageFailure("the coordinator is down")

    with monkeypatch.context() as patch:
        patch.setattr(SqlCoordinator, "ratify", fails)
        refused(managed.commit(**requests), 503, "ServiceUnavailableException")
    managed.assert_ids([1, 2], [1, 2])
    assert managed.commit(**requests) == Response(204)
    managed.assert_ids([1, 2, 3], [1, 2, 3])


def test_transactions_that_cannot_be_committed_are_refused_by_name(managed: Warehouse) -> None:
    a, b = managed.a, managed.b
    request = a.request("append", a.data_file(3))
    assert "names a table twice" in refused(managed.commit_changes(("a", request), ("a", request)), 400, "BadRequestException")
    assert "changes no table" in refused(managed.commit(), 400, "BadRequestException")
    many = [("a", request)] * 101
    assert "maximum is 100" in refused(managed.commit_changes(*many), 400, "UnsupportedOperationException")
    creation = {"requirements": [{"type": "assert-create"}], "updates": []}
    assert "Create the table first" in refused(managed.commit(a=request, b=creation), 400, "UnsupportedOperationException")
    message = refused(managed.commit(a=request, absent=creation), 400, "UnsupportedOperationException")
    assert "Create the table first" in message
    missing = b.request("append", b.data_file(3))
    next((b.root / "data").iterdir()).unlink()
    assert "There is no file" in refused(managed.commit(a=request, b=missing), 400, "BadRequestException")
    managed.assert_ids([1, 2], [1, 2])


def test_tables_without_a_coordinator_are_refused(tmp_path: Path) -> None:
    plain = Warehouse(tmp_path, None, **KINDS["files are rewritten"])
    requests = {name: writer.request("append", writer.data_file(3)) for name, writer in (("a", plain.a), ("b", plain.b))}
    message = refused(plain.commit(**requests), 400, "UnsupportedOperationException")
    assert "changes 2 tables" in message and "TAHOE_COORDINATOR" in message
    plain.assert_ids([1, 2], [1, 2])


def test_a_client_creates_a_table_that_a_coordinator_manages(tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    root.mkdir()
    catalog = writable_catalog(root, coordinator=SqlCoordinator(f"sqlite:///{tmp_path}/c.db"))
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    body = {"name": "t", "schema": schema, "properties": {"delta.feature.catalogManaged": "supported", "owner": "me"}}
    answer = catalog.answer(Request("POST", "/v1/namespaces/default/tables", "", LOCAL, json.dumps(body).encode()))
    assert content(answer)["metadata"]["properties"]["owner"] == "me"
    assert "catalogManaged" in (root / "t" / "_delta_log" / f"{0:020d}.json").read_text()
