"""`scripts/check_house.py` reports modules without a test of their name, and stale entries of its list."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import check_house

    monkeypatch.chdir(tmp_path)
    for name in ("tests/unit/room/test_tested.py", "tests/model/test_all.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    yield check_house
    sys.modules.pop("check_house", None)
    sys.modules.pop("tested_elsewhere", None)
    sys.modules.pop("code_metrics", None)


PATHS = [
    Path(f"tahoe/{name}.py") for name in ("room/tested", "room/bare", "room/__init__", "spark/scan/of_spark", "cli/__main__")
]


def test_a_module_without_its_test_is_reported_with_the_name_of_the_test(house) -> None:
    assert [violation.split(":")[0] for violation in house._tests(PATHS, {})] == [
        "tahoe/room/bare.py has no tests/unit/room/test_bare.py"
    ]


def test_a_listed_module_passes_if_the_listed_test_exists(house) -> None:
    assert list(house._tests(PATHS, {"why": {"room/bare": "tests/model/test_all.py"}})) == []
    (violation,) = house._tests(PATHS, {"why": {"room/bare": "tests/model/test_none.py"}})
    assert "names tests/model/test_none.py for tahoe/room/bare.py, which does not exist" in violation


def test_a_stale_entry_is_reported(house) -> None:
    existing = "tests/model/test_all.py"
    elsewhere = {"one": {"room/bare": existing, "room/tested": existing, "room/gone": existing}, "two": {"room/bare": existing}}
    violations = " | ".join(house._tests(PATHS, elsewhere))
    assert "tahoe/room/tested.py has tests/unit/room/test_tested.py: delete its line" in violations
    assert "lists tahoe/room/gone.py, which does not exist" in violations and "tahoe/room/bare.py is listed twice" in violations


def test_a_frequent_word_is_reported_with_its_folder(house) -> None:
    frequent = ["What is told anew. " * 20]
    assert [violation.partition(" in ")[0] for violation in house._words({"tahoe/room": frequent})] == [
        "tahoe/room: 20 times 'what'",
        "tahoe/room: 20 times 'told'",
        "tahoe/room: 20 times 'anew'",
    ]
    assert list(house._words({"documents": ["State the result."] * 20})) == []


def test_this_repository_has_no_violation(house, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert list(house._tests(sorted(Path("tahoe").rglob("*.py")), house.TESTED_ELSEWHERE)) == []


def test_a_described_parameter_that_does_not_exist_is_reported(house) -> None:
    code = '''
class Box:
    """A box.

    Args:
        width: in metres.
        depth: gone.
    """

    width: int

    def fill(self, items, *more):
        """Fill it.

        Args:
            items, more: the contents.
            color: gone, too.
        """

class Crate(Box):
    """A box of wood.

    Args:
        width: inherited.
    """
'''
    assert list(house._described_parameters(Path("tahoe/room/box.py"), ast.parse(code))) == [
        "tahoe/room/box.py:2: the docstring of Box describes 'depth', which does not exist",
        "tahoe/room/box.py:12: the docstring of fill describes 'color', which does not exist",
    ]
