"""The comparison of benchmark ratios with the accepted ones, and the page that shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import benchmark_ratios
from scripts.benchmark_ratios import ACCEPTED, FOLDER, HISTORY, ROOT, Accepted, Run, read_accepted, recorded, updated

RECORDS = """
from _ratios import record
record("read, deltalake", {first})
record("write, deltalake", 0.5)
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one benchmark, whose first ratio is in the file `first`, and no accepted ratios."""
    (tmp_path / "quick.py").write_text(RECORDS.format(first=f"float(open({str(tmp_path / 'first')!r}).read())"))
    (tmp_path / "_ratios.py").symlink_to(FOLDER / "_ratios.py")
    (tmp_path / "first").write_text("0.4")
    (tmp_path / "ratios.json").write_text('{"check": {"quick": {}}, "full": {}}')
    monkeypatch.setattr(benchmark_ratios, "FOLDER", tmp_path)
    for name, file in (("ACCEPTED", "ratios.json"), ("HISTORY", "history.jsonl"), ("MEASURED", "build/ratios.json")):
        monkeypatch.setattr(benchmark_ratios, name, tmp_path / file)
    return tmp_path


def test_a_run_is_compared_with_the_run_that_was_accepted(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert benchmark_ratios.compare("check", "") == 1
    assert "read, deltalake is not accepted" in capfd.readouterr().out
    benchmark_ratios.accept()
    assert benchmark_ratios.compare("check", "") == 0
    (places / "first").write_text("0.79")
    assert benchmark_ratios.compare("check", "") == 0, "the tolerance of a new case is 2"
    (places / "first").write_text("0.81")
    capfd.readouterr()
    assert benchmark_ratios.compare("check", "") == 1
    printed = capfd.readouterr().out
    assert "quick: read, deltalake is 0.810, more than 0.400 × 2.0" in printed
    assert printed.count("== quick") == 3, "a command above its limit runs twice more"


def test_a_failure_and_a_case_that_is_not_measured_are_differences(places: Path, capfd: pytest.CaptureFixture[str]) -> None:
    benchmark_ratios.compare("check", "")
    benchmark_ratios.accept()
    (places / "quick.py").write_text("from _ratios import record\nrecord('write, deltalake', 0.5)\nraise SystemExit(3)")
    capfd.readouterr()
    assert benchmark_ratios.compare("check", "") == 1
    printed = capfd.readouterr().out
    assert "quick: exit code 3" in printed
    assert "quick: read, deltalake was not measured" in printed


def test_an_abort_at_the_end_of_the_process_is_no_failure(places: Path) -> None:
    benchmark_ratios.compare("check", "")
    benchmark_ratios.accept()
    (places / "quick.py").write_text(f"{(places / 'quick.py').read_text()}\nimport os\nos.abort()")
    assert benchmark_ratios.compare("check", "") == 0
    (places / "quick.py").write_text("import os\nos.abort()")
    assert benchmark_ratios.compare("check", "") == 1


def test_accepting_keeps_a_tolerance_and_adds_to_the_history(places: Path) -> None:
    (places / "ratios.json").write_text('{"check": {"quick": {"read, deltalake": [0.9, 2.5]}}, "full": {}}')
    for _ in range(2):
        benchmark_ratios.compare("check", "")
        benchmark_ratios.accept()
    accepted = read_accepted((places / "ratios.json").read_text())["check"]["quick"]
    assert accepted == {"read, deltalake": Accepted(0.4, 2.5), "write, deltalake": Accepted(0.5, 2.0)}
    entries = [json.loads(line) for line in (places / "history.jsonl").read_text().splitlines()]
    assert [entry["ratios"]["quick"]["read, deltalake"] for entry in entries] == [0.4, 0.4]


def test_the_least_ratio_of_repeated_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([Run({"a": 2.0, "b": 0.9}, 0), Run({"a": 1.1, "b": 3.0}, 0), Run({"a": 9.0, "b": 9.0}, 0)])
    monkeypatch.setattr(benchmark_ratios, "execute", lambda command: next(runs))
    limits = {"a": Accepted(1.0, 1.2), "b": Accepted(1.0, 1.2)}
    assert benchmark_ratios.repeated("quick", limits, 2) == Run({"a": 1.1, "b": 0.9}, 0)


def test_two_ratios_of_one_case_are_refused() -> None:
    line = json.dumps({"script": "quick", "case": "read", "ratio": 1.0})
    with pytest.raises(ValueError, match=r"quick\.py records two ratios for 'read'"):
        recorded([line, line])


def test_a_known_case_keeps_its_tolerance() -> None:
    assert updated({"read": Accepted(1.0, 2.0)}, {"read": 0.8, "write": 0.7}, 1.3) == {"read": [0.8, 2.0], "write": [0.7, 1.3]}


def test_the_accepted_ratios_name_benchmarks_that_exist() -> None:
    accepted = read_accepted(ACCEPTED.read_text())
    scripts = {path.stem for path in FOLDER.glob("[a-z]*.py")}
    assert {command.split()[0] for commands in accepted.values() for command in commands} <= scripts
    assert len(accepted["check"]) == 10
    assert all(accepted["check"].values()), "each command of the check has an accepted ratio"
    assert {json.loads(line)["suite"] for line in HISTORY.read_text().splitlines()} <= {"check", "full"}


def test_the_page_of_ratios_is_up_to_date() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "scripts/ratio_history.py"]
    printed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert printed.stdout == (ROOT / "docs/ratios.md").read_text(), "run `make docs`"
