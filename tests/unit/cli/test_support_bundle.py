"""The support bundle: its contents, without secrets and data."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import tahoe
from tahoe.cli.main import app

CANARY = "canary"


def bundle(tmp_path: Path, *words: str) -> dict[str, bytes]:
    """The files of a bundle, by name."""
    result = CliRunner().invoke(app, ["doctor", *words, "--bundle", str(tmp_path / "bundle.zip")])
    assert result.exit_code in (0, 1), result.output
    with zipfile.ZipFile(tmp_path / "bundle.zip") as file:
        return {name: file.read(name) for name in file.namelist()}


def test_secrets_and_data_are_in_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    properties = {"my.password": f"{CANARY}-1", "team": f"{CANARY}-2", "delta.dataSkippingStatsColumns": f"{CANARY}_3"}
    schema = pa.schema([(f"{CANARY}_3", pa.string()), ("part", pa.string())])
    table = tahoe.Table.create(tmp_path / "t", schema, partition_by=["part"], properties=properties)
    table.append(pa.table({f"{CANARY}_3": [f"{CANARY}-4"], "part": [f"{CANARY}-5"]}), user_metadata=f"{CANARY}-6")
    table.delete(f"part = '{CANARY}-7'")
    table.delete(f"{CANARY}_3 = '{CANARY}-4'")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"spark.a.secret {CANARY}-8\nspark.b={CANARY}-9\n# {CANARY}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    for name in ("AWS_SECRET_ACCESS_KEY", "SPARK_LOCAL_DIRS", "MY_TOKEN", "TAHOE_COORDINATOR_NOTE"):
        monkeypatch.setenv(name, f"{CANARY}-{name}")
    files = bundle(tmp_path, str(tmp_path / "t"), "--option", f"plain_name={CANARY}-10")
    assert [name for name, data in files.items() if CANARY.encode() in data] == []
    environment = json.loads(files["environment.json"])
    assert environment["variables"]["AWS_SECRET_ACCESS_KEY"] == "***"
    assert "MY_TOKEN" not in environment["variables"]
    assert environment["sparkSettings"] == {"spark.a.secret": "***", "spark.b": "***"}
    assert environment["storageOptions"] == {"plain_name": "***"}
    assert json.loads(files["table.json"])["properties"]["team"] == "***"


def test_credentials_in_a_url_are_in_no_byte(tmp_path: Path) -> None:
    files = bundle(tmp_path, f"s3://user:{CANARY}@bucket/t")
    assert [name for name, data in files.items() if CANARY.encode() in data] == []
    assert json.loads(files["table.json"]) == {"error": "TAHOE_TABLE_LOCATION"}


def test_a_bundle_has_the_findings_versions_and_the_state_of_the_table(tmp_path: Path) -> None:
    table = tahoe.Table.create(
        tmp_path / "t", pa.schema([("id", pa.int64())]), properties={"delta.enableDeletionVectors": "true"}
    )
    table.append(pa.table({"id": [1]}))
    files = bundle(tmp_path, str(tmp_path / "t"))
    assert files.keys() == {"findings.txt", "findings.json", "versions.json", "environment.json", "table.json"}
    assert b"Tahoe: ok. Version " in files["findings.txt"]
    assert json.loads(files["versions.json"])["packages"]["pyarrow"] == pa.__version__
    facts = json.loads(files["table.json"])
    assert (facts["version"], facts["check"]) == (1, [])
    assert "deletionVectors" in facts["protocol"]["writerFeatures"]
    assert facts["properties"]["delta.enableDeletionVectors"] == "true"
    assert [commit["operation"] for commit in facts["commits"]] == ["WRITE", "CREATE TABLE"]
    assert facts["commits"][0]["operationMetrics"]["numOutputRows"] == "1"
    assert f"_delta_log/{1:020}.json" in [entry["name"] for entry in facts["log"]]


def test_without_a_table_the_bundle_is_about_the_machine(tmp_path: Path) -> None:
    assert "table.json" not in bundle(tmp_path)
