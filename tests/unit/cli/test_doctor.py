from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tahoe.api.table import Table
from tahoe.cli import doctor
from tahoe.cli.examination.findings import State
from tahoe.cli.main import app


@pytest.mark.parametrize(("skew_ms", "state"), [(3_600_000, State.PROBLEM), (-5, State.OK)])
def test_a_newest_commit_in_the_future_is_a_problem(skew_ms: int, state: State) -> None:
    assert doctor.of_clock(skew_ms).state is state


SUBJECTS = (
    "Tahoe",
    "Python",
    "PySpark",
    "Java",
    "workers",
    "JARs",
    "private members",
    "private attributes",
    "import delta",
    "memory",
)
OF_A_TABLE = ("storage", "conditional writes", "storage's clock", "table", "clock", "catalogs")


def findings(*words: object) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(app, ["doctor", *map(str, words), "--json"])
    return result.exit_code, {finding["subject"]: finding for finding in json.loads(result.stdout)}


def test_a_table_is_opened_and_nothing_is_written(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    before = sorted(tmp_path.rglob("*"))
    assert findings(tmp_path / "t")[1]["table"]["state"] == "ok"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_that_cannot_be_opened_is_a_problem_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "canary-7d2f")
    code, actual = findings(tmp_path / "canary-7d2f")
    assert code == 1
    assert actual["table"]["state"] == "problem"
    assert "canary-7d2f" not in json.dumps(actual)


def test_the_page_for_people_has_a_line_for_each_subject() -> None:
    printed = CliRunner().invoke(app, ["doctor"]).stdout
    assert all(subject in printed for subject in SUBJECTS)


def test_a_path_has_a_line_for_each_subject_and_reasons_for_those_that_were_not_examined(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", pa.schema([("id", pa.int64())]))
    actual = findings(tmp_path / "t")[1]
    assert set(actual) >= {*SUBJECTS, *OF_A_TABLE}
    unknown = [finding for finding in actual.values() if finding["state"] == "not examined"]
    assert len(unknown) == 2
    assert all(finding["sentence"] and finding["remedy"] for finding in unknown)
    assert findings(tmp_path / "t", "--write")[1]["conditional writes"]["state"] == "ok"


def test_checks_of_an_unreadable_table_do_not_run(tmp_path: Path) -> None:
    actual = findings(tmp_path / "nothing", "--write")[1]
    assert actual["table"]["state"] == "problem"
    assert {actual[subject]["state"] for subject in ("conditional writes", "clock", "catalogs")} == {"not examined"}
    assert list(tmp_path.iterdir()) == []


def test_write_without_a_table_is_reported() -> None:
    assert findings("--write")[1]["storage"]["state"] == "not examined"


def test_spark_is_not_examined_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tahoe.cli.examination.machine.installed", lambda package: None)
    actual = findings()[1]
    assert {actual[subject]["state"] for subject in ("Java", "workers", "JARs", "private members")} == {"not examined"}


def test_an_object_store_s_findings_are_in_the_bundle_without_its_keys(
    tmp_path: Path, s3_url: str, s3_options: dict[str, str]
) -> None:
    Table.create(s3_url, pa.schema([("id", pa.int64())]), storage_options=s3_options)
    words = [word for name, value in s3_options.items() for word in ("--option", f"{name}={value}")]
    CliRunner().invoke(app, ["doctor", s3_url, *words, "--write", "--bundle", str(tmp_path / "b.zip")])
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        written = {finding["subject"]: finding["state"] for finding in json.loads(bundle.read("findings.json"))["findings"]}
        everything = b"".join(bundle.read(name) for name in bundle.namelist())
    assert {written[subject] for subject in ("credentials", *OF_A_TABLE)} == {"ok"}
    assert s3_options["aws_secret_access_key"].encode() not in everything
