"""`tahoe uniform status`: output for users and programs when catalogs are up to date, behind, or failing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.utils.config import Config
from typer.testing import CliRunner

import tahoe
from tahoe.api.process import UNIFORM_RUNTIME
from tahoe.cli.main import app

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
CATALOGS = "delta.universalFormat.config.iceberg.catalogs"
ROWS = pa.table({"id": pa.array([1], pa.int64())})


def run(path: str, *words: str) -> str:
    result = CliRunner().invoke(app, ["uniform", "status", path, *words], env={"COLUMNS": "240"})
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the database of a catalog ``prod``."""
    database_file = tmp_path / "catalog.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{database_file}")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    UNIFORM_RUNTIME.catalogs.forget()
    yield database_file
    UNIFORM_RUNTIME.catalogs.named("prod:a.b")._adapter()._catalog.engine.dispose()
    UNIFORM_RUNTIME.catalogs.forget()


def made(path: Path, *catalogs: str) -> tahoe.Table:
    named = {CATALOGS: ", ".join(catalogs)} if catalogs else {}
    table = tahoe.Table.create(path, ROWS.schema, properties={**UNIFORM, **named})
    table.append(ROWS)
    assert UNIFORM_RUNTIME.drain(120, 120) == []
    return table


def test_without_catalogs_none_is_named(tmp_path):
    table = made(tmp_path / "t")
    words = run(table.url)
    assert "Iceberg shows version 1 behind 0 versions, 0.0 s" in words
    assert "catalog " not in words
    assert "error" not in words


def test_a_catalog_that_is_up_to_date_and_one_that_is_behind(tmp_path, database, monkeypatch):
    table = made(tmp_path / "t", "prod:a.b")
    assert "catalog prod:a.b shows version 1" in run(table.url)
    with monkeypatch.context() as without_conversions:
        without_conversions.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_: None)
        table.append(ROWS)
        words = run(table.url)
        assert "behind 1 version, " in words
        assert "catalog prod:a.b shows version 1, 1 version behind" in words
    (catalog,) = json.loads(run(table.url, "--json"))["catalogs"]
    assert (catalog["name"], catalog["delta_version"], catalog["lag_versions"], catalog["answered"]) == ("prod:a.b", 1, 1, True)
    assert catalog["metadata_location"] == f"{table.url}/metadata/v1.metadata.json"


def test_a_failing_catalog_is_shown_with_its_last_state(tmp_path, database, monkeypatch):
    table = made(tmp_path / "t", "prod:a.b", "nowhere:a.b")
    UNIFORM_RUNTIME.catalogs.named("prod:a.b")._adapter()._catalog.engine.dispose()
    database.unlink()
    database.mkdir()
    words = run(table.url)
    assert "catalog prod:a.b does not answer; at its last answer, it shows version 1" in words
    assert "catalog nowhere:a.b does not answer; as far as is known, it was never reached" in words
    assert "error [TAHOE_STORAGE_FAILURE] The catalog prod:a.b failed" in words
    assert "error [TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED]" in words
    assert "Iceberg shows version 1" in words, "readers by path do not need it"
    state = json.loads(run(table.url, "--json"))
    assert [(catalog["answered"], catalog["last_error"]["code"]) for catalog in state["catalogs"]] == [
        (False, "TAHOE_STORAGE_FAILURE"),
        (False, "TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED"),
    ]
    database.rmdir()


def test_a_catalog_that_points_elsewhere(tmp_path, database):
    table = made(tmp_path / "t", "prod:a.b")
    second = made(tmp_path / "u")
    there = UNIFORM_RUNTIME.catalogs.named("prod:a.b")
    old = there.load()
    assert old is not None
    assert there.commit(old, f"{second.url}/metadata/v1.metadata.json")
    words = run(table.url)
    assert f"catalog prod:a.b points to {second.url}/metadata/v1.metadata.json" in words
    assert "error [TAHOE_UNIFORM_FOREIGN_WRITER]" in words
