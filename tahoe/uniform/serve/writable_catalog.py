"""Requests of Iceberg's REST protocol that change tables: checked here, and carried out by a `TableWriter`.

    request ─► token, size, JSON ─► `tahoe.uniform.commits.commit_requests` ─► TableWriter ─► the table's new metadata

The specification assigns a meaning to each status: 400 a request that can never succeed, 409 a lost race (clients retry), 503 a failure
before the commit, 500 a commit whose outcome is unknown (clients look for their snapshot before they retry).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

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
from tahoe.uniform.serve.rest_protocol import (
    NAMESPACE,
    TABLE,
    ReadOnlyCatalog,
    Request,
    RequestError,
    Response,
    Route,
    digest,
    error_response,
    failure,
    namespace_of,
)
from tahoe.uniform.serve.warehouse import Namespace, Warehouse

MOST_BODY_BYTES = 8 * 1024 * 1024
"""The maximum size of a request's body."""

_LONGEST_CLIENT = 100


@dataclass(frozen=True, slots=True)
class StagedTable:
    """A table that does not exist yet: the client commits it later, with the requirement ``assert-create``."""

    document: JsonObject
    location: None = None


class TableWriter(Protocol):
    """Carries out changes of a warehouse. The errors of all methods are those of `tahoe.exceptions`."""

    def create(self, namespace: Namespace, table: NewTable) -> CurrentMetadata | StagedTable:
        """Create a table, or stage it."""

    def commit(self, namespace: Namespace, name: str, change: TableChange) -> CurrentMetadata:
        """Commit a change of a table; return the table's metadata, which has the change."""


class WritableCatalog(ReadOnlyCatalog):
    """Answers requests, including those that change tables.

    Args:
        warehouse: the tables.
        writer: changes them.
        token: as in `ReadOnlyCatalog`: admits reading.
        write_token: the bearer token that clients must send to write, which admits reading too; None admits writing as `token` does
            without a token.
    """

    most_body_bytes = MOST_BODY_BYTES

    def __init__(
        self, warehouse: Warehouse, writer: TableWriter, token: str | None = None, write_token: str | None = None
    ) -> None:
        super().__init__(warehouse, token)
        self._writer = writer
        self._write_token = None if write_token is None else digest(write_token)

    def tokens(self, request: Request) -> tuple[bytes, ...]:
        """Return the digests of the tokens that admit a request."""
        of_writers = () if self._write_token is None else (self._write_token,)
        if _changes(request):
            return of_writers
        of_readers = super().tokens(request)
        return (*of_readers, *of_writers) if of_readers else ()

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
            Route(("POST",), f"{NAMESPACE}/tables", self.create_table),
            Route(("POST",), TABLE, self.commit_table),
            Route(("POST",), "v1/transactions/commit", self.commit_transaction),
        )

    def refusal(self, operation: str, request: Request, names: Mapping[str, str]) -> Response:
        """Return the answer to a request that this server does not support."""
        return error_response(501, "UnsupportedOperationException", f"{operation} is not supported by this server.")

    def create_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Create a Delta table with UniForm."""
        namespace = namespace_of(names["namespace"])
        return _changed(lambda: self._writer.create(namespace, new_table(_body(request))))

    def commit_table(self, request: Request, names: Mapping[str, str]) -> Response:
        """Commit a change of one table as a Delta commit."""
        namespace = namespace_of(names["namespace"])
        return _changed(lambda: self._writer.commit(namespace, names["table"], table_change(_body(request), _client(request))))

    def commit_transaction(self, request: Request, names: Mapping[str, str]) -> Response:
        """Commit the changes of a transaction, which may concern one table."""
        answer = _changed(lambda: self._commit_of_transaction(request))
        return Response(204) if answer.status == 200 else answer

    def _commit_of_transaction(self, request: Request) -> CurrentMetadata:
        changes = Fields(_body(request)).each("table-changes")
        if len(changes) != 1:
            raise Unsupported(
                f"The transaction changes {len(changes)} tables, and this server commits one table at a time. Commit them one by one.",
                code="TAHOE_ICEBERG_SEVERAL_TABLES",
            )
        identifier = changes[0].inner("identifier")
        return self._writer.commit(
            identifier.texts("namespace"), identifier.text("name"), table_change(changes[0].value, _client(request))
        )


def _changes(request: Request) -> bool:
    """Whether a request may change something: clients with permission to read report the metrics of their scans, too."""
    return request.method not in ("GET", "HEAD") and not request.path.rstrip("/").endswith(("/metrics", "/oauth/tokens"))


def _changed(run: Callable[[], CurrentMetadata | StagedTable]) -> Response:
    """Return the response to a change, or the protocol's error."""
    try:
        current = run()
    except CommitStateUnknown as error:
        return error_response(500, "CommitStateUnknownException", str(error))
    except DeltaConcurrentModificationException as error:
        return error_response(409, "CommitFailedException", str(error))
    except (NotFound, StorageFailure) as error:
        return failure(error)
    except InvalidRequest as error:
        if error.code == "DELTA_TABLE_ALREADY_EXISTS":
            return error_response(409, "AlreadyExistsException", str(error))
        return failure(error)
    except TahoeError as error:
        # Nothing was committed, and a retry would not help: an error of the server (5xx) would mean an unknown outcome.
        kind = "UnsupportedOperationException" if isinstance(error, Unsupported) else "BadRequestException"
        return error_response(400, kind, str(error))
    return Response(200, {"metadata-location": current.location, "metadata": current.document, "config": {}})


def _body(request: Request) -> JsonMapping:
    """Return the body of a request, a JSON object."""
    if len(request.body) > MOST_BODY_BYTES:
        message = f"The body of a request has at most {MOST_BODY_BYTES:,} bytes."
        raise RequestError(error_response(413, "BadRequestException", message))
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError):
        raise invalid("The body of the request is not valid JSON.") from None
    return Fields.of(value, "body").value


def _client(request: Request) -> str:
    """Return the client as it calls itself, printable and of bounded length, for the history."""
    name = request.headers.get("x-client-version") or request.headers.get("user-agent") or "unknown"
    return "".join(character for character in name if character.isprintable())[:_LONGEST_CLIENT]
