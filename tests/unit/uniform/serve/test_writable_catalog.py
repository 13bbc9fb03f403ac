"""The writable REST catalog, request by request: endpoints, statuses, tokens, sizes and web pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import (
    BadRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)

import tahoe
from tahoe.base.exceptions import (
    CommitStateUnknown,
    CorruptTable,
    DeltaConcurrentModificationException,
    InvalidRequest,
    NotFound,
    StorageFailure,
    TahoeError,
    Unsupported,
)
from tahoe.uniform.serve.rest_protocol import Request, Response
from tahoe.uniform.serve.writable_catalog import MOST_BODY_BYTES, WritableCatalog
from tests.iceberg_clients import LocalClient, writable_catalog
from tests.unit.uniform.serve.serving import LOCAL, ROWS, content, refused

TABLES, TABLE = "/v1/namespaces/default/tables", "/v1/namespaces/default/tables/t"
TRANSACTION = "/v1/transactions/commit"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
NEW = {"name": "t", "schema": SCHEMA}


@pytest.fixture
def catalog(tmp_path: Path) -> WritableCatalog:
    return writable_catalog(tmp_path)


def post(catalog: WritableCatalog, path: str, body: object, **headers: str) -> Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return catalog.answer(Request("POST", path, "", {**LOCAL, **headers}, data))


def test_the_configuration_names_the_endpoints_that_write(catalog: WritableCatalog) -> None:
    endpoints = content(catalog.answer(Request("GET", "/v1/config", "", LOCAL)))["endpoints"]
    prefix = "POST /v1/{prefix}"
    writes = {endpoint for endpoint in endpoints if not endpoint.startswith(("GET", "HEAD"))}
    assert writes == {
        f"{prefix}/namespaces",
        "DELETE /v1/{prefix}/namespaces/{namespace}",
        f"{prefix}/namespaces/{{namespace}}/properties",
        "DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}",
        f"{prefix}/tables/rename",
        f"{prefix}/namespaces/{{namespace}}/tables/{{table}}/metrics",
        f"{prefix}/namespaces/{{namespace}}/tables",
        f"{prefix}/namespaces/{{namespace}}/tables/{{table}}",
        f"{prefix}/transactions/commit",
        f"{prefix}/namespaces/{{namespace}}/register",
    }


def test_endpoints_that_are_not_supported_say_so(catalog: WritableCatalog) -> None:
    message = refused(post(catalog, "/v1/namespaces/default/views", {}), 501, "UnsupportedOperationException")
    assert message == "Creating a view is not supported by this server."


def test_a_table_is_created_once(catalog: WritableCatalog) -> None:
    created = content(post(catalog, TABLES, NEW))
    assert created["metadata"]["schemas"][0]["fields"] == [{"id": 1, "name": "id", "required": False, "type": "long"}]
    refused(post(catalog, TABLES, NEW), 409, "AlreadyExistsException")
    refused(post(catalog, "/v1/namespaces/nowhere/tables", NEW), 404, "NoSuchNamespaceException")
    refused(post(catalog, TABLES, {**NEW, "name": "_hidden"}), 400, "BadRequestException")
    refused(post(catalog, TABLES, {**NEW, "name": "../t"}), 400, "BadRequestException")


def test_a_transaction_may_concern_one_table(catalog: WritableCatalog) -> None:
    post(catalog, TABLES, NEW)
    identifier = {"namespace": ["default"], "name": "t"}
    change = {"identifier": identifier, "requirements": [], "updates": []}
    assert post(catalog, TRANSACTION, {"table-changes": [change]}) == Response(204)
    refused(post(catalog, TRANSACTION, {"table-changes": [{**change, "identifier": {}}]}), 400, "BadRequestException")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5", b'"x"', b"\xff", b"[" * 100_000, b'{"name": 5}', b'{"name": "x"}'])
def test_a_malformed_body_is_refused(catalog: WritableCatalog, tmp_path: Path, body: bytes) -> None:
    refused(post(catalog, TABLES, body), 400, "BadRequestException")
    assert list(tmp_path.iterdir()) == []


def test_a_large_body_is_refused(catalog: WritableCatalog) -> None:
    message = refused(post(catalog, TABLES, b" " * (MOST_BODY_BYTES + 1)), 413, "BadRequestException")
    assert f"{MOST_BODY_BYTES:,}" in message


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (DeltaConcurrentModificationException("x"), 409, "CommitFailedException"),
        (InvalidRequest("x"), 400, "BadRequestException"),
        (Unsupported("x"), 400, "UnsupportedOperationException"),
        (CorruptTable("x"), 400, "BadRequestException"),
        (NotFound("x"), 404, "NoSuchTableException"),
        (StorageFailure("x"), 503, "ServiceUnavailableException"),
        (
            CommitStateUnknown("x", transaction_id="t", version=1, resolve=lambda: False),
            500,
            "CommitStateUnknownException",
        ),
    ],
)
def test_the_status_says_whether_to_retry(tmp_path: Path, error: TahoeError, status: int, kind: str) -> None:
    catalog = writable_catalog(tmp_path)

    class Fails:
        def commit(self, *_: Any) -> Any:
            raise error

    catalog._writer = Fails()  # type: ignore[assignment]
    refused(post(catalog, TABLE, {"requirements": [], "updates": []}), status, kind)


def test_reading_and_writing_have_tokens_of_their_own(tmp_path: Path) -> None:
    catalog = writable_catalog(tmp_path, token="reads", write_token="writes")

    def status(method: str, token: str | None) -> int:
        headers = LOCAL if token is None else {**LOCAL, "authorization": f"Bearer {token}"}
        body = json.dumps({"name": f"t{token}", "schema": SCHEMA}).encode() if method == "POST" else b""
        return catalog.answer(Request(method, TABLES, "", headers, body)).status

    assert [status("GET", token) for token in ("reads", "writes", "other", None)] == [200, 200, 401, 401]
    assert [status("POST", token) for token in ("reads", "writes", "other", None)] == [401, 200, 401, 401]


def test_a_reader_reports_metrics_and_changes_no_table_of_that_name(tmp_path: Path) -> None:
    catalog = writable_catalog(tmp_path, token="reads", write_token="writes")
    reader = {**LOCAL, "authorization": "Bearer reads"}
    post(catalog, TABLES, {**NEW, "name": "metrics"}, authorization="Bearer writes")
    assert post(catalog, f"{TABLES}/metrics/metrics", {}, authorization="Bearer reads").status == 204
    for method in ("POST", "DELETE"):
        for path in (f"{TABLES}/metrics", f"{TABLES}/metrics/", "/v1/namespaces/metrics", f"{TABLES}/x%2Fmetrics"):
            assert catalog.answer(Request(method, path, "", reader, b"{}")).status == 401, (method, path)
    assert catalog.answer(Request("DELETE", f"{TABLES}/t/metrics", "", reader)).status == 401
    assert catalog.answer(Request("HEAD", f"{TABLES}/metrics", "", reader)).status == 204


def test_readers_need_no_token_if_only_writing_has_one(tmp_path: Path) -> None:
    catalog = writable_catalog(tmp_path, write_token="writes")
    assert catalog.answer(Request("GET", TABLES, "", LOCAL)).status == 200
    assert catalog.answer(Request("GET", TABLES, "", {"host": "elsewhere.example"})).status == 403
    refused(post(catalog, TABLES, NEW), 401, "NotAuthorizedException")


@pytest.mark.parametrize(
    "header", [{"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}]
)
def test_web_pages_cannot_write(catalog: WritableCatalog, header: dict[str, str]) -> None:
    assert "web pages" in refused(post(catalog, TABLES, NEW, **header), 403, "ForbiddenException")
    assert catalog.answer(Request("GET", TABLES, "", {**LOCAL, **header})).status == 200


def test_the_client_s_name_in_the_history_is_bounded_and_printable(catalog: WritableCatalog) -> None:
    from tahoe.uniform.serve.writable_catalog import _client

    assert _client(Request("POST", TABLE, "", {"user-agent": "a\n\x1b[31m" + "b" * 500})) == "a[31m" + "b" * 95
    assert _client(Request("POST", TABLE)) == "unknown"


# -- namespaces, and tables that go or move ------------------------------------------------------------------------------------


def test_namespaces_are_made_with_properties_and_dropped_when_empty(tmp_path: Path) -> None:
    client = LocalClient(writable_catalog(tmp_path))
    client.create_namespace("sales", {"owner": "me"})
    client.create_namespace(("sales", "eu"))
    assert client.list_namespaces() == [("default",), ("sales",)]
    assert client.list_namespaces("sales") == [("sales", "eu")]
    with pytest.raises(NamespaceAlreadyExistsError):
        client.create_namespace("sales")
    assert client.load_namespace_properties("sales") == {"owner": "me"}
    summary = client.update_namespace_properties("sales", {"owner", "other"} - {"owner"}, {"owner": "you", "new": "x"})
    assert (sorted(summary.updated), summary.removed, summary.missing) == (["new", "owner"], [], ["other"])
    assert client.load_namespace_properties("sales") == {"owner": "you", "new": "x"}
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace("sales")
    client.drop_namespace(("sales", "eu"))
    client.create_table("sales.t", ROWS.schema)
    with pytest.raises(NamespaceNotEmptyError):
        client.drop_namespace("sales")
    client.purge_table("sales.t")
    client.drop_namespace("sales")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(NoSuchNamespaceError):
        client.drop_namespace("sales")


@pytest.mark.parametrize("name", ["_hidden", "..", "a/b", "", "default", "t"])
def test_a_namespace_that_no_folder_can_be_is_refused(catalog: WritableCatalog, tmp_path: Path, name: str) -> None:
    post(catalog, TABLES, NEW)
    before = sorted(tmp_path.iterdir())
    assert post(catalog, "/v1/namespaces", {"namespace": [name]}).status in (400, 409)
    assert post(catalog, "/v1/namespaces", {"namespace": ["t", "below"]}).status == 409
    assert sorted(tmp_path.iterdir()) == before


def test_a_dropped_table_is_set_aside_and_a_purged_one_deleted(tmp_path: Path) -> None:
    client = LocalClient(writable_catalog(tmp_path))
    client.create_namespace("sales")
    client.create_table("sales.t", ROWS.schema).append(ROWS)
    client.drop_table("sales.t")
    assert client.list_tables("sales") == [] and client.list_namespaces() == [("default",), ("sales",)]
    (aside,) = (tmp_path / ".dropped" / "sales").iterdir()
    assert aside.name.startswith("t-") and tahoe.Table(aside).to_arrow().num_rows == 5
    client.create_table("sales.t", ROWS.schema).append(ROWS)
    client.purge_table("sales.t")
    assert list((tmp_path / ".dropped" / "sales").iterdir()) == [aside]
    with pytest.raises(NoSuchTableError):
        client.drop_table("sales.t")
    client.drop_namespace("sales")
    assert client.list_namespaces() == [("default",)]


def test_a_renamed_table_keeps_its_rows_on_both_sides(tmp_path: Path) -> None:
    client = LocalClient(writable_catalog(tmp_path))
    client.create_namespace("sales")
    client.create_table("default.t", ROWS.schema).append(ROWS)
    client.create_table("default.u", ROWS.schema)
    with pytest.raises(TableAlreadyExistsError):
        client.rename_table("default.t", "default.u")
    with pytest.raises(TableAlreadyExistsError, match="there is a folder"):
        client.rename_table("default.t", "default.sales")
    moved = client.rename_table("default.t", "sales.orders")
    assert moved.location() == f"file://{tmp_path}/sales/orders"
    moved.append(ROWS)
    assert moved.scan().to_arrow().num_rows == tahoe.Table(tmp_path / "sales/orders").to_arrow().num_rows == 10
    assert not (tmp_path / "t").exists()
    with pytest.raises(NoSuchTableError):
        client.rename_table("default.t", "sales.again")


def test_a_table_whose_folder_was_renamed_is_converted_again(tmp_path: Path) -> None:
    client = LocalClient(writable_catalog(tmp_path))
    client.create_table("default.t", ROWS.schema).append(ROWS)
    (tmp_path / "t").rename(tmp_path / "u")
    moved = client.load_table("default.u")
    assert moved.location() == f"file://{tmp_path}/u" and moved.scan().to_arrow().num_rows == 5
    moved.append(ROWS)
    assert client.load_table("default.u").scan().to_arrow().num_rows == 10


def test_in_an_object_store_tables_are_purged_and_not_renamed(memory_url: str) -> None:
    client = LocalClient(writable_catalog(memory_url))
    client.create_namespace("sales", {"a": "b"})
    assert client.list_namespaces() == [("default",), ("sales",)]
    assert post(client._here, "/v1/namespaces/sales/tables", NEW).status == 200  # type: ignore[arg-type]
    for change in (lambda: client.drop_table("sales.t"), lambda: client.rename_table("sales.t", "sales.u")):
        with pytest.raises(BadRequestError, match="in an object store"):
            change()
    client.purge_table("sales.t")
    client.drop_namespace("sales")
    assert client.list_namespaces() == [("default",)]


def test_properties_that_are_set_and_removed_at_once_are_refused(catalog: WritableCatalog) -> None:
    path = "/v1/namespaces/default/properties"
    body = {"updates": {"a": "1"}, "removals": ["a"]}
    assert "both set and removed" in refused(post(catalog, path, body), 422, "UnprocessableEntityException")
    assert content(post(catalog, path, {"updates": {"a": "1"}})) == {"updated": ["a"], "removed": [], "missing": []}
    assert content(post(catalog, path, {"removals": ["a", "b"]})) == {"updated": [], "removed": ["a"], "missing": ["b"]}
