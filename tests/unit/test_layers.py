"""The contract of the layers (pyproject.toml, `tool.importlinter`) and the public lists of names, as tests."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for package in ("tahoe", "pyspark_delta") for path in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_imports_point_one_way() -> None:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_the_core_loads_without_spark() -> None:
    program = "import sys, tahoe, tahoe.table, tahoe.cli.main; print([m for m in ('pyspark', 'py4j') if m in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_module_says_what_it_is_for_and_what_is_public(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert path.stat().st_size == 0 or ast.get_docstring(tree), "the module has no docstring"
    definitions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    defined = [name for name in definitions if not name.startswith("_")]
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    ]
    if not defined:
        return
    assert listed, "the module defines public names and has no __all__"
    assert sorted(set(defined) - set(listed[0])) == [], "public names that __all__ leaves out"


def test_the_public_list_of_the_package_is_whole() -> None:
    package = importlib.import_module("tahoe")
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
