"""Helpers that create tables in a warehouse and send requests to its server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request, Response
from tahoe.uniform.serve.warehouse import Warehouse

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}


ROWS = pa.table({"id": pa.array(range(5), pa.int64())})


LOCAL = {"host": "127.0.0.1:8181"}


def warehouse_of(path: Path | str, options: dict[str, str] | None = None, **more: Any) -> Warehouse:
    """Return the warehouse as `tahoe serve` creates it."""
    return Warehouse(path, options, runtime=UNIFORM_RUNTIME, **more)


def make_table(path: Path | str, properties: dict[str, str] | None = None) -> tahoe.Table:
    table = tahoe.Table.create(path, ROWS.schema, properties=UNIFORM if properties is None else properties)
    table.append(ROWS)
    assert UNIFORM_RUNTIME.queue.drain(120)
    return table


def ask(catalog: ReadOnlyCatalog, path: str, query: str = "", method: str = "GET", **headers: str) -> Response:
    return catalog.answer(
        Request(method, path, query, {**LOCAL, **{name.replace("_", "-"): text for name, text in headers.items()}})
    )


def content(answer: Response) -> Any:
    assert answer.status == 200, answer
    return json.loads(answer.body)


def names(answer: Response) -> list[str]:
    return [identifier["name"] for identifier in content(answer)["identifiers"]]


def refused(answer: Response, status: int, kind: str) -> str:
    """Return the message of an error in the protocol's form."""
    assert answer.status == status, answer
    error = json.loads(answer.body)["error"]
    assert (error["code"], error["type"]) == (status, kind)
    assert set(error) == {"message", "type", "code"}
    return str(error["message"])
