"""Whether the list of private attributes is that of the code; tests/spark/test_private_members.py compares it with each PySpark."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import tahoe
from tahoe.spark.versions.private_attributes import USED, missing_attributes

OF_OTHERS = {"_getframe", "_fqn", "_gateway", "_gateway_client", "_jvm_id", "_withSchemaEvolution"}
"""Private names of Python and Py4J, and of a method in the JVM."""


def test_each_private_attribute_that_the_code_uses_is_listed() -> None:
    texts = [path.read_text() for path in Path(*tahoe.__path__).rglob("*.py")]
    trees = [ast.parse(text) for text in texts]
    own = {name for tree in trees for name in _defined(tree)}
    used = {
        node.attr
        for path in Path(*tahoe.__path__, "spark").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and re.match("_[a-z]", node.attr)
    }
    assert used - own - OF_OTHERS <= {attribute.name for attribute in USED}
    assert {attribute.name for attribute in USED} <= used


def _defined(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            found |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return found


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("class DataFrame:\n    def __init__(self, jdf):\n        self._jdf: object = jdf\n", False),
        ("class DataFrame:\n    def _jdf(self):\n        return None\n", False),
        ("class DataFrame:\n    def f(self):\n        return self._jdf\n", True),
        ("class Other:\n    def __init__(self, jdf):\n        self._jdf = jdf\n", True),
    ],
)
def test_a_class_has_what_its_methods_assign_and_define(tmp_path: Path, text: str, lacks: bool) -> None:
    (tmp_path / "sql" / "classic").mkdir(parents=True)
    (tmp_path / "sql" / "classic" / "dataframe.py").write_text(text)
    assert ("DataFrame._jdf" in map(str, missing_attributes(tmp_path))) is lacks
