"""`tahoe uniform status`: what a user sees and what a program gets when catalogs are up to date, lag or fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.utils.config import Config
from typer.testing import CliRunner

import tahoe
from tahoe.cli.main import app
from tahoe.process import UNIFORM_RUNTIME

UNIFORM = {"delta.universalFormat.enabledFormats": "iceberg", "delta.enableIcebergCompatV2": "true"}
CATALOGS = "delta.universalFormat.config.iceberg.catalogs"
ROWS = pa.table({"id": pa.array([1], pa.int64())})


def run(path: str, *words: str) -> str:
    result = CliRunner().invoke(app, ["uniform", "status", path, *words], env={"COLUMNS": "240"})
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of a catalog ``prod``."""
    found = tmp_path / "catalog.db"
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{found}")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    UNIFORM_RUNTIME.catalogs.forget()
    yield found
    UNIFORM_RUNTIME.catalogs.named("prod:a.b")._adapted()._catalog.engine.dispose()
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


def test_a_catalog_that_is_up_to_date_and_one_that_lags(tmp_path, database, monkeypatch):
    table = made(tmp_path / "t", "prod:a.b")
    assert "catalog prod:a.b shows version 1" in run(table.url)
    with monkeypatch.context() as without_conversions:
        without_conversions.setattr(UNIFORM_RUNTIME.queue, "submit", lambda *_: None)
        table.append(ROWS)
        words = run(table.url)
        assert "behind 1 version, " in words
        assert "catalog prod:a.b shows version 1, 1 version behind" in words
    (found,) = json.loads(run(table.url, "--json"))["catalogs"]
    assert (found["name"], found["delta_version"], found["lag_versions"], found["answered"]) == ("prod:a.b", 1, 1, True)
    assert found["metadata_location"] == f"{table.url}/metadata/v1.metadata.json"


def test_a_catalog_that_fails_is_told_with_what_it_showed_last(tmp_path, database, monkeypatch):
    table = made(tmp_path / "t", "prod:a.b", "nowhere:a.b")
    UNIFORM_RUNTIME.catalogs.named("prod:a.b")._adapted()._catalog.engine.dispose()
    database.unlink()
    database.mkdir()
    words = run(table.url)
    assert "catalog prod:a.b gives no answer; when last heard of, it shows version 1" in words
    assert "catalog nowhere:a.b gives no answer; as far as is known, it was never reached" in words
    assert "error [TAHOE_STORAGE_FAILURE] The catalog prod:a.b failed" in words
    assert "error [TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED]" in words
    assert "Iceberg shows version 1" in words, "readers by path do not need it"
    found = json.loads(run(table.url, "--json"))
    assert [(one["answered"], one["last_error"]["code"]) for one in found["catalogs"]] == [
        (False, "TAHOE_STORAGE_FAILURE"),
        (False, "TAHOE_ICEBERG_CATALOG_NOT_CONFIGURED"),
    ]
    database.rmdir()


def test_a_catalog_that_points_elsewhere(tmp_path, database):
    table = made(tmp_path / "t", "prod:a.b")
    other = made(tmp_path / "u")
    there = UNIFORM_RUNTIME.catalogs.named("prod:a.b")
    old = there.load()
    assert old is not None
    assert there.commit(old, f"{other.url}/metadata/v1.metadata.json")
    words = run(table.url)
    assert f"catalog prod:a.b points to {other.url}/metadata/v1.metadata.json" in words
    assert "error [TAHOE_UNIFORM_FOREIGN_WRITER]" in words
