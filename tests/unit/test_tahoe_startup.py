"""`tahoe_startup` without Spark: the finder, the values of the variable, and the files of the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tahoe_startup
from tahoe.exceptions import InvalidRequest

ROOT = Path(__file__).parents[2]

_SESSION = """
from types import SimpleNamespace
class SparkSession:
    class Builder:
        def __init__(self): self._options = {}
        def getOrCreate(self): return SparkSession()
        def create(self): return SparkSession()
    def __init__(self): self.sparkContext = SimpleNamespace(_conf={})
"""
"""A stand-in of PySpark's module: this test must not need PySpark."""


def printed(program: str, *folders: Path, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*folders, ROOT))), **variables}
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.strip()


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("TRUE", True), ("on", True), ("", False), ("0", False), ("no", False)]
)
def test_the_variable_is_a_boolean(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAHOE_ENABLE", value)
    assert tahoe_startup.is_requested() is expected
    assert tahoe_startup.is_requested("false") is False  # the session's setting wins
    assert tahoe_startup.is_requested("true") is True


def test_another_value_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAHOE_ENABLE", "perhaps")
    with pytest.raises(InvalidRequest, match=r"TAHOE_ENABLE = 'perhaps' is not a boolean"):
        tahoe_startup.is_requested()
    with pytest.raises(InvalidRequest, match=r"spark\.tahoe\.enabled = '2' is not a boolean"):
        tahoe_startup.is_requested(2)


def test_install_imports_neither_tahoe_nor_pyspark() -> None:
    program = "import tahoe_startup, sys; tahoe_startup.install(); tahoe_startup.install()\n"
    program += "print([name for name in ('tahoe', 'pyspark') if name in sys.modules])\n"
    program += "print(sum(type(finder).__module__ == 'tahoe_startup' for finder in sys.meta_path))"
    assert printed(program, TAHOE_ENABLE="1").split("\n") == ["[]", "1"]


def test_the_session_module_is_wrapped_and_stays_readable(tmp_path: Path) -> None:
    package = tmp_path / "pyspark" / "sql"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").touch()
    (package / "session.py").write_text(_SESSION)
    program = "import tahoe_startup; tahoe_startup.install(); import pyspark.sql.session as module, inspect\n"
    program += "print(len(inspect.getsource(module)) > 100, module.SparkSession.Builder.getOrCreate.__name__)\n"
    program += "module.SparkSession.Builder().getOrCreate(); print('off: unchanged')"
    assert printed(program, tmp_path, TAHOE_ENABLE="0").split("\n") == ["True getOrCreate", "off: unchanged"]


def test_delta_is_tahoes_only_with_the_variable_and_without_delta_spark(tmp_path: Path) -> None:
    (tmp_path / "real" / "delta").mkdir(parents=True)
    (tmp_path / "real" / "delta" / "__init__.py").write_text("WHOSE = 'delta-spark'")
    (tmp_path / "data" / "delta").mkdir(parents=True)  # a folder of tables, without code
    program = (
        "import tahoe_startup; tahoe_startup.install()\nfrom importlib.util import find_spec; print(find_spec('delta').origin)"
    )
    assert printed(program, tmp_path / "real", TAHOE_ENABLE="1").endswith("delta/__init__.py")
    assert printed(program, tmp_path / "data", TAHOE_ENABLE="1") == "tahoe.as_delta"
    assert printed(program, tmp_path / "data", TAHOE_ENABLE="") == "None"


def test_the_wheel_has_the_startup_file(tmp_path: Path) -> None:
    builder = "from hatchling.builders.wheel import WheelBuilder; import sys\n"
    builder += "print(next(WheelBuilder(sys.argv[1]).build(directory=sys.argv[2], versions=['standard'])))"
    command = [sys.executable, "-c", builder, str(ROOT), str(tmp_path)]
    wheel = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    program = f"import site; site.addsitedir({str(site)!r})\nimport tahoe_startup as s; print(s.is_installed(), s.__file__)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-S", "-c", program]
    outcome = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert outcome.stdout.strip() == f"True {site}/tahoe_startup.py"
