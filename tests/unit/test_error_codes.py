"""Every error has a code that describes the problem, and a code in delta-spark's style is one of delta-spark's.

`error_classes.txt` has the names of delta-spark's error classes, and of their subclasses behind a point (delta-io/delta,
`delta-error-classes.json`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tahoe import exceptions
from tahoe.base import error_classes

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "tahoe").rglob("*.py"))
REFERENCE = frozenset((Path(__file__).parent / "error_classes.txt").read_text().split())

# Defaults that name no fault; `TAHOE_STORAGE_FAILURE` does: storage failed, and one tries again.
SAY_NOTHING = {"TAHOE_ERROR", "TAHOE_INVALID_REQUEST", "TAHOE_CORRUPT_TABLE", "TAHOE_UNSUPPORTED"}
UNSPECIFIC = {name for name in exceptions.__all__ if getattr(getattr(exceptions, name), "default_code", "") in SAY_NOTHING}
_IS_CLASS = re.compile(r"[A-Z0-9]+(_[A-Z0-9]+)+(\.[A-Z0-9_]+)?")
_CODE = re.compile(r"(DELTA|TAHOE)_[A-Z0-9_]+(\.[A-Z0-9_]+)?")


def codes() -> Iterator[tuple[str, str]]:
    """Each code that the package spells, with where."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CODE.fullmatch(node.value):
                yield node.value, f"{path.relative_to(ROOT)}:{node.lineno}"


def without_code(path: Path) -> Iterator[str]:
    """The errors that a module makes without saying which."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if name in UNSPECIFIC and all(keyword.arg not in ("code", None) for keyword in node.keywords):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_the_reference_has_every_code_that_begins_as_its_own_do() -> None:
    def is_known(code: str) -> bool:
        # A text with this ending is the beginning of a code, whose rest is appended.
        return any(name.startswith(code) for name in REFERENCE) if code.endswith("_") else code in REFERENCE

    assert {code: where for code, where in codes() if code.startswith("DELTA_") and not is_known(code)} == {}


def test_the_list_of_the_reference_is_whole() -> None:
    assert len(REFERENCE) > 500 and {"DELTA_TABLE_NOT_FOUND", "DELTA_CONCURRENT_APPEND"} <= REFERENCE


def test_an_error_names_its_code_where_its_class_says_too_little() -> None:
    assert [place for path in MODULES for place in without_code(path)] == []


def test_every_class_of_the_reference_has_a_sql_state_and_an_exception_of_pyspark() -> None:
    for code in REFERENCE:
        if code.startswith("DELTA_"):
            assert re.fullmatch(r"[0-9A-Z]{5}", error_classes.sql_state(code) or ""), code
            assert error_classes.pyspark_exception(code) is not None, code


def test_every_code_that_the_package_gives_an_error_has_a_sql_state_of_the_reference_or_of_its_class() -> None:
    assert {code for code in spark_codes() if error_classes.sql_state(code) is None} == set()


def test_every_class_that_an_error_changes_to_has_a_sql_state() -> None:
    tree = ast.parse((ROOT / "tahoe/spark/names/error_names.py").read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    named = {text for text in texts if _IS_CLASS.fullmatch(str(text))} - {"CREATIONS_BY_NAME"}
    assert {"PATH_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "COLUMN_ALREADY_EXISTS"} <= named
    assert {name for name in named if not name.startswith("TAHOE_") and error_classes.sql_state(name) is None} == set()


def spark_codes() -> Iterator[str]:
    """Codes given to errors that are neither the reference's nor Tahoe's own."""
    for path in MODULES:
        for line in re.finditer(r"\b(?:default_)?code ?= ?(\".*)", path.read_text()):
            for code in re.findall(r'"([A-Z][A-Z_.]+)"', line[1]):  # two, where one is chosen
                if not code.startswith(("DELTA_", "TAHOE_")):
                    yield code
