"""`tahoe serve --iceberg`: a warehouse's tables for every engine that supports Iceberg's REST catalog protocol."""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path as LocalPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tahoe.base.exceptions import InvalidRequest, Unsupported
from tahoe.base.lazy import late_modules
from tahoe.base.method_options import option
from tahoe.base.progress import Progress, shown
from tahoe.cli.shell.arguments import StorageOptions, named_coordinator, open_table, options_of
from tahoe.cli.shell.flags import Flags, with_flags
from tahoe.cli.shell.text import visible

if TYPE_CHECKING:
    import uvicorn

    from tahoe.api.table import Table
    from tahoe.cli.connections import Limits
    from tahoe.cli.web_pages import Page, WebPages
    from tahoe.uniform.serve import access, rest_protocol
    from tahoe.uniform.serve.access import NamespaceToken, Tokens
    from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Response
    from tahoe.uniform.serve.warehouse import Warehouse
else:
    access, rest_protocol = late_modules("tahoe.uniform.serve", "access", "rest_protocol")


TOKEN_VARIABLE = "TAHOE_TOKEN"
WRITE_TOKEN_VARIABLE = "TAHOE_WRITE_TOKEN"

Iceberg = Annotated[
    str,
    typer.Option(
        "--iceberg", metavar="WAREHOUSE", help="The folder or URL above the tables: dir, s3://bucket/warehouse, gs://…, az://…."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The options of `tahoe serve`."""

    host: str = option("127.0.0.1", "--host", help="The address to listen on; one that other machines reach needs a token.")
    port: int = option(8181, "--port", help="0 chooses a free port.")
    token: str | None = option(
        None,
        "--token",
        metavar="TEXT",
        help=f"The bearer token that clients must send. Prefer the variable {TOKEN_VARIABLE}, which process lists do not show.",
    )
    writable: bool = option(
        False, "--writable", help="Accept commits of Iceberg clients, each as a Delta commit. Without it the server is read-only."
    )
    write_token: str | None = option(
        None,
        "--write-token",
        metavar="TEXT",
        help=f"With --writable: the bearer token of clients that write, who may read too. Prefer the variable {WRITE_TOKEN_VARIABLE}.",
    )
    namespace_tokens: str | None = option(
        None,
        "--namespace-tokens",
        metavar="FILE",
        help="A TOML file of tokens that admit one namespace each, for reading or writing; then every request needs a token.",
    )
    all: bool = option(False, "--all", help="Serve tables without UniForm too. Their Iceberg metadata is written to --cache.")
    cache: str | None = option(
        None,
        "--cache",
        metavar="FOLDER",
        help="With --all: the folder or URL for this metadata, outside of the warehouse and readable by the clients; "
        "default for a local warehouse: ~/.cache/tahoe/iceberg.",
    )
    wait: float = option(30.0, "--wait", metavar="SECONDS", help="How long a table load waits for a conversion.")
    connections: int = option(
        512, "--connections", metavar="N", help="The maximum number of connections; beyond, the slowest are closed."
    )
    connections_of_a_peer: int = option(
        256,
        "--connections-of-a-peer",
        metavar="N",
        help="The maximum number from one address. A proxy is one address: behind one, use the value of --connections.",
    )


@with_flags(ServeOptions)
def serve(iceberg: Iceberg, flags: Flags, option: StorageOptions = []) -> None:  # noqa: B006 - read by typer, never changed
    """Serve the Delta tables below a folder as Iceberg over Iceberg's REST catalog protocol. Ctrl-C stops it.

    A browser shows the tables at the same address, with their history, differences and reports.

    A table with UniForm enabled is shown at its newest version: an outdated one is converted on load. With --all, so is every other table
    that Iceberg can show; nothing is written to its folder. A terminal shows the progress of conversions that last longer than a second,
    one at a time. With --writable, Iceberg clients create tables and commit to them; otherwise the server is read-only. The variable
    TAHOE_COORDINATOR names the coordinator of catalog-managed tables.
    """
    options = ServeOptions(**flags)
    tokens = _tokens(options)
    _check_numbers(options)
    _refuse_open_access(options, tokens)
    try:
        import uvicorn  # noqa: F401 - reported here, before anything is opened
    except ImportError as error:
        raise Unsupported(
            "'tahoe serve' needs uvicorn: pip install 'tahoe-delta[serve]'.", code="TAHOE_LIBRARY_MISSING"
        ) from error
    from tahoe.api.process import UNIFORM_RUNTIME
    from tahoe.cli.connections import Limits
    from tahoe.cli.web_pages import WebPages

    warehouse = _warehouse(iceberg, options, options_of(option))
    listening = _listen(options.host, options.port)
    limits = Limits(options.connections, min(options.connections, options.connections_of_a_peer))
    address = f"[{options.host}]" if ":" in options.host else options.host
    catalog = _catalog(warehouse, options, tokens, lambda url: open_table(url, option))
    access = "writable" if options.writable else "read-only"
    server = _with_announcement(
        server_of(catalog, limits, WebPages(warehouse, catalog, lambda url: open_table(url, option))),
        f"{visible(warehouse.url)} as Iceberg, {access}, at http://{address}:{listening.getsockname()[1]} (Ctrl-C stops it)",
    )
    UNIFORM_RUNTIME.progress = conversion_progress
    server.run(sockets=[listening])


def _check_numbers(options: ServeOptions) -> None:
    """Refuse numbers outside of their range; the error names the option."""
    ranges = (("port", 0, 65535), ("wait", 0, math.inf), ("connections", 1, math.inf), ("connections_of_a_peer", 1, math.inf))
    for name, least, most in ranges:
        value = getattr(options, name)
        if not least <= value <= most:
            flag = f"--{name.replace('_', '-')}"
            allowed = f"at least {least}" if most == math.inf else f"from {least} to {most}"
            raise InvalidRequest(f"{flag} takes a number {allowed}, not {value}.", code="DELTA_ILLEGAL_OPTION", option=flag)


def _warehouse(iceberg: str, options: ServeOptions, storage_options: dict[str, str]) -> Warehouse:
    """Return the warehouse, which exists, with the folder for converted metadata if `--all` is set."""
    from tahoe.api.process import UNIFORM_RUNTIME
    from tahoe.uniform.serve.warehouse import Warehouse

    warehouse = Warehouse(
        iceberg,
        storage_options,
        runtime=UNIFORM_RUNTIME,
        wait_seconds=options.wait,
        coordinator=named_coordinator(),
        metadata_path=_metadata_path(iceberg, options),
    )
    warehouse.refuse_if_absent()
    return warehouse


def _metadata_path(iceberg: str, options: ServeOptions) -> str | None:
    """Return the folder for the metadata of tables without UniForm, or None if they are not served."""
    from tahoe.store.location import local_path, table_url

    if not options.all:
        if options.cache is not None:
            raise InvalidRequest(
                "--cache needs --all, which serves tables without UniForm.", code="TAHOE_SERVE_CACHE", option="--cache"
            )
        return None
    if options.cache is not None:
        return options.cache
    if local_path(table_url(iceberg)) is None:
        raise InvalidRequest(
            f"--all needs --cache: name a folder beside {iceberg}, which clients can read, for the Iceberg metadata.",
            code="TAHOE_SERVE_CACHE",
            option="--cache",
        )
    folder = LocalPath(os.environ.get("XDG_CACHE_HOME") or LocalPath.home() / ".cache", "tahoe", "iceberg")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the metadata contains the least and greatest values of columns
    return str(folder)


@contextmanager
def conversion_progress(table: str, *, console: object = None) -> Iterator[Progress]:
    """Show the progress of a table's conversion as `shown` does, with the table's name. While one is shown, others are not."""
    name = visible(table.rpartition("/")[2])
    with shown(console=console) as progress:
        yield lambda step, done, total=None: progress(f"{name}: {step}", done, total)


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


def _tokens(options: ServeOptions) -> Tokens:
    """Return the tokens for reading and for writing, and those of namespaces."""
    environment = os.environ
    reading = options.token if options.token is not None else environment.get(TOKEN_VARIABLE)
    writing = options.write_token if options.write_token is not None else environment.get(WRITE_TOKEN_VARIABLE)
    of_namespaces = () if options.namespace_tokens is None else _namespace_tokens(options.namespace_tokens)
    return access.Tokens(reading, writing if options.writable or options.write_token is not None else None, of_namespaces)


def _namespace_tokens(path: str) -> Sequence[NamespaceToken]:
    try:
        text = LocalPath(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InvalidRequest(
            f"The file {path} of --namespace-tokens cannot be read: {reason}.", code="TAHOE_TOKEN", option="--namespace-tokens"
        ) from error
    return access.namespace_tokens(text, path)


def _catalog(warehouse: Warehouse, options: ServeOptions, tokens: Tokens, open_one: Callable[[str], Table]) -> ReadOnlyCatalog:
    if not options.writable:
        return rest_protocol.ReadOnlyCatalog(warehouse, tokens.token, tokens.namespace_tokens)
    from tahoe.api.iceberg_writes.table_writer import writable_catalog

    return writable_catalog(warehouse, open_one, tokens)


def _refuse_open_access(options: ServeOptions, tokens: Tokens) -> None:
    host = options.host
    for secret, flag, variable in (
        (tokens.token, "--token", TOKEN_VARIABLE),
        (tokens.write_token, "--write-token", WRITE_TOKEN_VARIABLE),
    ):
        if secret is not None and not secret.strip():
            raise InvalidRequest(f"The token is empty: set one, or omit it ({flag}, {variable}).", code="TAHOE_TOKEN")
    if tokens.write_token is not None and not options.writable:
        raise InvalidRequest("--write-token needs --writable.", code="TAHOE_TOKEN", option="--write-token")
    if any(token.writes for token in tokens.namespace_tokens) and not options.writable:
        raise InvalidRequest(
            "A token of --namespace-tokens admits writing, which needs --writable.",
            code="TAHOE_TOKEN",
            option="--namespace-tokens",
        )
    if options.writable and tokens.token is not None and tokens.write_token is None and not tokens.namespace_tokens:
        raise InvalidRequest(
            f"With --writable and a token for reading, set another for writing in the variable {WRITE_TOKEN_VARIABLE}.",
            code="TAHOE_TOKEN",
        )
    if tokens.token is None and not tokens.namespace_tokens and not rest_protocol.is_loopback(host):
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
        request_body = bytearray()
        while True:
            message = await receive()
            # One byte more than the catalog accepts shows that a body is too large; the rest is discarded.
            request_body += message.get("body", b"")[: self._catalog.most_body_bytes + 1 - len(request_body)]
            if not message.get("more_body"):
                break
        if message["type"] == "http.disconnect":
            return
        request = rest_protocol.Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
            bytes(request_body),
        )
        import asyncio  # for this command only: all others start without it

        handler: Callable[[rest_protocol.Request], Response | Page] = self._catalog.answer
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
