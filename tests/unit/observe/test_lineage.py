"""The switch of lineage, and lineage as OpenLineage's transports receive it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tahoe.base.exceptions import TahoeWarning
from tahoe.observe.lineage import SWITCH, Lineage, lineage_is_on
from tahoe.settings.warn_once import reset_warnings

# In a process of its own: OpenLineage's client reads its configuration once.
PROGRAM = """
import sys
import pyarrow as pa
import tahoe
table = tahoe.Table(sys.argv[1])
table.append(pa.table({"id": [1, 2, 3]}), user_metadata="token=hunter2")
table.delete("id = 1")
print(table.version())
"""


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program, whose interpreter waits at exit for pending events."""
    path = {"PYTHONPATH": str(Path(__file__).parents[3]), "HOME": str(folder), "PATH": ""}
    program = [sys.executable, "-c", PROGRAM, str(folder / "db" / "flights")]
    return subprocess.run(program, capture_output=True, text=True, env=path | environment, cwd=folder, check=False)


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """An OpenLineage server: its URL, and the paths and events that it has received."""
    received = list[tuple[str, dict[str, Any]]]()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    at = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=at.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{at.server_port}", received
    at.shutdown()
    at.server_close()
    thread.join()


def test_each_commit_is_a_run_on_the_server_of_openlineage_url(
    server: tuple[str, list[tuple[str, dict[str, Any]]]], tmp_path: Path
) -> None:
    url, received = server
    parent = "airflow/dag.task/0d6ee6b5-1b4b-4a5c-8f49-6c4bd3b8e9a1"
    environment = {SWITCH: "true", "OPENLINEAGE_URL": url, "OPENLINEAGE_NAMESPACE": "nightly", "OPENLINEAGE_PARENT_ID": parent}
    done = run(tmp_path, **environment, TAHOE_OPENLINEAGE_JOB="load")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert {path for path, _ in received} == {"/api/v1/lineage"}
    events = [event for _, event in received]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"] * 2
    assert [event["job"]["name"] for event in events[::2]] == ["load.write.db_flights", "load.delete.db_flights"]
    assert {event["job"]["namespace"] for event in events} == {"nightly"}
    assert len({event["run"]["runId"] for event in events}) == 2
    assert events[0]["run"]["facets"]["parent"]["job"] == {"namespace": "airflow", "name": "dag.task", "facets": {}}
    (output,) = events[1]["outputs"]
    assert (output["namespace"], output["name"]) == ("file", str(tmp_path / "db" / "flights"))
    assert output["facets"]["version"]["datasetVersion"] == "0"
    assert output["facets"]["lifecycleStateChange"]["lifecycleStateChange"] == "CREATE"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert "hunter2" not in json.dumps(events)


def test_the_file_transport_of_openlineage_yml_is_used(tmp_path: Path) -> None:
    events = tmp_path / "events.json"
    (tmp_path / "openlineage.yml").write_text(f"transport: {{type: file, log_file_path: {events}, append: true}}\n")
    done = run(tmp_path, **{SWITCH: "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert [json.loads(line)["eventType"] for line in events.read_text().splitlines()] == ["START", "COMPLETE"] * 2


def test_without_the_switch_nothing_is_sent(server: tuple[str, list[tuple[str, dict[str, Any]]]], tmp_path: Path) -> None:
    url, received = server
    assert run(tmp_path, OPENLINEAGE_URL=url).stdout == "1\n"
    assert received == []


def test_a_server_that_refuses_connections_fails_no_commit_and_is_logged_without_its_password(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    retry = json.dumps({"total": 0})
    transport = {"OPENLINEAGE__TRANSPORT__TYPE": "http", "OPENLINEAGE__TRANSPORT__RETRY": retry}
    url = {"OPENLINEAGE__TRANSPORT__URL": f"http://user:hunter2@127.0.0.1:{port}"}
    done = run(tmp_path, **{SWITCH: "true"}, **transport, **url)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert f"the lineage of version 0 of file://{tmp_path}/db/flights was not sent: ConnectionError" in done.stderr
    assert "hunter2" not in done.stderr and "Traceback" not in done.stderr


def test_a_server_that_never_answers_delays_neither_commits_nor_the_exit_beyond_the_bound(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        environment = {"OPENLINEAGE_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", SWITCH: "true"}
        done = run(tmp_path, **environment)
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "at exit the lineage of 2 commits was not sent" in done.stderr


def test_a_missing_client_is_named_with_the_extra_to_install(tmp_path: Path) -> None:
    blocker = tmp_path / "openlineage.py"  # found before the client, whose package is of that name
    blocker.write_text("raise ImportError('no client')\n")
    done = run(tmp_path, **{SWITCH: "true", "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[3]}"})
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "pip install 'tahoe-delta[openlineage]'" in done.stderr


@pytest.mark.parametrize(("text", "on"), [("true", True), (" Yes ", True), ("0", False), ("", False), ("off", False)])
def test_the_switch_has_the_values_of_the_other_switches(text: str, on: bool) -> None:
    assert lineage_is_on({SWITCH: text}) is on


def test_an_unknown_value_of_the_switch_is_off_and_warned_about() -> None:
    reset_warnings()
    with pytest.warns(TahoeWarning, match="TAHOE_OPENLINEAGE is 'maybe' and has no effect"):
        assert not lineage_is_on({SWITCH: "Maybe"})


def test_only_commits_are_lineage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "true")
    assert [name for name in ("commit", "plan", "delete", "convert") if Lineage().is_on(name)] == ["commit"]
