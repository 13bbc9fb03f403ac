from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tahoe.cli.main import app
from tahoe.cli.run import check_interpreter, environment_of
from tahoe.exceptions import InvalidRequest, NotFound

PYTHON = Path("/env/bin/python")


def test_the_program_finds_tahoes_environment_first() -> None:
    values = environment_of({"PATH": "/usr/bin", "HOME": "/root"}, PYTHON, has_startup_file=True)
    assert values == {
        "HOME": "/root",
        "PATH": f"/env/bin{os.pathsep}/usr/bin",
        "PYSPARK_DRIVER_PYTHON": "/env/bin/python",
        "TAHOE_ENABLE": "1",
    }


def test_the_driver_that_the_user_chose_stays() -> None:
    values = environment_of({"PYSPARK_DRIVER_PYTHON": "jupyter"}, PYTHON, has_startup_file=True)
    assert values["PYSPARK_DRIVER_PYTHON"] == "jupyter"


def test_without_the_startup_file_a_folder_takes_its_place() -> None:
    values = environment_of({"PYTHONPATH": "/mine"}, PYTHON, has_startup_file=False)
    bootstrap, mine = values["PYTHONPATH"].split(os.pathsep)
    assert mine == "/mine"
    assert Path(bootstrap, "sitecustomize.py").is_file()


@pytest.mark.parametrize("first", ["#!/env/bin/python3.11", "#!/bin/sh", "#!/usr/bin/env python", "\x7fELF", "", "#!"])
def test_programs_of_this_environment_and_others_without_python_run(first: str, tmp_path: Path) -> None:
    (tmp_path / "dbt").write_text(first + "\n")
    check_interpreter(tmp_path / "dbt", PYTHON)


def test_a_script_of_another_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dbt").write_text("#!/elsewhere/bin/python3\n")
    with pytest.raises(InvalidRequest, match=r"dbt runs with /elsewhere/bin/python3, and Tahoe is installed for /env/bin/python"):
        check_interpreter(tmp_path / "dbt", PYTHON)


def test_an_unknown_command_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotFound, match=r"no command 'job\.py'\. Run it with Python: tahoe run python job\.py"):
        CliRunner().invoke(app, ["run", "job.py"], catch_exceptions=False)


def test_options_of_the_program_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("os.execve", lambda *arguments: calls.append(arguments))
    CliRunner().invoke(app, ["run", "python", "-c", "pass", "--help"], catch_exceptions=False)
    ((program, words, environment),) = calls
    assert Path(program).parent == Path(sys.executable).parent
    assert words == ["python", "-c", "pass", "--help"]
    assert environment["TAHOE_ENABLE"] == "1"
