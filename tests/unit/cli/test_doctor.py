from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tahoe.api.table import Table
from tahoe.cli import doctor
from tahoe.cli.doctor import State
from tahoe.cli.main import app

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("finding", "state", "text"),
    [
        (doctor.of_startup(True), State.OK, "work in this environment"),
        (doctor.of_startup(False), State.NOTE, "`tahoe run`"),
        (doctor.of_pyspark(None), State.NOTE, "pip install 'tahoe-delta[spark]'"),
        (doctor.of_pyspark("4.2.1"), State.OK, "4.2.1"),
        (doctor.of_pyspark("3.5.6"), State.PROBLEM, "Install pyspark 4.0 to 4.3"),
        (doctor.of_java(None), State.PROBLEM, "JAVA_HOME"),
        (doctor.of_java(11), State.PROBLEM, "Version 11 is too old"),
        (doctor.of_java(21), State.OK, "Version 21"),
        (doctor.of_workers("python3", None), State.PROBLEM, "cannot import pyarrow and pyroaring"),
        (doctor.of_workers("python3", "3.8"), State.PROBLEM, f"with Python 3.8, and the driver has {HERE}"),
        (doctor.of_workers("python3", HERE), State.OK, "with the packages"),
        (doctor.of_jars(["delta-spark_2.13-4.0.1.jar"]), State.NOTE, "delta-spark_2.13-4.0.1.jar"),
        (doctor.of_jars([]), State.OK, "none"),
        (doctor.of_delta_package("/x/delta/__init__.py"), State.NOTE, "tahoe.tables"),
        (doctor.of_delta_package(None), State.OK, "TAHOE_ENABLE=1"),
        (doctor.of_memory(1 << 30), State.PROBLEM, "1.0 GiB"),
        (doctor.of_memory(8 << 30), State.OK, "8.0 GiB"),
        (doctor.of_memory(None), State.NOTE, "spark.driver.memory"),
        (doctor.of_clock(3_600_000), State.PROBLEM, "3,600 seconds in the future"),
        (doctor.of_clock(-5), State.OK, "not in this machine's future"),
    ],
)
def test_each_fact_has_a_state_a_sentence_and_a_remedy(finding: doctor.Finding, state: State, text: str) -> None:
    assert finding.state is state
    assert text in f"{finding.sentence} {finding.remedy}"
    assert bool(finding.remedy) is (state is not State.OK)


def test_the_interpreter_of_the_workers_is_the_one_that_pyspark_runs() -> None:
    assert doctor.of_workers(*doctor._worker_python({"PYSPARK_PYTHON": sys.executable})).state is State.OK
    assert doctor.of_workers(*doctor._worker_python({"PYSPARK_PYTHON": "/nowhere/python"})).state is State.PROBLEM


def test_a_java_home_without_java_is_a_problem(tmp_path: Path) -> None:
    assert doctor.of_java(doctor.java_version({"JAVA_HOME": str(tmp_path)})).state is State.PROBLEM


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
    code, found = findings(tmp_path / "canary-7d2f")
    assert code == 1
    assert found["table"]["state"] == "problem"
    assert "canary-7d2f" not in json.dumps(found)


def test_the_page_for_people_has_a_line_for_each_subject() -> None:
    printed = CliRunner().invoke(app, ["doctor"]).stdout
    assert all(subject in printed for subject in ("Tahoe", "PySpark", "workers", "memory", "import delta"))
