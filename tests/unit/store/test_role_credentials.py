"""Whether the machine may have a role, by one request to the service that issues its credentials."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tahoe.base.exceptions import StorageFailure
from tahoe.store import role_credentials
from tahoe.store.object_store import open_store
from tahoe.store.role_credentials import may_have_role


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def service() -> Iterator[str]:
    """The URL of a service that answers each request with 401, as Amazon's does without a token."""
    server = HTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def closed_port() -> int:
    """A port of this machine on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("option", ["aws_metadata_endpoint", "AWS_METADATA_ENDPOINT", "metadata_endpoint"])
def test_any_answer_means_that_there_may_be_a_role(service: str, option: str) -> None:
    assert may_have_role("s3", {option: service})


def test_a_machine_without_the_service_has_no_role(closed_port: int) -> None:
    assert not may_have_role("s3", {"aws_metadata_endpoint": f"http://127.0.0.1:{closed_port}"})


def test_a_service_that_does_not_answer_in_time_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role_credentials, "TIMEOUT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not may_have_role("s3", {"aws_metadata_endpoint": f"http://127.0.0.1:{server.getsockname()[1]}"})


def test_default_credentials_of_google_are_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / ".config" / "gcloud" / "application_default_credentials.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    assert may_have_role("gs", {})


def test_a_store_without_credentials_sends_no_request_and_asks_again_next_time(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    store = open_store("s3://bucket/t", {"aws_metadata_endpoint": f"http://127.0.0.1:{closed_port}", "aws_region": "nowhere"})
    for _ in range(2):
        with pytest.raises(StorageFailure, match=r"No credentials found.*AWS_ACCESS_KEY_ID") as caught:
            store.get("x")
        assert caught.value.code == "TAHOE_ACCESS_DENIED"
