from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.utils.config import Config

from tahoe.cli.examination.catalogs import of_catalogs
from tahoe.cli.examination.findings import Finding, State
from tahoe.uniform.catalogs.configured import CATALOGS_KEY

URL = "file:///t"


def found(names: str, seconds: float = 60) -> list[Finding]:
    return list(of_catalogs(URL, {CATALOGS_KEY: names}, seconds))


@pytest.fixture
def sql_uri(tmp_path: Path) -> Iterator[str]:
    """A SQL catalog with a namespace and no table."""
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("here", uri=uri)
    catalog.create_namespace("a")
    yield uri
    catalog.engine.dispose()


def configure(monkeypatch: pytest.MonkeyPatch, **catalogs: tuple[str, str]) -> None:
    for name, (kind, uri) in catalogs.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__TYPE", kind)
        monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", uri)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


def test_a_table_without_catalogs_is_fine() -> None:
    (finding,) = of_catalogs(URL, {})
    assert finding.state is State.OK


def test_a_property_that_names_no_catalog_is_a_problem() -> None:
    assert [finding.state for finding in found("nonsense")] == [State.PROBLEM]


def test_a_catalog_that_answers_without_the_table_is_noted(sql_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, here=("sql", sql_uri))
    (finding,) = found("here:a.t")
    assert (finding.state, "no such table" in finding.sentence) == (State.NOTE, True)


def test_a_catalog_that_is_not_configured_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch)
    (finding,) = found("nowhere:a.t")
    assert finding.state is State.PROBLEM
    assert "nowhere" in finding.sentence


@pytest.mark.parametrize(("kind", "scheme"), [("hive", "thrift"), ("rest", "http")])
def test_a_catalog_that_does_not_answer_is_a_problem_in_time(
    kind: str, scheme: str, sql_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        configure(monkeypatch, silent=(kind, f"{scheme}://canary:canary@{place}"))
        (finding,) = found("silent:a.t", seconds=0.5)
    assert finding.state is State.PROBLEM
    assert "silent:a.t" in finding.sentence
    assert "canary" not in str(finding)


def test_a_dead_endpoint_is_a_problem_and_delays_no_other(sql_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    configure(monkeypatch, here=("sql", sql_uri), dead=("hive", f"thrift://127.0.0.1:{port}"))
    dead, here = found("dead:a.t,here:a.t")
    assert (dead.state, here.state) == (State.PROBLEM, State.NOTE)
