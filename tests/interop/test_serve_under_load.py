"""`tahoe serve` beside slow clients: every client that sends a whole request gets a response. Only sockets of 127.0.0.1."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.base.exceptions import NotFound
from tahoe.cli.connections import Connections, Limits, affordable
from tahoe.cli.serve import server_of
from tahoe.uniform.serve.rest_protocol import ReadOnlyCatalog, Request, Response
from tahoe.uniform.serve.warehouse import Warehouse
from tests.interop.test_iceberg_rest import start
from tests.unit.uniform.serve.serving import UNIFORM

MANY = 600
SECONDS = 200
"""More than enough: only a test that fails takes so long."""
QUICK = Limits(most=40, most_of_a_peer=20, header_seconds=0.5, body_seconds=0.5, idle_seconds=0.5, answer_seconds=0.5)
"""Timeout for connections that the server closes in the end."""
PATIENT = replace(QUICK, **dict.fromkeys(("header_seconds", "body_seconds", "idle_seconds", "answer_seconds"), 10.0 * SECONDS))
"""Timeout for responses: the server never closes a connection while it computes one."""
UNFINISHED_HEADER = b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
UNFINISHED_BODY = b"POST /v1/oauth/tokens HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"
WHOLE = b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("warehouse")
    tahoe.Table.create(root / "t", pa.schema([("id", pa.int64())]), properties=UNIFORM)
    return root


@dataclass(frozen=True)
class Running:
    """A server in a thread of this process."""

    port: int
    connections: Connections

    def of_phase(self, phase: str) -> int:
        """How many connections the server has in a phase."""
        return sum(item.phase.name == phase for mine in list(self.connections._of_peers.values()) for item in list(mine))


@contextmanager
def running(root: Path, limits: Limits) -> Iterator[Running]:
    server = server_of(ReadOnlyCatalog(Warehouse(root, runtime=UNIFORM_RUNTIME)), limits)
    listening = socket.create_server(("127.0.0.1", 0))
    port = int(listening.getsockname()[1])
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Running(port, server.config.http.guard)  # type: ignore[union-attr]
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        assert not thread.is_alive()


def opened(held: ExitStack, port: int, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    peer = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SECONDS, source_address=(source, 0)))
    peer.sendall(sent)
    return peer


def answered(port: int) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/config", timeout=SECONDS) as answer:
        assert answer.status == 200


def wait_for_answers(peers: Sequence[socket.socket]) -> None:
    """Until each has a response, or the error that there are too many connections, or was closed in favor of a newer one."""
    for peer in peers:
        with suppress(ConnectionResetError):
            peer.recv(1)


def read_to_the_end(peer: socket.socket) -> int:
    """The bytes that came before the server closed the connection."""
    received = 0
    with suppress(ConnectionResetError):
        while part := peer.recv(1 << 20):
            received += len(part)
    return received


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


PATIENT_SERVER = """
from tahoe.cli.connections import Limits
from tahoe.cli.main import main
most, of_a_peer, *seconds = Limits.__init__.__defaults__
Limits.__init__.__defaults__ = (most, of_a_peer, *(1e6 for _ in seconds))
main()
"""
"""`tahoe` whose server gives no connection up for the time that it takes."""


def test_a_request_is_answered_beside_600_connections_that_keep_the_server_waiting(root: Path) -> None:
    """That server would wait for them for days."""
    process, url = start(root, program=("-c", PATIENT_SERVER))
    port = int(url.rpartition(":")[2])
    with process, ExitStack() as end:
        end.callback(process.kill)  # where it has not ended as it should
        with ExitStack() as stack:
            for sent in (UNFINISHED_HEADER, UNFINISHED_BODY, WHOLE, b""):
                peers = [opened(stack, port, sent) for _ in range(MANY)]
                if sent == WHOLE:
                    # A client that connects while a peer has the maximum number of requests gets an error: these requests must end first.
                    wait_for_answers(peers)
                for _ in range(5):
                    answered(port)
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=SECONDS)
    assert re.search(r"connections: \d+ are open of at most \d+.*closed since the last report: \d+ waiting for", complaints)
    assert len(complaints.splitlines()) < 10, "one line for many connections"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such bounds and signals")
def test_many_connections_at_once_do_not_take_the_files_that_answers_need(root: Path) -> None:
    """The server is stopped while they come, and finds them all at once: more than the files that it may open."""
    process, url = start(root, files=256)
    port = int(url.rpartition(":")[2])
    with process, ExitStack() as end:
        end.callback(process.kill)
        with ExitStack() as stack:
            process.send_signal(signal.SIGSTOP)
            for _ in range(MANY):
                opened(stack, port)
            process.send_signal(signal.SIGCONT)
            with urllib.request.urlopen(f"{url}/v1/namespaces/default/tables", timeout=SECONDS) as answer:
                assert b'"name":"t"' in answer.read().replace(b" ", b"")
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=SECONDS)
    assert "out of system resource" not in complaints


@pytest.mark.parametrize("sent", [b"", UNFINISHED_HEADER, UNFINISHED_BODY, WHOLE], ids=["nothing", "header", "body", "idle"])
def test_a_connection_that_keeps_the_server_waiting_is_closed(root: Path, sent: bytes) -> None:
    with running(root, QUICK) as server, ExitStack() as stack:
        read_to_the_end(opened(stack, server.port, sent))


def test_a_header_that_comes_byte_by_byte_does_not_gain_time(root: Path) -> None:
    with running(root, QUICK) as server, ExitStack() as stack:
        peer = opened(stack, server.port, UNFINISHED_HEADER)
        with suppress(OSError):  # a broken pipe or a reset, as the system has it
            for _ in range(SECONDS * 20):
                peer.sendall(b"x")
                time.sleep(0.05)
            pytest.fail("it has gained time")


def test_an_answer_that_is_not_taken_does_not_hold_its_connection(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadOnlyCatalog, "answer", lambda *_: Response(200, {"x": "x" * 20_000_000}))
    with running(root, replace(PATIENT, answer_seconds=0.5)) as server, ExitStack() as stack:
        peer = opened(stack, server.port, WHOLE)
        assert peer.recv(1) == b"H"
        until(lambda: server.connections._count == 0)
        assert read_to_the_end(peer) < 20_000_000


def test_one_peer_does_not_take_the_places_of_another(root: Path) -> None:
    with running(root, PATIENT) as server, ExitStack() as stack:
        patient = opened(stack, server.port, UNFINISHED_HEADER, source="127.0.0.2")
        for _ in range(100):
            opened(stack, server.port, UNFINISHED_HEADER)
        patient.sendall(b"x\r\n\r\n")
        assert patient.recv(100).startswith(b"HTTP/1.1 200")


def test_requests_that_are_being_answered_are_not_interrupted_by_newer_ones(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, go_on = ReadOnlyCatalog.answer, threading.Event()

    def slow(self: ReadOnlyCatalog, request: Request) -> Response:
        go_on.wait(SECONDS)
        return answer(self, request)

    monkeypatch.setattr(ReadOnlyCatalog, "answer", slow)
    with running(root, PATIENT) as server, ExitStack() as stack:
        working = [opened(stack, server.port, WHOLE) for _ in range(PATIENT.most_of_a_peer)]
        until(lambda: server.of_phase("WORK") == PATIENT.most_of_a_peer)
        late = opened(stack, server.port)
        assert late.recv(100).startswith(b"HTTP/1.1 503"), "there is none to make room"
        go_on.set()
        assert all(peer.recv(100).startswith(b"HTTP/1.1 200") for peer in working)


def test_a_client_may_use_a_connection_again(root: Path) -> None:
    with running(root, PATIENT) as server, ExitStack() as stack:
        peer = opened(stack, server.port)
        for _ in range(5):
            peer.sendall(WHOLE)
            answer = peer.recv(100_000)
            while not answer.endswith(b"}"):
                answer += peer.recv(100_000)
            assert answer.startswith(b"HTTP/1.1 200")
            until(lambda: server.of_phase("IDLE") == 1)


def test_there_are_no_more_connections_than_half_of_the_files_that_may_be_open() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, before[1]))
        assert affordable(Limits()) == Limits(most=200, most_of_a_peer=100)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_folder_that_is_not_there_and_a_file_are_refused_before_anything_listens(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, what in (("absent", "does not exist"), ("file", "is not a folder")):
        with pytest.raises(NotFound, match=what):
            Warehouse(tmp_path / name, runtime=UNIFORM_RUNTIME).refuse_if_absent()
        done = subprocess.run(
            [sys.executable, "-m", "tahoe", "serve", "--iceberg", str(tmp_path / name), "--port", "0"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert what in done.stderr
    Warehouse(tmp_path, runtime=UNIFORM_RUNTIME).refuse_if_absent()
