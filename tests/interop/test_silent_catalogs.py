"""A catalog that takes a connection and never answers: nobody waits for it but its own pointer."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import StorageFailure
from tahoe.uniform.convert.conversion import Conversion
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.formats.metadata_files import metadata_number
from tahoe.uniform.runtime import LastError
from tests.interop.catalogs import rest_catalog
from tests.interop.engines import canonical
from tests.interop.iceberg import read_pyiceberg
from tests.interop.test_iceberg_catalog import NAME, configure, made

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "at": pa.array(range(10), pa.timestamp("us", "UTC"))})
SECONDS = 200
"""More than enough. A caller that waited for the silent server would never return, so returning at all is the proof."""


class Silent:
    """A server that listens, and says nothing."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._accepted: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                self._accepted.append(self._socket.accept()[0])
            except OSError:
                return

    def stop(self) -> None:
        """Connections end without an answer."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        while self._accepted:
            self._accepted.pop().close()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    actual = Silent()
    configure(monkeypatch, {"type": "rest", "uri": actual.url})
    yield actual
    if actual._thread.is_alive():
        actual.stop()
    assert UNIFORM_RUNTIME.drain(SECONDS, SECONDS) == []
    UNIFORM_RUNTIME.catalogs.forget()


@contextmanager
def conversions_begin_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No conversion begins before the end: a caller that waited for one here would never return."""
    convert, over = Converter.convert, threading.Event()

    def held(self: Converter, *arguments: Any, **options: Any) -> Conversion:
        assert over.wait(SECONDS)
        return convert(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Converter, "convert", held)
        yield
        over.set()


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_neither_commits_nor_readers_by_path_wait_and_the_next_conversion_heals_it(
    tmp_path: Path, silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t", "sales.orders")
    for _ in range(3):
        with conversions_begin_afterwards(monkeypatch):
            version = table.append(ROWS)  # a commit knows nothing of catalogs
        status = table.uniform.wait(version, timeout=SECONDS)
        assert status.metadata_location is not None
        assert canonical(read_pyiceberg(status.metadata_location)) == canonical(table.to_arrow())
    status = table.uniform.status()
    assert (status.lag_versions, status.iceberg_version) == (0, 3)
    assert status.last_error is not None
    assert status.last_error.code == "TAHOE_ICEBERG_CATALOG_SILENT"
    assert [(item.name, item.answered, item.metadata_location) for item in status.catalogs] == [
        (f"{NAME}:sales.orders", False, None)
    ]
    with pytest.raises(StorageFailure, match=f"The catalog {NAME}:sales.orders has not answered for"):
        table.uniform.sync(timeout=0.5)

    with rest_catalog() as answering:
        configure(monkeypatch, answering)
        silent.stop()
        version = table.append(ROWS)
        table.uniform.wait(version, timeout=SECONDS)
        assert UNIFORM_RUNTIME.drain(SECONDS, SECONDS) == []
        location = UNIFORM_RUNTIME.catalogs.named(f"{NAME}:sales.orders").load()
        assert location is not None
        assert metadata_number(location) == version
        status = table.uniform.status(catalog_seconds=SECONDS)
        assert status.last_error is None
        assert (status.catalogs[0].delta_version, status.catalogs[0].answered) == (version, True)


def test_another_catalog_does_not_wait(tmp_path: Path, silent: Silent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__QUICK__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__QUICK__URI", f"sqlite:///{tmp_path}/catalog.db")
    configure(monkeypatch, {})
    catalogs = {"delta.universalFormat.config.iceberg.catalogs": f"{NAME}:a.b, quick:a.b"}
    table = made(tmp_path / "t")
    table.set_properties(catalogs)
    with pytest.raises(StorageFailure, match="has not answered"):
        table.uniform.sync(timeout=0.5)
    quick = UNIFORM_RUNTIME.catalogs.named("quick:a.b")
    until(lambda: metadata_number(quick.load() or "") == table.version())

    def reported() -> tuple[int | None, LastError | None]:
        by_name = {item.name: item for item in table.uniform.status(catalog_seconds=1).catalogs}
        assert by_name[f"{NAME}:a.b"].last_error is not None, "it never says anything"
        return by_name["quick:a.b"].lag_versions, by_name["quick:a.b"].last_error

    until(lambda: reported() == (0, None))  # if it takes more than a second, that is reported first
    quick._adapter()._catalog.engine.dispose()


PROGRAM = """
import sys
import pyarrow as pa
import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
UNIFORM_RUNTIME.exit_catalog_seconds = 0.5
table = tahoe.Table(sys.argv[1])
for _ in range(2):
    table.append(pa.table({"id": pa.array([1], pa.int64()), "at": pa.array([1], pa.timestamp("us", "UTC"))}))
print("done", flush=True)
"""


def test_the_end_of_the_process_waits_for_conversions_and_says_which_catalogs_are_left_behind(
    tmp_path: Path, silent: Silent
) -> None:
    table = made(tmp_path / "t", "sales.orders")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        _, output = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output
    assert f"at exit the catalog {NAME}:sales.orders of {table.url} has not answered" in output
    assert table.uniform.status().iceberg_version == table.version() == 2


def test_the_command_line_shows_the_last_answer_of_a_silent_catalog(tmp_path: Path, silent: Silent) -> None:
    table = made(tmp_path / "t", "sales.orders")
    with rest_catalog() as answering, pytest.MonkeyPatch.context() as before:
        configure(before, answering)
        silent.stop()
        assert UNIFORM_RUNTIME.drain(SECONDS, SECONDS) == []
        table.uniform.sync()
    again = Silent()
    try:
        environment = {f"PYICEBERG_CATALOG__{NAME.upper()}__TYPE": "rest", f"PYICEBERG_CATALOG__{NAME.upper()}__URI": again.url}
        command = [sys.executable, "-c", _STATUS, "uniform", "status", str(tmp_path / "t")]
        process = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    finally:
        again.stop()
    words = " ".join(process.stdout.split())
    assert f"catalog {NAME}:sales.orders does not answer; at its last answer, it shows version 0" in words, process
    assert "TAHOE_ICEBERG_CATALOG_SILENT" in words
    assert process.returncode == 0


_STATUS = "import tahoe.cli.uniform as u; u._CATALOG_SECONDS = 0.5; from tahoe.cli.main import main; main()"
