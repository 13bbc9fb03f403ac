"""Iceberg's readers that only the environment of `make interop` has, each in a process of its own: ClickHouse, Sail and DataFusion.

    with Engine("sail") as engine:
        engine.read(location, where="`id` > 3")

ClickHouse reads files below its working directory alone, and Sail is a server: neither shall share a process with the tests.
"""

from __future__ import annotations

import importlib.util
import os
import re
import socket
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

import pyarrow as pa

__all__ = ["NEEDS", "Engine", "missing"]

NEEDS = {"clickhouse": ["chdb"], "sail": ["pysail"], "datafusion": ["datafusion", "pyiceberg_core"]}
"""The modules that an engine is made of."""

Read = Callable[[str, str | None], pa.Table]


def missing(engine: str) -> list[str]:
    """The packages that an engine needs and this environment lacks."""
    return [module for module in NEEDS[engine] if importlib.util.find_spec(module) is None]


class Engine:
    """A process with one engine in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        context = get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(name, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ours.close()
        self._process.join(60)
        self._process.kill()
        self._process.join()

    def read(self, location: str, where: str | None = None) -> pa.Table:
        """Args: location: of the newest metadata file; where: a SQL condition in the engine's dialect."""
        self._ours.send((location, where))
        answer = self._ours.recv()
        if isinstance(answer, str):
            raise RuntimeError(f"{self.name}: {answer}")
        return pa.ipc.open_stream(answer).read_all()


def _serve(name: str, requests: Connection) -> None:
    with ExitStack() as stack:
        read = {"clickhouse": _clickhouse, "sail": _sail, "datafusion": _datafusion}[name](stack)
        while True:
            try:
                location, where = requests.recv()
            except EOFError:
                return
            try:
                rows = read(location, where)
            except Exception as error:  # noqa: BLE001 - goes to the process that asked
                requests.send(f"{type(error).__name__}: {error}")
                continue
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
            requests.send(sink.getvalue().to_pybytes())


def _clickhouse(stack: ExitStack) -> Read:
    os.chdir("/")  # files above the working directory are refused
    from chdb.session import Session

    session = Session()
    stack.callback(session.close)
    text = "output_format_arrow_string_as_string = 0"  # binary, as strings need not be UTF-8 there; cast by the test

    def read(location: str, where: str | None) -> pa.Table:
        folder, name = _folder_and_name(location)
        source = f"icebergLocal('{folder}', SETTINGS iceberg_metadata_file_path = 'metadata/{name}')"
        condition = f"WHERE {where}" if where else ""
        answer = session.query(f"SELECT * FROM {source} {condition} SETTINGS {text}", "ArrowStream").bytes()
        return pa.ipc.open_stream(answer).read_all()

    return read


def _sail(stack: ExitStack) -> Read:
    os.environ["RUST_LOG"] = "off"
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    with socket.socket() as first:
        first.bind(("127.0.0.1", 0))
        port = first.getsockname()[1]
    server = SparkConnectServer("127.0.0.1", port)
    server.start(background=True)
    stack.callback(server.stop)
    session: Any = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    stack.callback(session.stop)

    def read(location: str, where: str | None) -> pa.Table:
        frame = session.read.format("iceberg").load(_folder_and_name(location)[0])  # it takes the highest version there is
        return (frame.where(where) if where else frame).toArrow()

    return read


def _datafusion(stack: ExitStack) -> Read:
    import datafusion
    from pyiceberg.table import StaticTable

    def read(location: str, where: str | None) -> pa.Table:
        context = datafusion.SessionContext()
        context.register_table("t", StaticTable.from_metadata(location))
        return context.sql(f"SELECT * FROM t {f'WHERE {where}' if where else ''}").to_arrow_table()

    return read


def _folder_and_name(location: str) -> tuple[str, str]:
    actual = re.fullmatch(r"(?:file://)?(.*)/metadata/([^/]+)", location)
    assert actual is not None, location
    return actual[1], actual[2]
