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


def test_modules_have_docstrings_and_list_only_names_that_they_export_again() -> None:
    assert [fault for path in MODULES for fault in faults_of_module(path)] == []


def faults_of_module(path: Path) -> Iterator[str]:
    """`__all__` marks names that a module imports to export them, and the public modules; elsewhere an underscore marks a private name."""
    source = path.read_text()
    tree = ast.parse(source)
    if path.stat().st_size and not ast.get_docstring(tree):
        yield f"{module_name(path)} has no docstring"
    exported = [
        name for node in tree.body if isinstance(node, ast.Assign) and is_export(node) for name in ast.literal_eval(node.value)
    ]
    defined = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined -= {alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    is_public = module_name(path).startswith(("tahoe.testing", "tahoe.base.exceptions", "tahoe.as_delta", "pyspark_delta"))
    if exported and not is_public and "__getattr__" not in source and set(exported) <= defined:
        yield f"{module_name(path)}: __all__ lists only names that the module defines; remove it"


def is_export(node: ast.Assign) -> bool:
    return any(isinstance(name, ast.Name) and name.id == "__all__" for name in node.targets)


def test_the_public_list_of_the_package_is_whole() -> None:
    package = importlib.import_module("tahoe")
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
