"""Tokens of namespaces: their permissions, the visible tables, and the file that lists them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tahoe.base.exceptions import InvalidRequest
from tahoe.uniform.serve.access import NamespaceToken, Tokens, digest, matching, namespace_tokens
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request, Response
from tests.iceberg_clients import writable_catalog
from tests.unit.uniform.serve.serving import content, make_table, names, refused, warehouse_of

FILE = """
[[token]]
namespace = "sales"
token = "writes sales"
writes = true

[[token]]
namespace = ["sales", "eu"]
token = "reads eu"
"""
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("sales/t", "sales/eu/t", "other/t", "top"):
        make_table(tmp_path / folder)
    return tmp_path


def ask(catalog: ReadOnlyCatalog, method: str, path: str, token: str, body: object = None) -> Response:
    headers = {"host": "127.0.0.1", "authorization": f"Bearer {token}"} if token else {"host": "127.0.0.1"}
    return catalog.answer(Request(method, path, "", headers, b"" if body is None else json.dumps(body).encode()))


def table(*namespace: str, name: str = "t") -> str:
    return f"/v1/namespaces/{'%1F'.join(namespace)}/tables/{name}"


def test_a_file_lists_the_tokens() -> None:
    assert namespace_tokens(FILE, "tokens.toml") == (
        NamespaceToken(("sales",), digest("writes sales"), writes=True),
        NamespaceToken(("sales", "eu"), digest("reads eu")),
    )
    assert [token.namespace for token in matching(namespace_tokens(FILE, ""), "reads eu")] == [("sales", "eu")]
    assert matching(namespace_tokens(FILE, ""), "") == []


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("s3cret", "is no TOML file"),
        ("", "tables"),
        ("token = 's3cret'", "tables"),
        ("token = ['s3cret']", "entry 1 of x.toml must have"),
        ("[[token]]\ntoken = 's3cret'", "entry 1 of x.toml must have"),
        ("[[token]]\ntoken = 's3cret'\nnamespace = 'a'\nother = 1", "entry 1 of x.toml must have"),
        ("[[token]]\ntoken = 's3cret'\nnamespace = []", "neither a text nor"),
        ("[[token]]\ntoken = 's3cret'\nnamespace = ['']", "neither a text nor"),
        ("[[token]]\ntoken = ' '\nnamespace = 'a'", "empty token"),
        ("[[token]]\ntoken = 's3cret'\nnamespace = 'a'\nwrites = 's3cret'", "true or false"),
    ],
)
def test_a_file_that_is_wrong_is_refused_without_its_tokens(text: str, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named) as caught:
        namespace_tokens(text, "x.toml")
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(Tokens("s3cret", "s3cret", namespace_tokens(FILE, "")))


def test_a_token_reads_and_writes_in_its_namespace_alone(root: Path) -> None:
    catalog = writable_catalog(root, namespace_tokens=namespace_tokens(FILE, ""))
    new = {"name": "new", "schema": SCHEMA}

    def statuses(method: str, path: str, body: object = None) -> list[int]:
        return [ask(catalog, method, path, token, body).status for token in ("writes sales", "reads eu", "other", "")]

    assert statuses("GET", "/v1/config") == [200, 200, 401, 401]
    assert statuses("GET", table("sales")) == [200, 403, 401, 401]
    assert statuses("GET", table("sales", "eu")) == [200, 200, 401, 401]
    assert statuses("GET", table("other")) == [403, 403, 401, 401]
    assert statuses("GET", table("default", name="top")) == [403, 403, 401, 401]
    assert statuses("POST", f"{table('sales', 'eu')}/metrics", {}) == [204, 204, 401, 401]
    assert statuses("POST", "/v1/namespaces/other/tables", new) == [403, 403, 401, 401]
    assert statuses("POST", "/v1/namespaces/sales%1Feu/tables", new) == [200, 403, 401, 401]
    assert statuses("DELETE", table("other")) == [403, 403, 401, 401]
    assert statuses("GET", "/") == [403, 403, 401, 401]
    message = refused(ask(catalog, "GET", table("other"), "reads eu"), 403, "ForbiddenException")
    assert message == "The token does not admit this request: it is for the namespace 'sales.eu' (reading)."


def test_requests_with_namespaces_in_their_body_need_all_of_them(root: Path) -> None:
    catalog = writable_catalog(root, namespace_tokens=namespace_tokens(FILE, ""))

    def status(path: str, body: object, token: str = "writes sales") -> int:
        return ask(catalog, "POST", path, token, body).status

    here, there = {"namespace": ["sales"], "name": "t"}, {"namespace": ["other"], "name": "u"}
    assert status("/v1/tables/rename", {"source": here, "destination": there}) == 403
    assert status("/v1/tables/rename", {"source": there, "destination": here}) == 403
    assert status("/v1/tables/rename", {"source": here}) == 400
    assert status("/v1/tables/renam%65", {"source": here, "destination": {**here, "name": "u"}}) == 403
    assert status("/v1/namespaces", {"namespace": ["sales", "us"]}) == 200
    assert status("/v1/namespaces", {"namespace": ["sales", "us"]}, "reads eu") == 403
    assert status("/v1/namespaces", {"namespace": ["more"]}) == 403
    changes = [{"identifier": each, "requirements": [], "updates": []} for each in (here, there)]
    assert status("/v1/transactions/commit", {"table-changes": changes}) == 403
    assert status("/v1/transactions/commit", {"table-changes": changes[:1]}) == 204
    assert (root / "other" / "t").exists() and not (root / "more").exists()


def test_lists_show_the_namespaces_of_the_token(root: Path) -> None:
    catalog = writable_catalog(root, token="all", write_token="all writes", namespace_tokens=namespace_tokens(FILE, ""))

    def shown(token: str, query: str = "") -> list[str]:
        headers = {"authorization": f"Bearer {token}"}
        answer = catalog.answer(Request("GET", "/v1/namespaces", query, headers))
        return [".".join(levels) for levels in content(answer)["namespaces"]]

    assert shown("all") == shown("all writes") == ["default", "other", "sales"]
    assert shown("writes sales") == shown("reads eu") == ["sales"]
    assert shown("reads eu", "parent=sales") == ["sales.eu"] and shown("reads eu", "parent=other") == []


def test_the_read_only_catalog_has_them_too(root: Path) -> None:
    catalog = ReadOnlyCatalog(warehouse_of(root), None, namespace_tokens(FILE, ""))
    assert ask(catalog, "GET", "/v1/namespaces", "").status == 401
    assert names(ask(catalog, "GET", "/v1/namespaces/sales%1Feu/tables", "reads eu")) == ["t"]
    assert ask(catalog, "GET", table("other"), "reads eu").status == 403
    assert ask(catalog, "POST", "/v1/tables/rename", "writes sales", {}).status == 403


def test_one_token_may_be_listed_for_several_namespaces(root: Path) -> None:
    both = FILE + '\n[[token]]\nnamespace = "other"\ntoken = "writes sales"\n'
    catalog = writable_catalog(root, namespace_tokens=namespace_tokens(both, ""))
    assert ask(catalog, "GET", table("other"), "writes sales").status == 200
    assert ask(catalog, "DELETE", table("other"), "writes sales").status == 403
    assert (root / "other" / "t").exists()
