"""Iceberg's REST catalog protocol over the Delta tables of a warehouse, read-only; requests to answers, without a socket.

Paths and answers follow apache/iceberg, ``open-api/rest-catalog-open-api.yaml``. Requests that would change something are answered with
403: tables are changed through Delta, and the change appears here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes

from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.uniform.external.metadata_listing import CurrentMetadata
from tahoe.uniform.serve.warehouse import NAMESPACE_NOT_FOUND, Namespace, Warehouse

logger = logging.getLogger(__name__)

_PAGE = 1000
_MOST_PAGE = 10_000
_SEPARATOR = "\x1f"
_RETRY_SECONDS = "5"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the catalog.

    Args:
        method: in upper case.
        path: as sent, percent-encoded.
        query: as sent, without the question mark.
        headers: names in lower case.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a catalog request.

    Args:
        content: serialized as JSON; None for no body.
    """

    status: int
    content: JsonMapping | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The content as JSON; empty if there is none."""
        return b"" if self.content is None else json.dumps(self.content, separators=(",", ":")).encode()


class ReadOnlyCatalog:
    """Answers requests.

    Args:
        warehouse: the tables.
        token: the bearer token that clients must send; None admits any client that addresses this machine by a loopback name.
    """

    def __init__(self, warehouse: Warehouse, token: str | None = None) -> None:
        self._warehouse = warehouse
        self._token = None if token is None else _digest(token)

    def answer(self, request: Request) -> Response:
        """Return the answer to a request; never raises for an error in the request, the table or storage."""
        try:
            return self.refused(request) or self._routed(request)
        except _RequestError as refused:
            return refused.answer
        except TahoeError as error:
            return _failure(error)
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            return _error(500, "InternalServerError", f"Unexpected {type(error).__name__}; the server's log says more.")

    # -- authorization -----------------------------------------------------------------------------------------------------

    def refused(self, request: Request) -> Response | None:
        """Return the answer to a request without permission; None if it has permission.

        A browser sends the token as the password of basic authentication.
        """
        if self._token is None:
            # A web page can make its own host name resolve to the loopback address, but cannot make the browser send another name.
            if is_loopback(_host(request.headers.get("host", ""))):
                return None
            return _error(
                403, "ForbiddenException", "Without a token this server accepts requests to localhost and 127.0.0.1 only."
            )
        scheme, _, credential = request.headers.get("authorization", "").partition(" ")
        sent = _password(credential) if scheme.lower() == "basic" else credential.strip() if scheme.lower() == "bearer" else ""
        if sent and hmac.compare_digest(_digest(sent), self._token):
            return None
        return _error(
            401,
            "NotAuthorizedException",
            "The bearer token is missing or wrong: set 'token' in the client's catalog properties.",
            {"WWW-Authenticate": "Bearer"},
        )

    # -- endpoints ---------------------------------------------------------------------------------------------------------

    def _routed(self, request: Request) -> Response:
        parts = [_decoded(part) for part in request.path.rstrip("/").split("/")[1:]]
        for route in _ROUTES:
            names = route.matched(request.method, parts)
            if names is not None:
                return route.run(self, request, names)
        return _error(404, "NotFoundException", f"This read-only catalog has no endpoint {request.method} {request.path}.")

    def config(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return the configuration: no defaults, and the list of endpoints."""
        return Response(200, {"defaults": {}, "overrides": {}, "endpoints": _ENDPOINTS})

    def list_namespaces(self, request: Request, names: Mapping[str, str]) -> Response:
        """List the namespaces directly in a namespace, with paging."""
        query = _query(request)
        parent = _namespace(query["parent"]) if query.get("parent") else ()
        entries = ((namespace[-1], list(namespace)) for namespace in self._warehouse.namespaces(parent))
        return _listing("namespaces", entries, query)

    def load_namespace(self, request: Request, names: Mapping[str, str]) -> Response:
        """Confirm that a namespace exists; it has no properties."""
        namespace = _namespace(names["namespace"])
        if not self._warehouse.has_namespace(namespace):
            raise _no_namespace(namespace)
        return Response(204) if request.method == "HEAD" else Response(200, {"namespace": list(namespace), "properties": {}})

    def list_tables(self, request: Request, names: Mapping[str, str]) -> Response:
        """List the names of the tables with UniForm in a namespace, with paging."""
        namespace = _namespace(names["namespace"])
        entries = ((name, {"namespace": list(namespace), "name": name}) for name in self._warehouse.iceberg_tables(namespace))
        return _listing("identifiers", entries, _query(request))

    def load_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return a table's metadata at its newest version."""
        namespace, name = _namespace(names["namespace"]), names["table"]
        if request.method == "HEAD":
            return Response(204) if self._warehouse.has_table(namespace, name) else _error(404, "NoSuchTableException", name)
        current = self._warehouse.load(namespace, name)
        of_refs = _query(request).get("snapshots", "all") == "refs"
        tag = f'"{_digest(current.location + str(of_refs)).hex()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(304, headers={"ETag": tag})
        metadata = _with_snapshots_of_refs(current) if of_refs else current.document
        return Response(200, {"metadata-location": current.location, "metadata": metadata, "config": {}}, {"ETag": tag})

    def credentials(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return none: the client reads the files with its own credentials."""
        if not self._warehouse.has_table(_namespace(names["namespace"]), names["table"]):
            return _error(404, "NoSuchTableException", f"There is no table '{names['table']}'.")
        return Response(200, {"storage-credentials": []})

    def metrics(self, request: Request, names: Mapping[str, str]) -> Response:
        """Accept clients' reports about their scans, and discard them."""
        return Response(204)

    def oauth(self, request: Request, names: Mapping[str, str]) -> Response:
        """Refuse with a hint to the configuration: this server issues no tokens."""
        text = "This server issues no tokens: set 'token' in the client's catalog properties instead of 'credential'."
        return Response(400, {"error": "unsupported_grant_type", "error_description": text})


class _RequestError(Exception):
    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status)
        self.answer = answer


_Handler = Callable[[ReadOnlyCatalog, Request, Mapping[str, str]], Response]


@dataclass(frozen=True, slots=True)
class _Route:
    """A path as the protocol writes it, ``v1/namespaces/{namespace}``, with its handler."""

    methods: tuple[str, ...]
    path: str
    run: _Handler

    def matched(self, method: str, parts: list[str]) -> dict[str, str] | None:
        """Return the values of the names in braces; None for another path or method."""
        patterns = self.path.split("/")
        if method not in self.methods or len(patterns) != len(parts):
            return None
        names: dict[str, str] = {}
        for pattern, part in zip(patterns, parts, strict=True):
            if pattern.startswith("{"):
                names[pattern[1:-1]] = part
            elif pattern != part:
                return None
        return names


def _write(operation: str) -> _Handler:
    sentence = (
        f"{operation} is refused: this catalog is read-only. Its tables are Delta tables shown as Iceberg; change them through Delta "
        "(Spark's format('delta') or SQL, tahoe.Table), and the change appears here at the next load."
    )
    return lambda catalog, request, names: _error(403, "ForbiddenException", sentence)


_NAMESPACE = "v1/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_READS = (
    _Route(("GET",), "v1/namespaces", ReadOnlyCatalog.list_namespaces),
    _Route(("GET", "HEAD"), _NAMESPACE, ReadOnlyCatalog.load_namespace),
    _Route(("GET",), f"{_NAMESPACE}/tables", ReadOnlyCatalog.list_tables),
    _Route(("GET", "HEAD"), _TABLE, ReadOnlyCatalog.load_table),
    _Route(("GET",), f"{_TABLE}/credentials", ReadOnlyCatalog.credentials),
    _Route(("POST",), f"{_TABLE}/metrics", ReadOnlyCatalog.metrics),
)
_WRITES = (
    _Route(("POST",), "v1/namespaces", _write("Making a namespace")),
    _Route(("DELETE",), _NAMESPACE, _write("Dropping a namespace")),
    _Route(("POST",), f"{_NAMESPACE}/properties", _write("Setting properties of a namespace")),
    _Route(("POST",), f"{_NAMESPACE}/tables", _write("Creating a table")),
    _Route(("POST",), f"{_NAMESPACE}/register", _write("Registering a table")),
    _Route(("POST",), _TABLE, _write("Committing to a table")),
    _Route(("DELETE",), _TABLE, _write("Dropping a table")),
    _Route(("POST",), f"{_TABLE}/unregister", _write("Unregistering a table")),
    _Route(("POST",), "v1/tables/rename", _write("Renaming a table")),
    _Route(("POST",), "v1/transactions/commit", _write("Committing to several tables")),
    _Route(("POST",), f"{_NAMESPACE}/views", _write("Creating a view")),
    _Route(("POST", "DELETE"), f"{_NAMESPACE}/views/{{view}}", _write("Changing a view")),
    _Route(("POST",), f"{_NAMESPACE}/register-view", _write("Registering a view")),
    _Route(("POST",), "v1/views/rename", _write("Renaming a view")),
)
_ROUTES = (
    _Route(("GET",), "v1/config", ReadOnlyCatalog.config),
    _Route(("POST",), "v1/oauth/tokens", ReadOnlyCatalog.oauth),
    *_READS,
    *_WRITES,
)
# The endpoints for clients; PyIceberg and DuckDB do not call endpoints that are missing in this list.
_ENDPOINTS = [f"{method} {route.path.replace('v1/', '/v1/{prefix}/', 1)}" for route in _READS for method in route.methods]


def is_loopback(host: str) -> bool:
    """Whether a host, by address or as ``localhost``, is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _host(header: str) -> str:
    """Return the host of a Host header, without the port."""
    return header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]


def _password(credential: str) -> str:
    """Return the password of basic authentication; empty for another text."""
    try:
        return base64.b64decode(credential, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def _decoded(part: str) -> str:
    """Decode one part of a path, once; invalid UTF-8 is not found."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise _RequestError(_error(404, "NotFoundException", "The path is not valid UTF-8.")) from None


def _query(request: Request) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(request.query, keep_blank_values=True).items()}


def _namespace(text: str) -> Namespace:
    return tuple(text.split(_SEPARATOR))


def _no_namespace(namespace: Namespace) -> _RequestError:
    return _RequestError(_error(404, "NoSuchNamespaceException", f"There is no namespace '{'.'.join(namespace)}'."))


def _listing(key: str, entries: Iterator[tuple[str, Any]], query: Mapping[str, str]) -> Response:
    """Return all items, or the requested page.

    Args:
        entries: pairs of a name, in ascending order, and its item.
    """
    if "pageToken" not in query:
        return Response(200, {key: [item for _, item in entries], "next-page-token": None})
    after, size = _page_token(query["pageToken"]), _page_size(query)
    page = list(islice(((name, item) for name, item in entries if name > after), size + 1))
    more = _page_token_after(page[size - 1][0]) if len(page) > size else None
    return Response(200, {key: [item for _, item in page[:size]], "next-page-token": more})


def _page_token_after(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _page_token(token: str) -> str:
    """Return the last name of the previous page, '' for the first page."""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise _RequestError(_error(400, "BadRequestException", "The pageToken was not issued by this server.")) from None


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("pageSize", str(_PAGE))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise _RequestError(_error(400, "BadRequestException", "The pageSize must be a whole number above 0."))
    return min(int(text), _MOST_PAGE)


def _with_snapshots_of_refs(current: CurrentMetadata) -> JsonObject:
    """Return the metadata with only the snapshots that a branch or tag names."""
    named = {ref["snapshot-id"] for ref in current.document.get("refs", {}).values()}
    referenced = [snapshot for snapshot in current.document.get("snapshots", []) if snapshot["snapshot-id"] in named]
    return {**current.document, "snapshots": referenced}


def _failure(error: TahoeError) -> Response:
    """Convert a Tahoe error to the protocol's error, with the same message."""
    match error:
        case NotFound(code=code):
            kind = "NoSuchNamespaceException" if code == NAMESPACE_NOT_FOUND else "NoSuchTableException"
            return _error(404, kind, str(error))
        case InvalidRequest():
            return _error(400, "BadRequestException", str(error))
        case StorageFailure():
            return _error(503, "ServiceUnavailableException", str(error), {"Retry-After": _RETRY_SECONDS})
    return _error(500, type(error).__name__, str(error))


def _error(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {"error": {"message": message, "type": kind, "code": status}}, headers or {})
