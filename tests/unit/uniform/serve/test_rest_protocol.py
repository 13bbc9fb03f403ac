"""The read-only REST catalog, request by request and without a socket: answers, refusals, and hostile names."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from urllib.parse import quote

import pytest

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.uniform.serve import rest_protocol as rest
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Response
from tahoe.uniform.serve.warehouse import Warehouse
from tests.unit.uniform.serve.serving import ROWS, ask, content, make_table, names, refused, warehouse_of


def test_the_configuration_names_the_endpoints_that_read(catalog: ReadOnlyCatalog) -> None:
    configuration = content(ask(catalog, "/v1/config", "warehouse=any"))
    assert (configuration["defaults"], configuration["overrides"]) == ({}, {})
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in configuration["endpoints"]
    writes = [endpoint for endpoint in configuration["endpoints"] if not endpoint.startswith(("GET", "HEAD"))]
    assert writes == ["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"]


def test_tables_with_uniform_are_listed(catalog: ReadOnlyCatalog) -> None:
    assert names(ask(catalog, "/v1/namespaces/default/tables")) == ["top"]
    assert names(ask(catalog, "/v1/namespaces/sales/tables/")) == ["orders"]
    assert content(ask(catalog, "/v1/namespaces/sales%1F2026%20q1.eu/tables"))["identifiers"] == [
        {"namespace": ["sales", "2026 q1.eu"], "name": "line items"}
    ]
    assert names(ask(catalog, "/v1/namespaces/empty/tables")) == []
    refused(ask(catalog, "/v1/namespaces/top/tables"), 404, "NoSuchNamespaceException")


def test_a_table_of_an_absent_namespace_is_an_absent_table(catalog: ReadOnlyCatalog) -> None:
    """Iceberg's Java library then loads the metadata table `snapshots` of the table `orders`."""
    refused(ask(catalog, "/v1/namespaces/sales%1Forders/tables/snapshots"), 404, "NoSuchTableException")
    refused(ask(catalog, "/v1/namespaces/nowhere/tables/orders"), 404, "NoSuchTableException")


def test_a_table_is_loaded_with_its_metadata(catalog: ReadOnlyCatalog, root: Path) -> None:
    path = "/v1/namespaces/sales%1F2026%20q1.eu/tables/line%20items"
    loaded = content(ask(catalog, path))
    assert loaded["metadata-location"] == f"file://{root}/sales/2026 q1.eu/line items/metadata/v1.metadata.json"
    assert loaded["metadata"]["properties"]["delta-version"] == "1"
    assert loaded["config"] == {}
    assert ask(catalog, path, method="HEAD") == Response(204)
    assert content(ask(catalog, f"{path}/credentials")) == {"storage-credentials": []}
    assert ask(catalog, f"{path}/metrics", method="POST") == Response(204)
    assert ask(catalog, "/v1/namespaces/sales/tables/nothing", method="HEAD").status == 404
    assert ask(catalog, "/v1/namespaces/sales/tables/nothing/credentials").status == 404


def test_only_the_snapshots_of_refs_are_sent_on_request(tmp_path: Path) -> None:
    table = make_table(tmp_path / "t")
    table.append(ROWS)
    assert UNIFORM_RUNTIME.queue.drain(120)
    catalog = ReadOnlyCatalog(warehouse_of(tmp_path))
    load = "/v1/namespaces/default/tables/t"
    every = ask(catalog, load, "snapshots=all")
    some = ask(catalog, load, "snapshots=refs")
    current = content(every)["metadata"]["current-snapshot-id"]
    assert len(content(every)["metadata"]["snapshots"]) > 1
    assert [snapshot["snapshot-id"] for snapshot in content(some)["metadata"]["snapshots"]] == [current]
    assert every.headers["ETag"] != some.headers["ETag"]
    assert ask(catalog, load, "snapshots=refs", if_none_match=some.headers["ETag"]).status == 304
    table.append(ROWS)
    assert ask(catalog, load, "snapshots=refs", if_none_match=some.headers["ETag"]).status == 200


def test_the_error_for_a_table_without_uniform_has_a_remedy(catalog: ReadOnlyCatalog) -> None:
    message = refused(ask(catalog, "/v1/namespaces/sales/tables/plain"), 400, "BadRequestException")
    for name in ("delta.universalFormat.enabledFormats", "delta.enableIcebergCompatV2", "delta.columnMapping.mode"):
        assert name in message


def test_another_writer_s_metadata_is_not_passed_on(tmp_path: Path) -> None:
    make_table(tmp_path / "t")
    newest = tmp_path / "t/metadata/v1.metadata.json"
    newest.write_text(newest.read_text().replace('"delta-version":"1"', '"delta-version":"9"'))
    answer = ask(ReadOnlyCatalog(warehouse_of(tmp_path)), "/v1/namespaces/default/tables/t")
    assert "was not written by Tahoe" in refused(answer, 500, "ForeignWriter")


def test_an_unexpected_error_is_reported_without_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    make_table(tmp_path / "t")

    def fails(*_: object) -> None:
        raise RuntimeError("s3cret")

    monkeypatch.setattr(Warehouse, "load", fails)
    with caplog.at_level(logging.ERROR, logger=rest.__name__):
        answer = ask(ReadOnlyCatalog(warehouse_of(tmp_path)), "/v1/namespaces/default/tables/t")
    assert "s3cret" not in refused(answer, 500, "InternalServerError")
    assert "RuntimeError" in caplog.text


WRITES = [
    ("create a namespace", "POST", "/v1/namespaces"),
    ("drop a namespace", "DELETE", "/v1/namespaces/sales"),
    ("set a namespace's properties", "POST", "/v1/namespaces/sales/properties"),
    ("create a table", "POST", "/v1/namespaces/sales/tables"),
    ("register a table", "POST", "/v1/namespaces/sales/register"),
    ("commit to a table", "POST", "/v1/namespaces/sales/tables/orders"),
    ("drop a table", "DELETE", "/v1/namespaces/sales/tables/orders"),
    ("unregister a table", "POST", "/v1/namespaces/sales/tables/orders/unregister"),
    ("rename a table", "POST", "/v1/tables/rename"),
    ("commit to several tables", "POST", "/v1/transactions/commit"),
    ("create a view", "POST", "/v1/namespaces/sales/views"),
    ("replace a view", "POST", "/v1/namespaces/sales/views/v"),
    ("drop a view", "DELETE", "/v1/namespaces/sales/views/v"),
    ("register a view", "POST", "/v1/namespaces/sales/register-view"),
    ("rename a view", "POST", "/v1/views/rename"),
]


@pytest.mark.parametrize(("method", "path"), [pytest.param(method, path, id=operation) for operation, method, path in WRITES])
def test_every_write_is_refused_with_a_remedy(catalog: ReadOnlyCatalog, root: Path, method: str, path: str) -> None:
    before = sorted(root.rglob("*"))
    message = refused(ask(catalog, path, "purgeRequested=true", method), 403, "ForbiddenException")
    assert "read-only" in message and "through Delta" in message
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", "/v2/config"),
        ("GET", "/v1/namespaces/sales/functions"),
        ("POST", "/v1/namespaces/sales/tables/orders/plan"),
        ("PUT", "/v1/namespaces/sales/tables/orders"),
        ("GET", "/v1/prefix/namespaces/sales/tables"),
        ("GET", "/v1/namespaces/sales/tables/orders/../orders"),
        ("GET", "/v1/%FF%FE/namespaces"),
    ],
)
def test_other_endpoints_do_not_exist(catalog: ReadOnlyCatalog, method: str, path: str) -> None:
    refused(ask(catalog, path, method=method), 404, "NotFoundException")


def test_tokens_are_not_issued(catalog: ReadOnlyCatalog) -> None:
    answer = ask(catalog, "/v1/oauth/tokens", method="POST")
    assert (answer.status, json.loads(answer.body)["error"]) == (400, "unsupported_grant_type")


# -- pages ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ReadOnlyCatalog:
    root = tmp_path_factory.mktemp("many")
    for number in range(25):
        (root / f"t{number:02}" / "_delta_log").mkdir(parents=True)
        (root / f"n{number:02}").mkdir()
    return ReadOnlyCatalog(warehouse_of(root))


@pytest.mark.parametrize("size", [1, 7, 25, 26, 1000])
def test_pages_contain_every_name_once(many: ReadOnlyCatalog, size: int) -> None:
    for path, key, count in (("/v1/namespaces/default/tables", "identifiers", 25), ("/v1/namespaces", "namespaces", 26)):
        whole = content(ask(many, path))
        assert (len(whole[key]), whole["next-page-token"]) == (count, None)
        names_read, token = [], ""
        while token is not None:
            page = content(ask(many, path, f"pageToken={quote(token)}&pageSize={size}"))
            assert len(page[key]) <= size
            names_read += page[key]
            token = page["next-page-token"]
        assert names_read == whole[key]


@pytest.mark.parametrize(
    "query", ["pageToken=%21%21", "pageToken=%C3%BC", "pageToken=/w==", "pageToken=&pageSize=0", "pageToken=&pageSize=x"]
)
def test_invalid_pages_are_refused(many: ReadOnlyCatalog, query: str) -> None:
    refused(ask(many, "/v1/namespaces", query), 400, "BadRequestException")


# -- authorization -------------------------------------------------------------------------------------------------------------


def test_only_the_right_token_is_accepted(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    catalog = ReadOnlyCatalog(warehouse_of(root), "a token ü")
    assert content(ask(catalog, "/v1/config", authorization="Bearer a token ü"))
    assert content(ask(catalog, "/v1/config", authorization="bearer a token ü", host="tables.example.org"))
    for header in ("", "Bearer", "Bearer ", "Bearer wrong", "Basic a token ü", "Bearer a token", "a token ü", "Bearer \udcff"):
        answer = ask(catalog, "/v1/config", authorization=header)
        assert "token" in refused(answer, 401, "NotAuthorizedException")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert ask(catalog, "/v1/oauth/tokens", method="POST").status == 401
    assert "a token" not in caplog.text
    assert "a token" not in repr(vars(catalog))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8181", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8181", 200),
        ("127.0.0.2:8181", 200),
        ("", 403),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8181", 403),
        ("localhost.evil.example", 403),
        ("[::2]:8181", 403),
        ("0.0.0.0:8181", 403),
        ("[::1", 200),
        ("[", 403),
    ],
)
def test_without_a_token_a_web_page_cannot_use_another_host_name(catalog: ReadOnlyCatalog, host: str, status: int) -> None:
    assert ask(catalog, "/v1/config", host=host).status == status
