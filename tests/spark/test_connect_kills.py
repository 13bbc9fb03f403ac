"""A MERGE over Spark Connect whose client or server is killed at one of its requests: it is done once, or not at all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.client import SparkConnectClient
from pyspark.sql.connect.client.retries import DefaultPolicy

from tahoe import Table
from tahoe.base.exceptions import CommitStateUnknown, TahoeError
from tests.spark.connect_server import connected, remote, server_process

MERGE = (
    "MERGE INTO delta.`{path}` AS t USING (SELECT * FROM VALUES (2, 'x'), (9, 'y') AS v (id, word)) AS s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET t.number = t.number + 1, t.word = s.word "
    "WHEN NOT MATCHED THEN INSERT (id, number, word) VALUES (s.id, 0, s.word)"
)
BEFORE = [(0, 0, "a"), (1, 0, "a"), (2, 0, "a"), (3, 0, "a")]
AFTER = [(0, 0, "a"), (1, 0, "a"), (2, 1, "x"), (3, 0, "a"), (9, 0, "y")]
CLIENT = """
import os, signal, sys
url, path, last, text = sys.argv[1:]
os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
from pyspark.sql.connect.client import SparkConnectClient
from tests.spark.connect_server import connected
from tests.spark.test_connect_kills import at_request
session = connected(url)
at_request(int(last), lambda: os.kill(os.getpid(), signal.SIGKILL), lambda name, call: setattr(SparkConnectClient, name, call))
session.sql(text.format(path=path))
"""


def at_request(last: int, kill: Callable[[], None], replace: Callable[[str, Callable[..., Any]], None]) -> None:
    """Kill a process after the server's answer to a request, which the caller does not get.

    Args:
        last: the number of the request, from 0.
        replace: replaces a method of the client.
    """
    numbers = count()

    def killing(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(client: Any, *arguments: Any, **named: Any) -> Any:
            answer = original(client, *arguments, **named)
            if next(numbers) == last:
                list(answer if original.__name__ == "_execute_and_fetch_as_iterator" else ())
                kill()
                return original(client, *arguments, **named)
            return answer

        return call

    for name in ("config", "_analyze", "_execute_and_fetch_as_iterator"):
        replace(name, killing(getattr(SparkConnectClient, name)))


def made(path: str) -> Table:
    table = Table(path)
    table.append(pa.table({"id": [0, 1, 2, 3], "number": [0] * 4, "word": ["a"] * 4}))
    return table


def is_done(table: Table) -> bool:
    """Whether the MERGE is in the table; it must be complete, or absent."""
    rows = sorted(tuple(row.values()) for row in table.snapshot().scan().to_arrow().to_pylist())
    assert (rows, table.version()) in [(BEFORE, 0), (AFTER, 1)]
    assert table.check(deep=True) == []
    return rows == AFTER


@pytest.mark.parametrize("requests", [pytest.param([14], id="one"), pytest.param(count(), id="each", marks=pytest.mark.soak)])
def test_a_killed_client_has_done_all_or_nothing(connect: Any, tmp_path: Path, requests: Iterable[int]) -> None:
    outcomes = set()
    for last in requests:
        path = str(tmp_path / str(last))
        table = made(path)
        command = [sys.executable, "-c", CLIENT, f"sc://{connect.client._builder.endpoint}", path, str(last), MERGE]
        client = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
        assert client.returncode in (0, -9), client.stderr[-2000:]
        outcomes.add(is_done(table))
        if client.returncode == 0:
            assert outcomes == {False, True}
            break
        if not is_done(table):
            with remote():
                connect.sql(MERGE.format(path=path))
            assert is_done(table)


@pytest.mark.soak  # each request starts a server
@pytest.mark.parametrize("requests", [pytest.param([18], id="one"), pytest.param(count(), id="each")])
@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED", "ignore:The 'warn' method is deprecated")
@pytest.mark.parametrize("storage", ["client", "server"])
def test_a_statement_on_a_killed_server_is_reported_as_it_is(
    java_options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, requests: Iterable[int]
) -> None:
    for last in requests:
        folder = tmp_path / str(last)
        folder.mkdir()
        table = made(str(folder / "t"))
        with server_process(folder, java_options) as (url, process), remote(), monkeypatch.context() as patch:
            session = connected(url, **({"storage": "server"} if storage == "server" else {}))
            session.client.set_retry_policies([DefaultPolicy(max_retries=0)])
            at_request(
                last, partial(killed, process), lambda name, call, patch=patch: patch.setattr(SparkConnectClient, name, call)
            )
            error = failure(session, table)
            is_alive = process.poll() is None
            # Of a closed client PySpark frees no rows on the server when a DataFrame is collected as garbage, perhaps in another test.
            session.client.close()
        if not isinstance(error, CommitStateUnknown):
            assert is_done(table) == (error is None)
        if is_alive:
            assert is_done(table)
            break


def killed(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, and wait for its end."""
    process.kill()
    process.wait()


def failure(session: Any, table: Table) -> Exception | None:
    """The error of the MERGE; None if it was done."""
    try:
        session.sql(MERGE.format(path=table.url))
    except (PySparkException, TahoeError) as error:
        return error
    return None
