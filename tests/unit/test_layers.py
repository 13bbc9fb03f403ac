"""The contract of the layers (pyproject.toml, `tool.importlinter`) and the public lists of names, as tests."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

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
    program = "import sys, tahoe, tahoe.api.table, tahoe.cli.main; print([m for m in ('pyspark', 'py4j') if m in sys.modules])"
    outcome = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


def test_modules_have_docstrings_and_list_their_public_names() -> None:
    assert [fault for path in MODULES for fault in faults_of_module(path)] == []


def faults_of_module(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    if path.stat().st_size and not ast.get_docstring(tree):
        yield f"{module_name(path)} has no docstring"
    definitions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and not is_rule(node)]
    public = {name for name in definitions if not name.startswith("_")}
    exported = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)
    ]
    if public and not exported:
        yield f"{module_name(path)} defines public names and has no __all__"
    elif public - set(exported[0] if exported else ()):
        yield f"{module_name(path)}: __all__ lacks {sorted(public - set(exported[0]))}"


def is_rule(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether a list of rules contains the function (`tahoe.ops.check.subjects.rule`), so that nobody imports it."""
    decorators = [each.func for each in node.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(function, ast.Attribute) and function.attr == "rule" for function in decorators)


def test_the_public_list_of_the_package_is_whole() -> None:
    package = importlib.import_module("tahoe")
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
