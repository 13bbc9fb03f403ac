"""The names of delta-spark's modules, provided by Tahoe. Each in a separate process, since imports persist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ON = "from tahoe import as_delta; as_delta.install()\n"


def answer(program: str, *folders: Path) -> str:
    """The output of a program, which finds these folders first."""
    program = f"import sys; sys.path[:0] = {[str(folder) for folder in folders]}\n{program}"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_is_answered_before_it_is_asked_for() -> None:
    program = "import importlib.util, tahoe, tahoe.tables; print(importlib.util.find_spec('delta'))"
    assert answer(program) == "None"


def test_the_modules_of_delta_spark_give_tahoes_classes() -> None:
    program = f"""{ON}
from delta import *
from delta.tables import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable, DeltaTableBuilder, IdentityGenerator
from delta.exceptions import ConcurrentAppendException, DeltaConcurrentModificationException
from delta.pip_utils import configure_spark_with_delta_pip as same
import delta.exceptions.base, delta.version, tahoe, tahoe.exceptions, tahoe.tables
assert DeltaTable is tahoe.DeltaTable and DeltaTableBuilder is tahoe.tables.DeltaTableBuilder
assert configure_spark_with_delta_pip is same is tahoe.configure_spark_with_delta_pip
assert ConcurrentAppendException is tahoe.ConcurrentAppendException is delta.exceptions.base.ConcurrentAppendException
print(delta.__version__ == delta.version.__version__ == tahoe.__version__, len(delta.exceptions.__all__))
"""
    assert answer(program) == "True 8"


def test_other_modules_of_delta_spark_are_missing() -> None:
    program = f"{ON}\ntry:\n    import delta.connect.tables\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert answer(program) == "No module named 'delta.connect'"


def test_a_second_call_does_nothing_and_neither_loads_pyspark() -> None:
    program = f"{ON}before = list(sys.meta_path)\nas_delta.install()\nprint(sys.meta_path == before, 'pyspark' in sys.modules)"
    assert answer(program) == "True False"


def test_a_package_of_that_name_is_never_hidden(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "__init__.py").write_text("")
    refused = """
from tahoe import as_delta, exceptions
try:
    as_delta.install()
except exceptions.InvalidRequest as error:
    print(error)
"""
    there = tmp_path / "delta" / "__init__.py"
    assert answer(refused, tmp_path).startswith(f"[TAHOE_DELTA_SPARK_INSTALLED] `import delta` gives the package in {there}.")
    assert "TAHOE_DELTA_SPARK_INSTALLED" in answer(f"import delta\nsys.path.pop(0)\n{refused}", tmp_path)


def test_a_folder_of_data_with_that_name_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    assert answer(f"{ON}from delta.tables import DeltaTable\nprint(DeltaTable.__module__)", tmp_path) == "tahoe.tables"
