"""Requests of Iceberg's REST protocol that change tables: checked here, and carried out by a `TableWriter`.

    request ─► token, size, JSON ─► `tahoe.uniform.commits.commit_requests` ─► TableWriter ─► the table's new metadata

The specification assigns a meaning to each status: 400 a request that can never succeed, 409 a lost race (clients retry), 503 a failure
before the commit, 500 a commit whose outcome is unknown (clients look for their snapshot before they retry).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tahoe.base.exceptions import (
    CommitStateUnknown,
    DeltaConcurrentModificationException,
    InvalidRequest,
    NotFound,
    StorageFailure,
    TahoeError,
    Unsupported,
)
from tahoe.base.json_values import JsonMapping, JsonObject
from tahoe.uniform.commits.commit_requests import NewTable, TableChange, new_table, table_change
from tahoe.uniform.commits.json_fields import Fields, invalid
from tahoe.uniform.external.metadata_listing import CurrentMetadata
from tahoe.uniform.serve.access import NO_TOKENS, NamespaceToken, Tokens, digest
from tahoe.uniform.serve.rest_protocol import (
    NAMESPACE,
    TABLE,
    ReadOnlyCatalog,
    Request,
    RequestError,
    Response,
    Route,
    error_response,
    failure,
    namespace_of,
    query_of,
)
from tahoe.uniform.serve.warehouse import NAMESPACE_EXISTS, Namespace, Warehouse

MOST_BODY_BYTES = 8 * 1024 * 1024
"""The maximum size of a request's body."""

_LONGEST_CLIENT = 100
_WITHOUT_CHANGE = re.compile(r"/v1/(oauth/tokens|namespaces/[^/]+/tables/[^/]+/metrics)")
_JSON = "application/json"
_SURROGATE = "\\ud"
_CONFLICTS = {
    "DELTA_TABLE_ALREADY_EXISTS": "AlreadyExistsException",
    NAMESPACE_EXISTS: "AlreadyExistsException",
    "TAHOE_NAMESPACE_NOT_EMPTY": "NamespaceNotEmptyException",
}
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table that does not exist yet: the client commits it later, with the requirement ``assert-create``."""

    document: JsonObject
    location: None = None


@dataclass(frozen=True, slots=True)
class ChangeOfTable:
    """The change of one table in a transaction."""

    namespace: Namespace
    name: str
    change: TableChange


class TableWriter(Protocol):
    """Carries out changes of a warehouse. The errors of all methods are those of `tahoe.exceptions`."""

    def create(self, namespace: Namespace, table: NewTable) -> CurrentMetadata | StagedTable:
        """Create a table, or stage it."""

    def commit(self, namespace: Namespace, name: str, change: TableChange) -> CurrentMetadata:
        """Commit a change of a table; return the table's metadata, which has the change."""

    def register(self, namespace: Namespace, name: str, location: str) -> CurrentMetadata:
        """Make the Iceberg table with a metadata file a Delta table; return its metadata."""

    def commit_all(self, changes: Sequence[ChangeOfTable]) -> None:
        """Commit the changes of one or several tables; all of them, or none."""


class WritableCatalog(ReadOnlyCatalog):
    """Answers requests, including those that change tables.

    Args:
        warehouse: the tables.
        writer: changes them.
        tokens: the bearer tokens that clients must send.
    """

    most_body_bytes = MOST_BODY_BYTES

    def __init__(self, warehouse: Warehouse, writer: TableWriter, tokens: Tokens = NO_TOKENS) -> None:
        super().__init__(warehouse, tokens.token, tokens.namespace_tokens)
        self._writer = writer
        self._write_token = None if tokens.write_token is None else digest(tokens.write_token)

    def tokens(self, request: Request) -> tuple[bytes, ...]:
        """Return the digests of the tokens that admit a request."""
        of_writers = () if self._write_token is None else (self._write_token,)
        if _changes(request):
            return of_writers
        of_readers = super().tokens(request)
        return (*of_readers, *of_writers) if of_readers or self._namespace_tokens else ()

    def admits(self, token: NamespaceToken, request: Request) -> bool:
        """Whether the token of a namespace admits a request."""
        namespaces = self.namespaces_of(request)
        return namespaces is not None and token.admits(namespaces, writes=_changes(request))

    def namespaces_of(self, request: Request) -> list[Namespace] | None:
        """As in `ReadOnlyCatalog`; some requests have the namespaces in their body."""
        namespaces_in_body = _IN_BODIES.get(request.path.rstrip("/")) if request.method == "POST" else None
        return super().namespaces_of(request) if namespaces_in_body is None else namespaces_in_body(Fields(_body(request)))

    def refused(self, request: Request) -> Response | None:
        """Return the answer to a request without permission; None if it has permission."""
        from_page = "origin" in request.headers or request.headers.get("sec-fetch-site", "none") != "none"
        if from_page and _changes(request):
            # A page of any site can make a browser on this machine send a request, perhaps with a stored password.
            return error_response(403, "ForbiddenException", "This server accepts no changes from web pages.")
        return super().refused(request)

    def writes(self) -> tuple[Route, ...]:
        """Return the routes that change something."""
        return (
            Route(("POST",), "v1/namespaces", self.create_namespace),
            Route(("DELETE",), NAMESPACE, self.drop_namespace),
            Route(("POST",), f"{NAMESPACE}/properties", self.update_properties),
            Route(("POST",), f"{NAMESPACE}/tables", self.create_table),
            Route(("DELETE",), TABLE, self.drop_table),
            Route(("POST",), "v1/tables/rename", self.rename_table),
            Route(("POST",), TABLE, self.commit_table),
            Route(("POST",), "v1/transactions/commit", self.commit_transaction),
            Route(("POST",), f"{NAMESPACE}/register", self.register_table),
        )

    def refusal(self, operation: str, request: Request, names: Mapping[str, str]) -> Response:
        """Return the answer to a request that this server does not support."""
        return error_response(501, "UnsupportedOperationException", f"{operation} is not supported by this server.")

    def create_namespace(self, request: Request, names: Mapping[str, str]) -> Response:
        """Make a namespace."""
        fields = Fields(_body(request))
        namespace, properties = fields.texts("namespace"), fields.properties("properties")
        return _done(
            lambda: self._warehouse.create_namespace(namespace, properties),
            Response(200, {"namespace": list(namespace), "properties": properties}),
        )

    def drop_namespace(self, request: Request, names: Mapping[str, str]) -> Response:
        """Remove an empty namespace."""
        return _done(lambda: self._warehouse.drop_namespace(namespace_of(names["namespace"])), Response(204))

    def update_properties(self, request: Request, names: Mapping[str, str]) -> Response:
        """Set and remove properties of a namespace."""
        namespace, fields = namespace_of(names["namespace"]), Fields(_body(request))
        updates = fields.properties("updates")
        removals = () if fields.optional("removals", list) is None else fields.texts("removals")
        both = sorted(updates.keys() & set(removals))
        if both:
            return error_response(422, "UnprocessableEntityException", f"'{both[0]}' is both set and removed.")
        before = self._warehouse.properties_of(namespace)
        remaining = {key: value for key, value in before.items() if key not in removals}
        content = {
            "updated": list(updates),
            "removed": [key for key in removals if key in before],
            "missing": [key for key in removals if key not in before],
        }
        return _done(lambda: self._warehouse.set_properties(namespace, {**remaining, **updates}), Response(200, content))

    def drop_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Remove a table; with ``purgeRequested=true`` also its files."""
        purges = query_of(request).get("purgeRequested", "false").lower() == "true"
        namespace = namespace_of(names["namespace"])
        return _done(lambda: self._warehouse.drop_table(namespace, names["table"], purges=purges), Response(204))

    def rename_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Move a table to another name or namespace."""
        fields = Fields(_body(request))
        source, target = (_identifier(fields.inner(name)) for name in ("source", "destination"))
        return _done(lambda: self._warehouse.rename_table(source, target), Response(204))

    def create_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Create a Delta table with UniForm."""
        namespace = namespace_of(names["namespace"])
        return _changed(lambda: self._writer.create(namespace, new_table(_body(request), _client(request))))

    def register_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Make an Iceberg table of another catalog a Delta table with UniForm, or bring back a dropped table."""
        namespace, fields = namespace_of(names["namespace"]), Fields(_body(request))
        if fields.optional("overwrite", bool):
            raise Unsupported("A registration does not overwrite a table. Drop it first.", code="TAHOE_ICEBERG_REGISTRATION")
        name, location = fields.text("name"), fields.text("metadata-location")
        return _changed(lambda: self._writer.register(namespace, name, location))

    def commit_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Commit a change of one table as a Delta commit."""
        namespace = namespace_of(names["namespace"])
        return _changed(lambda: self._writer.commit(namespace, names["table"], table_change(_body(request), _client(request))))

    def commit_transaction(self, request: Request, names: Mapping[str, str]) -> Response:
        """Commit the changes of a transaction: all of them, or none."""
        return _done(lambda: self._writer.commit_all(_changes_of_tables(request)), Response(204))


def _changes(request: Request) -> bool:
    """Whether a request may change something: clients with permission to read report the metrics of their scans, too."""
    if request.method in ("GET", "HEAD"):
        return False
    # A namespace or table may be named 'metrics', so the whole path counts.
    return request.method != "POST" or _WITHOUT_CHANGE.fullmatch(request.path.rstrip("/")) is None


def _namespaces_of_transaction(body: Fields) -> list[Namespace]:
    return [_identifier(change.inner("identifier"))[0] for change in body.each("table-changes")]


_IN_BODIES: Mapping[str, Callable[[Fields], list[Namespace]]] = {
    "/v1/namespaces": lambda body: [body.texts("namespace")],
    "/v1/tables/rename": lambda body: [_identifier(body.inner(name))[0] for name in ("source", "destination")],
    "/v1/transactions/commit": _namespaces_of_transaction,
}
"""By path, the namespaces in the body of a request."""


def _changes_of_tables(request: Request) -> list[ChangeOfTable]:
    changes = Fields(_body(request)).each("table-changes")
    if not changes:
        raise invalid("The transaction changes no table.")
    client = _client(request)
    return [ChangeOfTable(*_identifier(each.inner("identifier")), table_change(each.value, client)) for each in changes]


def _identifier(fields: Fields) -> tuple[Namespace, str]:
    return fields.texts("namespace"), fields.text("name")


def _changed(run: Callable[[], CurrentMetadata | StagedTable]) -> Response:
    """Return the response to a change of a table, or the protocol's error."""
    current = _attempted(run)
    if isinstance(current, Response):
        return current
    return Response(200, {"metadata-location": current.location, "metadata": current.document, "config": {}})


def _done(run: Callable[[], None], answer: Response) -> Response:
    """Return the answer to a change that is carried out, or the protocol's error."""
    return _attempted(run) or answer


def _attempted(run: Callable[[], _Result]) -> _Result | Response:
    """Return the result, or the protocol's error."""
    try:
        return run()
    except CommitStateUnknown as error:
        return error_response(500, "CommitStateUnknownException", str(error))
    except DeltaConcurrentModificationException as error:
        return error_response(409, "CommitFailedException", str(error))
    except (NotFound, StorageFailure) as error:
        return failure(error)
    except InvalidRequest as error:
        return error_response(409, _CONFLICTS[error.code], str(error)) if error.code in _CONFLICTS else failure(error)
    except TahoeError as error:
        # Nothing was committed, and a retry would not help: an error of the server (5xx) would mean an unknown outcome.
        kind = "UnsupportedOperationException" if isinstance(error, Unsupported) else "BadRequestException"
        return error_response(400, kind, str(error))


def _body(request: Request) -> JsonMapping:
    """Return the body of a request, a JSON object."""
    if len(request.body) > MOST_BODY_BYTES:
        message = f"The body of a request has at most {MOST_BODY_BYTES:,} bytes."
        raise RequestError(error_response(413, "BadRequestException", message))
    kind = request.headers.get("content-type", _JSON).partition(";")[0].strip().lower()
    if kind != _JSON:
        message = f"The body of a request is of the content type {_JSON}, not {kind:.100}."
        raise RequestError(error_response(415, "BadRequestException", message))
    try:
        text = request.body.decode()
        value = json.loads(text)
        if _SURROGATE in text.lower():  # half of a pair is no text, and no file system or log stores it
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise invalid("The body of the request is not valid JSON.") from None
    return Fields.of(value, "body").value


def _client(request: Request) -> str:
    """Return the client as it calls itself, printable and of bounded length, for the history."""
    name = request.headers.get("x-client-version") or request.headers.get("user-agent") or "unknown"
    return "".join(character for character in name if character.isprintable())[:_LONGEST_CLIENT]
