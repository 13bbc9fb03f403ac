"""Services of AWS on the loopback, played by moto."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Application = Callable[[dict[str, Any], Any], list[bytes]]


@contextmanager
def moto_server(service: str, wrap: Callable[[Application], Application] = lambda application: application) -> Iterator[str]:
    """Serve a service until the end of the block; yield the URL of its endpoint.

    Args:
        wrap: returns the WSGI application to serve, from moto's.
    """
    from moto.server import create_backend_app  # heavy: only for the tests that need it
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, type: str, message: str, *args: object) -> None:
            pass

    moto, one_at_a_time = create_backend_app(service), threading.Lock()
    wrapped = wrap(lambda environ, start_response: list(moto(environ, start_response)))

    def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        """Moto checks a condition and writes later; AWS does both at once."""
        with one_at_a_time:
            return wrapped(environ, start_response)

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    server.daemon_threads = True  # type: ignore[attr-defined] # connections that clients keep open must not delay the end
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


@contextmanager
def serving(server: Any) -> Iterator[None]:
    """Run a server in a thread until the end of the block."""
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
