"""Iceberg's REST catalog protocol over the Delta tables of a warehouse; requests to answers, without a socket.

Paths and answers follow apache/iceberg, ``open-api/rest-catalog-open-api.yaml``. `ReadOnlyCatalog` answers requests that would change
something with 403: tables are changed through Delta, and the change appears here. `tahoe.uniform.serve.writable_catalog` follows them.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, unquote_to_bytes

from tahoe.base.exceptions import InvalidRequest, NotFound, StorageFailure, TahoeError
from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.uniform.external.metadata_listing import CurrentMetadata
from tahoe.uniform.serve.access import NamespaceToken, digest, matching
from tahoe.uniform.serve.warehouse import NAMESPACE_NOT_FOUND, Namespace, Warehouse

logger = logging.getLogger(__name__)

_PAGE = 1000
_MOST_PAGE = 10_000
_SEPARATOR = "\x1f"
_RETRY_SECONDS = "5"

NAMESPACE = "v1/namespaces/{namespace}"
TABLE = f"{NAMESPACE}/tables/{{table}}"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the catalog.

    Args:
        method: in upper case.
        path: as sent, percent-encoded.
        query: as sent, without the question mark.
        headers: names in lower case.
        body: as sent; only of requests that change something.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


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


Handler = Callable[[Request, Mapping[str, str]], Response]


@dataclass(frozen=True, slots=True)
class Route:
    """A path as the protocol writes it, ``v1/namespaces/{namespace}``, with its handler."""

    methods: tuple[str, ...]
    path: str
    run: Handler

    @property
    def endpoints(self) -> list[str]:
        """The route in the list of endpoints for clients."""
        return [f"{method} {self.path.replace('v1/', '/v1/{prefix}/', 1)}" for method in self.methods]

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


class RequestError(Exception):
    """Carries the answer to a request that cannot be followed."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status)
        self.answer = answer


class ReadOnlyCatalog:
    """Answers requests.

    Args:
        warehouse: the tables.
        token: the bearer token that clients must send; None admits any client that addresses this machine by a loopback name.
        namespace_tokens: tokens that admit a namespace each. With any of them, no client is admitted without a token.

    Attributes:
        most_body_bytes: the maximum size of a request's body; the rest is not kept.
    """

    most_body_bytes = 0

    def __init__(self, warehouse: Warehouse, token: str | None = None, namespace_tokens: Sequence[NamespaceToken] = ()) -> None:
        self._warehouse = warehouse
        self._token = None if token is None else digest(token)
        self._namespace_tokens = namespace_tokens
        reads = self._reads()
        self._routes = (
            Route(("GET",), "v1/config", self.config),
            Route(("POST",), "v1/oauth/tokens", self.oauth),
            *reads,
            *self.writes(),
            *self.refusals(),
        )
        # PyIceberg and DuckDB do not call endpoints that are missing in this list.
        self._endpoints = [endpoint for route in (*reads, *self.writes()) for endpoint in route.endpoints]

    def _reads(self) -> tuple[Route, ...]:
        return (
            Route(("GET",), "v1/namespaces", self.list_namespaces),
            Route(("GET", "HEAD"), NAMESPACE, self.load_namespace),
            Route(("GET",), f"{NAMESPACE}/tables", self.list_tables),
            Route(("GET", "HEAD"), TABLE, self.load_table),
            Route(("GET",), f"{TABLE}/credentials", self.credentials),
            Route(("POST",), f"{TABLE}/metrics", self.metrics),
        )

    def writes(self) -> tuple[Route, ...]:
        """Return the routes that change something: none."""
        return ()

    def refusals(self) -> tuple[Route, ...]:
        """Return the routes of requests that are refused, with the reason."""
        return tuple(Route(methods, path, partial(self.refusal, operation)) for methods, path, operation in _WRITES)

    def refusal(self, operation: str, request: Request, names: Mapping[str, str]) -> Response:
        """Return the answer to a request that is refused.

        Args:
            operation: the request in words.
        """
        sentence = (
            f"{operation} is refused: this catalog is read-only. Its tables are Delta tables shown as Iceberg; change them through Delta "
            "(Spark's format('delta') or SQL, tahoe.Table), and the change appears here at the next load. Or start the server with "
            "--writable."
        )
        return error_response(403, "ForbiddenException", sentence)

    def answer(self, request: Request) -> Response:
        """Return the answer to a request; never raises for an error in the request, the table or storage."""
        try:
            return self.refused(request) or self._routed(request)
        except RequestError as refused:
            return refused.answer
        except TahoeError as error:
            return failure(error)
        except Exception as error:
            logger.exception("%s %s failed", request.method, request.path)
            return error_response(500, "InternalServerError", f"Unexpected {type(error).__name__}; the server's log says more.")

    # -- authorization -----------------------------------------------------------------------------------------------------

    def refused(self, request: Request) -> Response | None:
        """Return the answer to a request without permission; None if it has permission.

        A browser sends the token as the password of basic authentication.
        """
        tokens = self.tokens(request)
        if not tokens and not self._namespace_tokens:
            # A web page can make its own host name resolve to the loopback address, but cannot make the browser send another name.
            if is_loopback(_host(request.headers.get("host", ""))):
                return None
            return error_response(
                403, "ForbiddenException", "Without a token this server accepts requests to localhost and 127.0.0.1 only."
            )
        sent = _sent_token(request)
        if sent and any(hmac.compare_digest(digest(sent), token) for token in tokens):
            return None
        if own := matching(self._namespace_tokens, sent):
            return None if any(self.admits(token, request) for token in own) else _out_of_scope(own)
        return error_response(
            401,
            "NotAuthorizedException",
            "The bearer token is missing or wrong: set 'token' in the client's catalog properties.",
            {"WWW-Authenticate": "Bearer"},
        )

    def tokens(self, request: Request) -> tuple[bytes, ...]:
        """Return the digests of the tokens that admit a request; empty if any client on this machine may send it."""
        return () if self._token is None else (self._token,)

    def admits(self, token: NamespaceToken, request: Request) -> bool:
        """Whether the token of a namespace admits a request."""
        namespaces = self.namespaces_of(request)
        return namespaces is not None and token.admits(namespaces, writes=False)

    def namespaces_of(self, request: Request) -> list[Namespace] | None:
        """Return the namespaces that a request concerns, none for a list that is filtered; None if only a token for all admits it."""
        parts = [_decoded(part) for part in request.path.rstrip("/").split("/")[1:]]
        if parts in (["v1", "config"], ["v1", "namespaces"]) and request.method == "GET":
            return []
        return [namespace_of(parts[2])] if parts[:2] == ["v1", "namespaces"] and len(parts) > 2 else None

    def _is_shown(self, request: Request, namespace: Namespace) -> bool:
        own = matching(self._namespace_tokens, _sent_token(request))
        return not own or any(token.shows(namespace) for token in own)

    # -- endpoints ---------------------------------------------------------------------------------------------------------

    def _routed(self, request: Request) -> Response:
        parts = [_decoded(part) for part in request.path.rstrip("/").split("/")[1:]]
        for route in self._routes:
            names = route.matched(request.method, parts)
            if names is not None:
                return route.run(request, names)
        return error_response(404, "NotFoundException", f"This catalog has no endpoint {request.method} {request.path}.")

    def config(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return the configuration: no defaults, and the list of endpoints."""
        return Response(200, {"defaults": {}, "overrides": {}, "endpoints": self._endpoints})

    def list_namespaces(self, request: Request, names: Mapping[str, str]) -> Response:
        """List the namespaces directly in a namespace, with paging."""
        query = query_of(request)
        parent = namespace_of(query["parent"]) if query.get("parent") else ()
        shown = (namespace for namespace in self._warehouse.namespaces(parent) if self._is_shown(request, namespace))
        entries = ((namespace[-1], list(namespace)) for namespace in shown)
        return _listing("namespaces", entries, query)

    def load_namespace(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return a namespace with its properties."""
        namespace = namespace_of(names["namespace"])
        if not self._warehouse.has_namespace(namespace):
            raise no_namespace(namespace)
        if request.method == "HEAD":
            return Response(204)
        return Response(200, {"namespace": list(namespace), "properties": self._warehouse.properties_of(namespace)})

    def list_tables(self, request: Request, names: Mapping[str, str]) -> Response:
        """List the names of the tables with UniForm in a namespace, with paging."""
        namespace = namespace_of(names["namespace"])
        entries = ((name, {"namespace": list(namespace), "name": name}) for name in self._warehouse.iceberg_tables(namespace))
        return _listing("identifiers", entries, query_of(request))

    def load_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return a table's metadata at its newest version."""
        namespace, name = namespace_of(names["namespace"]), names["table"]
        if request.method == "HEAD":
            return (
                Response(204) if self._warehouse.has_table(namespace, name) else error_response(404, "NoSuchTableException", name)
            )
        try:
            current = self._warehouse.load(namespace, name)
        except NotFound as error:
            # Of an absent namespace, too: only then does Iceberg's Java library look for the metadata table `name` of a table `namespace`.
            return error_response(404, "NoSuchTableException", str(error))
        of_refs = query_of(request).get("snapshots", "all") == "refs"
        tag = f'"{digest(current.location + str(of_refs)).hex()}"'
        if request.headers.get("if-none-match") == tag:
            return Response(304, headers={"ETag": tag})
        metadata = _with_snapshots_of_refs(current) if of_refs else current.document
        return Response(200, {"metadata-location": current.location, "metadata": metadata, "config": {}}, {"ETag": tag})

    def credentials(self, request: Request, names: Mapping[str, str]) -> Response:
        """Return none: the client reads the files with its own credentials."""
        if not self._warehouse.has_table(namespace_of(names["namespace"]), names["table"]):
            return error_response(404, "NoSuchTableException", f"There is no table '{names['table']}'.")
        return Response(200, {"storage-credentials": []})

    def metrics(self, request: Request, names: Mapping[str, str]) -> Response:
        """Accept clients' reports about their scans, and discard them."""
        return Response(204)

    def oauth(self, request: Request, names: Mapping[str, str]) -> Response:
        """Refuse with a hint to the configuration: this server issues no tokens."""
        text = "This server issues no tokens: set 'token' in the client's catalog properties instead of 'credential'."
        return Response(400, {"error": "unsupported_grant_type", "error_description": text})


_WRITES = (
    (("POST",), "v1/namespaces", "Making a namespace"),
    (("DELETE",), NAMESPACE, "Dropping a namespace"),
    (("POST",), f"{NAMESPACE}/properties", "Setting properties of a namespace"),
    (("POST",), f"{NAMESPACE}/tables", "Creating a table"),
    (("POST",), f"{NAMESPACE}/register", "Registering a table"),
    (("POST",), TABLE, "Committing to a table"),
    (("DELETE",), TABLE, "Dropping a table"),
    (("POST",), f"{TABLE}/unregister", "Unregistering a table"),
    (("POST",), "v1/tables/rename", "Renaming a table"),
    (("POST",), "v1/transactions/commit", "Committing to several tables"),
    (("POST",), f"{NAMESPACE}/views", "Creating a view"),
    (("POST", "DELETE"), f"{NAMESPACE}/views/{{view}}", "Changing a view"),
    (("POST",), f"{NAMESPACE}/register-view", "Registering a view"),
    (("POST",), "v1/views/rename", "Renaming a view"),
)


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


def _sent_token(request: Request) -> str:
    """Return the token of a request; empty without one."""
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    return _password(credential) if scheme.lower() == "basic" else credential.strip() if scheme.lower() == "bearer" else ""


def _out_of_scope(own: Sequence[NamespaceToken]) -> Response:
    names = ", ".join(sorted({f"'{'.'.join(token.namespace)}'{'' if token.writes else ' (reading)'}" for token in own}))
    return error_response(403, "ForbiddenException", f"The token does not admit this request: it is for the namespace {names}.")


def _decoded(part: str) -> str:
    """Decode one part of a path, once; invalid UTF-8 is not found."""
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise RequestError(error_response(404, "NotFoundException", "The path is not valid UTF-8.")) from None


def query_of(request: Request) -> dict[str, str]:
    """Return the parameters of a request, each with its last value."""
    return {name: values[-1] for name, values in parse_qs(request.query, keep_blank_values=True).items()}


def namespace_of(text: str) -> Namespace:
    """Return the namespace in a decoded part of a path."""
    return tuple(text.split(_SEPARATOR))


def no_namespace(namespace: Namespace) -> RequestError:
    """Return the error for a namespace that does not exist."""
    return RequestError(error_response(404, "NoSuchNamespaceException", f"There is no namespace '{'.'.join(namespace)}'."))


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
        raise RequestError(error_response(400, "BadRequestException", "The pageToken was not issued by this server.")) from None


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("pageSize", str(_PAGE))
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text)):
        raise RequestError(error_response(400, "BadRequestException", "The pageSize must be a whole number above 0."))
    return min(int(text), _MOST_PAGE)


def _with_snapshots_of_refs(current: CurrentMetadata) -> JsonObject:
    """Return the metadata with only the snapshots that a branch or tag names."""
    named = {ref["snapshot-id"] for ref in current.document.get("refs", {}).values()}
    referenced = [snapshot for snapshot in current.document.get("snapshots", []) if snapshot["snapshot-id"] in named]
    return {**current.document, "snapshots": referenced}


def failure(error: TahoeError) -> Response:
    """Convert a Tahoe error to the protocol's error, with the same message."""
    match error:
        case NotFound(code=code):
            kind = "NoSuchNamespaceException" if code == NAMESPACE_NOT_FOUND else "NoSuchTableException"
            return error_response(404, kind, str(error))
        case InvalidRequest():
            return error_response(400, "BadRequestException", str(error))
        case StorageFailure():
            return error_response(503, "ServiceUnavailableException", str(error), {"Retry-After": _RETRY_SECONDS})
    return error_response(500, type(error).__name__, str(error))


def error_response(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error in the protocol's form.

    Args:
        kind: the name of the exception of Iceberg's Java library.
    """
    return Response(status, {"error": {"message": message, "type": kind, "code": status}}, headers or {})
