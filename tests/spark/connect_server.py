"""A server of Spark Connect whose Python has no Tahoe, and sessions of it beside the classic session of the tests."""

from __future__ import annotations

import os
import random
import site
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["connected", "drop_all", "python_without_tahoe", "remote", "server", "server_process", "server_session"]

_MODE = "SPARK_CONNECT_MODE_ENABLED"


def python_without_tahoe(folder: Path, before: str = "") -> Path:
    """A command that starts this Python without the `.pth` files of the environment, which may lead to Tahoe's sources.

    Args:
        before: a shell command that runs first.
    """
    packages = os.pathsep.join(place for place in sys.path if place.endswith("site-packages")) or site.getsitepackages()[0]
    command = folder / "python"
    command.write_text(f'#!/bin/sh\n{before}\nPYTHONPATH="{packages}:$TAHOE_PYSPARK" exec "{sys.executable}" -S "$@"\n')
    command.chmod(0o755)
    return command


@contextmanager
def server(
    folder: Path, java_options: str, memory: str = "1g", variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """Start a server; the value is its URL. The arguments are those of `server_process`."""
    with server_process(folder, java_options, memory, variables) as (url, _):
        yield url


@contextmanager
def server_process(
    folder: Path, java_options: str, memory: str = "1g", variables: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a server with two cores, where a task may fail twice; the value is its URL, and the process of its JVM.

    Args:
        folder: receives its warehouse, its log, and the events of its jobs in `events`.
        memory: of its JVM.
        variables: of its environment, which this process does not have.
    """
    import pyspark

    home = Path(pyspark.__file__).parent
    python = str(python_without_tahoe(folder))
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": f"{java_options} -Dderby.system.home={folder}/derby",
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"{folder}/events",
        "spark.eventLog.compress": "false",
        "spark.log.level": "OFF",
    }
    (folder / "events").mkdir()
    pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    main = "org.apache.spark.sql.connect.service.SparkConnectServer"
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", _MODE)}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        **variables,
    }
    # Where PySpark writes its own archive of Python sources.
    environment["TAHOE_PYSPARK"] = str(home.parent)
    command = [str(home / "bin" / "spark-submit"), "--class", main, "--master", "local[2,3]", *pairs, "spark-internal"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log) as process,
    ):
        try:
            _wait_for(port, process, folder / "log")
            yield f"sc://127.0.0.1:{port}", process
        finally:
            process.terminate()


def _free_port() -> int:
    """A port below those that the system gives to outgoing connections: one of these could take it until the server has started."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("none of 100 ports is free")


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        assert process.poll() is None, log.read_text()[-4000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.25)
    raise AssertionError(f"the server does not listen: {log.read_text()[-4000:]}")


@contextmanager
def remote() -> Iterator[None]:
    """PySpark's functions make columns of the Connect client in this block, and of the JVM elsewhere."""
    before = os.environ.get(_MODE)
    os.environ[_MODE] = "1"
    try:
        yield
    finally:
        del os.environ[_MODE]
        if before is not None:
            os.environ[_MODE] = before


def connected(url: str, **options: Any) -> Any:
    """A session of the server, with Delta switched on; it can be used inside of `remote` alone.

    Args:
        options: of `tahoe.enable`.
    """
    from pyspark.sql.connect.session import SparkSession

    import tahoe

    # Until 4.2, the garbage collector closes sessions, stopped ones too, and with them the threads that release results of every session.
    SparkSession.__del__ = _keep_threads
    with remote():
        return tahoe.enable(SparkSession.builder.remote(url).create(), **options)


def _keep_threads(session: Any) -> None:
    """Leave a session as it is: tests stop theirs."""


def drop_all(session: Any) -> None:
    """Drop the tables and the databases of the server's catalog, inside of `remote`."""
    session.sql("USE default")
    for database in session.catalog.listDatabases():
        if database.name != "default":
            session.sql(f"DROP DATABASE `{database.name}` CASCADE")
    for table in session.catalog.listTables():
        if not table.isTemporary:
            session.sql(f"DROP {'VIEW' if table.tableType == 'VIEW' else 'TABLE'} `{table.name}`")


@contextmanager
def server_session(folder: Path, java_options: str, memory: str = "1g") -> Iterator[Any]:
    """A session of a new server; see `server`."""
    with server(folder, java_options, memory) as url:
        session = connected(url)
        yield session
        with remote():
            session.stop()
