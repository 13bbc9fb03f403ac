"""`tahoe create`, `tahoe schema` and `tahoe set`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tahoe.api.table import Table
from tahoe.cli.main import app
from tahoe.exceptions import InvalidRequest, Unsupported


def run(*words: object) -> str:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False).stdout


def test_a_table_is_created_with_columns_partitions_and_properties(tmp_path: Path) -> None:
    path = tmp_path / "orders"
    columns = ("id:long", "day:date", "price:decimal(12,2)")
    printed = run("create", path, *columns, "--partition-by", "day", "--property", "delta.appendOnly=true")
    assert printed == f"created file://{path}: version 0\n"
    snapshot = Table(path).snapshot()
    assert [(column.name, str(column.data_type)) for column in snapshot.schema] == [
        ("id", "long"),
        ("day", "date"),
        ("price", "decimal(12,2)"),
    ]
    assert snapshot.metadata.partition_columns == ("day",)
    assert snapshot.metadata.configuration["delta.appendOnly"] == "true"


def test_a_clustered_table_is_created(tmp_path: Path) -> None:
    run("create", tmp_path / "t", "id:long", "--cluster-by", "id")
    assert Table(tmp_path / "t").detail()["clusteringColumns"] == ["id"]


def test_the_schema_is_a_table_or_json(tmp_path: Path) -> None:
    run("create", tmp_path / "t", "id:long", "name:string")
    lines = [line.split() for line in run("schema", tmp_path / "t").splitlines()]
    assert ["id", "long", "yes"] in lines
    assert [field["name"] for field in json.loads(run("schema", tmp_path / "t", "--json"))["fields"]] == ["id", "name"]


def test_properties_are_shown_set_and_removed(tmp_path: Path) -> None:
    run("create", tmp_path / "t", "id:long", "--property", "team=a")
    printed = run("set", tmp_path / "t", "team=b", "my.password=x", "--dry-run")
    assert printed.splitlines() == ["team: a → b", "my.password: not set → ***"]
    assert run("set", tmp_path / "t", "--unset", "team", "--dry-run") == "team: a → not set\n"
    assert Table(tmp_path / "t").version() == 0
    assert run("set", tmp_path / "t", "team=b=c") == "version 1\n"
    assert Table(tmp_path / "t").snapshot().metadata.configuration == {"team": "b=c"}
    assert run("set", tmp_path / "t", "--unset", "team") == "version 2\n"
    assert Table(tmp_path / "t").snapshot().metadata.configuration == {}


def test_mistakes_name_the_form(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="'id' is not a column: write it as id:long"):
        run("create", tmp_path / "t", "id")
    with pytest.raises(Unsupported, match="numbr"):
        run("create", tmp_path / "t", "id:numbr")
    assert not (tmp_path / "t").exists()
    run("create", tmp_path / "t", "id:long")
    with pytest.raises(InvalidRequest, match="'team' is not a property: write it as"):
        run("set", tmp_path / "t", "team")
    with pytest.raises(InvalidRequest, match="Give either NAME=VALUE or --unset NAME"):
        run("set", tmp_path / "t")
