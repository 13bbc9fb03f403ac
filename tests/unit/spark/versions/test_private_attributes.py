"""Whether the list of private attributes is that of the code; tests/spark/test_private_members.py compares it with each PySpark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import tahoe
from tahoe.spark.versions.private_attributes import USED, missing_attributes

OF_OTHERS = {"_getframe", "_fqn", "_gateway", "_gateway_client", "_jvm_id", "_withSchemaEvolution"}
"""Private names of Python and Py4J, and of a method in the JVM."""


def test_each_private_attribute_that_the_code_uses_is_listed() -> None:
    own: set[str] = set()
    used: set[str] = set()
    for path in Path(*tahoe.__path__).rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        own |= _defined(nodes)
        if path.is_relative_to(Path(*tahoe.__path__, "spark")):
            used |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)}
            used |= {name for node in nodes if isinstance(node, ast.Call) and (name := _wrapped(node)).startswith("_")}
    assert used - own - OF_OTHERS <= {attribute.name for attribute in USED}
    assert {attribute.name for attribute in USED} <= used


def _wrapped(call: ast.Call) -> str:
    """The name of the method that ``wrap(owner, name, replacement)`` replaces; empty for another call."""
    match call:
        case ast.Call(func=ast.Name(id="wrap"), args=[_, ast.Constant(value=str(name)), *_]):
            return name
    return ""


def _defined(nodes: Iterable[ast.AST]) -> set[str]:
    actual = set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            actual.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            actual.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            actual |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return actual


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("class DataFrame:\n    def __init__(self, jdf):\n        self._jdf: object = jdf\n", False),
        ("class DataFrame:\n    def _jdf(self):\n        return None\n", False),
        ("class DataFrame:\n    def f(self):\n        return self._jdf\n", True),
        ("class Other:\n    def __init__(self, jdf):\n        self._jdf = jdf\n", True),
    ],
)
def test_a_class_has_the_attributes_that_its_methods_assign(tmp_path: Path, text: str, lacks: bool) -> None:
    (tmp_path / "sql" / "classic").mkdir(parents=True)
    (tmp_path / "sql" / "classic" / "dataframe.py").write_text(text)
    assert ("DataFrame._jdf" in map(str, missing_attributes(tmp_path))) is lacks
