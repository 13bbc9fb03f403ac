"""`tahoe serve --iceberg`: a warehouse's tables for every engine that supports Iceberg's REST catalog protocol, read-only."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.cli.shell.arguments import StorageOptions, named_coordinator, open_table, options_of
from tahoe.cli.shell.text import visible

if TYPE_CHECKING:
    import uvicorn

    from tahoe.cli.connections import Limits
    from tahoe.cli.web_pages import Page, WebPages
    from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request, Response


TOKEN_VARIABLE = "TAHOE_TOKEN"

Iceberg = Annotated[
    str,
    typer.Option(
        "--iceberg", metavar="WAREHOUSE", help="The folder or URL above the tables: dir, s3://bucket/warehouse, gs://…, az://…."
    ),
]
Host = Annotated[
    str, typer.Option("--host", help="The address to listen on; one that is reachable from other machines needs a token.")
]
Port = Annotated[int, typer.Option("--port", help="0 chooses a free port.", min=0, max=65535)]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TEXT",
        help=f"The bearer token that clients must send. Prefer the variable {TOKEN_VARIABLE}, which process lists do not show.",
        show_default=False,
    ),
]
Most = Annotated[
    int,
    typer.Option("--connections", metavar="N", help="The maximum number of connections; beyond, the slowest are closed.", min=1),
]
MostOfAPeer = Annotated[
    int,
    typer.Option(
        "--connections-of-a-peer",
        metavar="N",
        help="The maximum number from one address. A proxy is one address: behind one, use the value of --connections.",
        min=1,
    ),
]
Wait = Annotated[float, typer.Option("--wait", metavar="SECONDS", help="How long a table load waits for a conversion.", min=0)]


def serve(
    iceberg: Iceberg,
    host: Host = "127.0.0.1",
    port: Port = 8181,
    token: Token = None,
    wait: Wait = 30.0,
    connections: Most = 512,
    connections_of_a_peer: MostOfAPeer = 256,
    option: StorageOptions = [],  # noqa: B006 - read by typer, never changed
) -> None:
    """Serve the Delta tables below a folder as Iceberg, read-only, over Iceberg's REST catalog protocol. Ctrl-C stops it.

    A browser shows the tables at the same address, with their history, differences and reports.

    A table with UniForm enabled is shown at its newest version: an outdated one is converted on load. The variable TAHOE_COORDINATOR
    names the coordinator of catalog-managed tables.
    """
    secret = token if token is not None else os.environ.get(TOKEN_VARIABLE)
    _refuse_open_access(host, secret)
    try:
        import uvicorn  # noqa: F401 - reported here, before anything is opened
    except ImportError as error:
        raise Unsupported(
            "'tahoe serve' needs uvicorn: pip install 'tahoe-delta[serve]'.", code="TAHOE_LIBRARY_MISSING"
        ) from error
    from tahoe.api.process import UNIFORM_RUNTIME
    from tahoe.cli.connections import Limits
    from tahoe.cli.web_pages import WebPages
    from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog
    from tahoe.uniform.serve.warehouse import Warehouse

    coordinator = named_coordinator()
    warehouse = Warehouse(iceberg, options_of(option), runtime=UNIFORM_RUNTIME, wait_seconds=wait, coordinator=coordinator)
    warehouse.refuse_if_absent()
    listening = _listen(host, port)
    limits = Limits(connections, min(connections, connections_of_a_peer))
    address = f"[{host}]" if ":" in host else host
    catalog = ReadOnlyCatalog(warehouse, secret)
    _with_announcement(
        server_of(catalog, limits, WebPages(warehouse, catalog, lambda url: open_table(url, option))),
        f"{visible(warehouse.url)} as Iceberg, read-only, at http://{address}:{listening.getsockname()[1]} (Ctrl-C stops it)",
    ).run(sockets=[listening])


def server_of(catalog: ReadOnlyCatalog, limits: Limits, pages: WebPages | None = None) -> uvicorn.Server:
    """Return the server of a catalog, which does not listen yet: its `run` takes the sockets."""
    import uvicorn

    from tahoe.cli.connections import accepted_at_once, affordable, protocol_of

    def raise_backlog(sockets: list[socket.socket]) -> None:
        # The event loop's backlog sets both how many connections it accepts at once and how many may wait; let more wait.
        for listening in sockets:
            listening.listen(_WAITING)

    server = uvicorn.Server(
        uvicorn.Config(
            _Application(catalog, pages),
            backlog=accepted_at_once(),
            interface="asgi3",
            http=protocol_of(affordable(limits)),
            lifespan="off",
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=math.ceil(limits.idle_seconds),
            timeout_graceful_shutdown=_GOODBYE_SECONDS,
        )
    )
    return _after_startup(server, raise_backlog)


def _with_announcement(server: uvicorn.Server, sentence: str) -> uvicorn.Server:
    """Return the server, which prints the sentence once it answers requests and signals."""
    return _after_startup(server, lambda _: typer.echo(sentence))


def _after_startup(server: uvicorn.Server, then: Callable[[list[socket.socket]], None]) -> uvicorn.Server:
    begin = server.startup

    async def startup(sockets: list[socket.socket] | None = None) -> None:
        await begin(sockets)
        then(sockets or [])

    server.startup = startup  # type: ignore[method-assign]
    return server


def _refuse_open_access(host: str, token: str | None) -> None:
    from tahoe.uniform.serve.rest_protocol import is_loopback

    if token is not None and not token.strip():
        raise InvalidRequest(f"The token is empty: set one, or omit it (--token, {TOKEN_VARIABLE}).", code="TAHOE_TOKEN")
    if token is None and not is_loopback(host):
        raise InvalidRequest(
            f"Anyone who can reach {host} could read the warehouse: set a token in the variable {TOKEN_VARIABLE}, or listen on 127.0.0.1.",
            code="TAHOE_TOKEN",
        )


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises `InvalidRequest` if the address is taken or is not one of this machine's."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen()
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InvalidRequest(
            f"Cannot listen on {host}, port {port}: {error.strerror}. Choose another --host or --port.", code="TAHOE_ADDRESS"
        ) from error
    return listening


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class _Application:
    """The catalog as an ASGI application: each request is answered in a thread, since answering reads storage and may block."""

    def __init__(self, catalog: ReadOnlyCatalog, pages: WebPages | None) -> None:
        self._catalog = catalog
        self._pages = pages
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tahoe-serve")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from tahoe.uniform.serve.rest_protocol import Request

        request = Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
        )
        while (message := await receive()).get("more_body"):  # no answer depends on the body, which is discarded
            pass
        if message["type"] == "http.disconnect":
            return
        import asyncio  # for this command only: all others start without it

        handler: Callable[[Request], Response | Page] = self._catalog.answer
        if self._pages is not None and request.method == "GET" and not request.path.startswith("/v1/"):
            handler = self._pages.answer
        answer = await asyncio.get_running_loop().run_in_executor(self._threads, handler, request)
        body = await asyncio.get_running_loop().run_in_executor(self._threads, lambda: answer.body)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **answer.headers}
        if answer.status in (204, 304):
            del headers["Content-Type"], headers["Content-Length"]
        encoded = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
        await send({"type": "http.response.body", "body": body})


_THREADS = 64
_GOODBYE_SECONDS = 10
_WAITING = 2048
"""The maximum number of connections waiting to be accepted."""
