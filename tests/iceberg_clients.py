"""PyIceberg's client of a REST catalog in this process: its requests reach `ReadOnlyCatalog.answer` without a socket."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from pyiceberg.catalog.rest import RestCatalog
from requests.adapters import BaseAdapter

import tahoe
from tahoe.api.iceberg_writes import table_writer
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.coordinator.coordinator import Coordinator
from tahoe.uniform.serve.access import Tokens
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request
from tahoe.uniform.serve.warehouse import Warehouse
from tahoe.uniform.serve.writable_catalog import WritableCatalog


def writable_catalog(
    root: Path | str, options: dict[str, str] | None = None, coordinator: Coordinator | None = None, **tokens: Any
) -> WritableCatalog:
    """Return the catalog of `tahoe serve --writable`."""
    open_table = partial(tahoe.Table, storage_options=options, coordinator=coordinator)
    warehouse = Warehouse(root, options, runtime=UNIFORM_RUNTIME, coordinator=coordinator)
    return table_writer.writable_catalog(warehouse, open_table, Tokens(**tokens))


class LocalClient(RestCatalog):
    """PyIceberg's catalog over a catalog in this process."""

    def __init__(self, catalog: ReadOnlyCatalog, **properties: str) -> None:
        self._here = catalog
        super().__init__("local", uri="http://127.0.0.1", **properties)

    def _create_session(self) -> requests.Session:
        session = super()._create_session()
        session.mount("http://127.0.0.1", _Adapter(self._here))
        return session


class _Adapter(BaseAdapter):
    def __init__(self, catalog: ReadOnlyCatalog) -> None:
        super().__init__()
        self._catalog = catalog

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        parts = urlsplit(request.url or "")
        body = request.body or b""
        headers = {name.lower(): text for name, text in request.headers.items()}
        answer = self._catalog.answer(
            Request(
                request.method or "",
                parts.path,
                parts.query,
                {**headers, "host": "127.0.0.1"},
                body.encode() if isinstance(body, str) else body,
            )
        )
        response = requests.Response()
        response.status_code, response._content = answer.status, answer.body
        response.headers.update(answer.headers)
        response.request, response.url = request, request.url or ""
        return response

    def close(self) -> None:
        """Nothing is open."""
