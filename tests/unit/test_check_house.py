"""The house's own rule of tests: a module without a test of its name is found, and so is a line that excuses nothing."""

from __future__ import annotations

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


PATHS = [
    Path(f"tahoe/{name}.py") for name in ("room/tested", "room/bare", "room/__init__", "spark/scan/of_spark", "cli/__main__")
]


def test_a_module_without_its_test_is_told_with_the_tests_name(house) -> None:
    assert [fault.split(":")[0] for fault in house._tests(PATHS, {})] == [
        "tahoe/room/bare.py has no tests/unit/room/test_bare.py"
    ]


def test_a_listed_module_is_excused_by_a_test_that_is_there(house) -> None:
    assert list(house._tests(PATHS, {"why": {"room/bare": "tests/model/test_all.py"}})) == []
    (fault,) = house._tests(PATHS, {"why": {"room/bare": "tests/model/test_none.py"}})
    assert "names tests/model/test_none.py for tahoe/room/bare.py, which is not there" in fault


def test_a_line_that_excuses_nothing_is_a_fault(house) -> None:
    there = "tests/model/test_all.py"
    elsewhere = {"one": {"room/bare": there, "room/tested": there, "room/gone": there}, "two": {"room/bare": there}}
    faults = " | ".join(house._tests(PATHS, elsewhere))
    assert "tahoe/room/tested.py has tests/unit/room/test_tested.py: it needs no line" in faults
    assert "lists tahoe/room/gone.py, which is not there" in faults and "tahoe/room/bare.py is listed twice" in faults


def test_the_rule_holds_of_this_repository(house, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert list(house._tests(sorted(Path("tahoe").rglob("*.py")), house.TESTED_ELSEWHERE)) == []
