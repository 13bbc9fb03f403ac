"""The conformance suite itself: its size, the keys of its files, and the tool that records expectations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import cases as suite
from tests.conformance.cases import Case, load_cases, load_differences, parse_cases

LEAST_CASES = 1650
LEAST_SUITES = 140
MOST_DIFFERENCES = 12


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases()


def test_there_are_enough_cases_of_enough_suites(cases: list[Case]) -> None:
    assert len(cases) >= LEAST_CASES
    assert len({case.suite for case in cases}) >= LEAST_SUITES


def test_each_case_has_an_expectation(cases: list[Case]) -> None:
    assert [case.id for case in cases if case.expected.rows is None and case.expected.error is None] == []


def test_differences_are_few_and_of_cases_that_exist(cases: list[Case]) -> None:
    differences = load_differences()
    assert differences.keys() - {case.id for case in cases} == set()
    of_behavior = {entry.reason for entry in differences.values() if not entry.pending and _differs_in_behavior(entry, cases)}
    assert len(of_behavior) <= MOST_DIFFERENCES, sorted(of_behavior)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[case]]\nname = 'a'\nquery = 'SELECT 1'", "a name and a suite"),
        ("suite = 'S'\nowner = 'me'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'", "unknown keys"),
        ("suite = 'S'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'\nrow = ''", "unknown keys"),
        ("suite = 'S'\n[[case]]\nname = 'a'\nsetup = []", "a step under test"),
        ("suite = 'S'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'\nsettings = { a = true }", "are strings"),
        ("suite = 'S'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'\npyspark = '4.2'", "runs on PySpark 4.1"),
        ("suite = 'S'\n" + "[[case]]\nname = 'a'\nquery = 'SELECT 1'\n" * 2, "names of several cases"),
        ("suite = 'S'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'\n" + "\n" * 600, "lines"),
    ],
)
def test_a_file_that_breaks_the_format_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        parse_cases(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pending = true\nrows = ''", "a pending entry"),
        ("rows = ''", "and the reason"),
        ("reason = 'why'", "what Tahoe does"),
        ("pending = true\n[[difference]]\nfile = 'f'\nname = 'n'\npending = true", "two entries"),
        ("pending = true\nsince = 'today'", "unknown keys"),
    ],
)
def test_an_incomplete_difference_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    path = tmp_path / "differences.toml"
    path.write_text(f"[[difference]]\nfile = 'f'\nname = 'n'\n{text}")
    monkeypatch.setattr(suite, "DIFFERENCES", path)
    with pytest.raises(ValueError, match=message):
        load_differences()


def test_rows_are_compared_without_order_and_without_the_line_ends_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.toml"
    path.write_text("suite = 'S'\n[[case]]\nname = 'a'\nquery = 'SELECT 1'\nrows = \"\"\"\n2 | b\n1 | a\n\"\"\"\n")
    (case,) = parse_cases(path)
    assert case.expected.rows == ("1 | a", "2 | b")


def _differs_in_behavior(difference: suite.Difference, cases: list[Case]) -> bool:
    """Whether delta-spark accepts the case, or raises an error like Tahoe and leaves other rows.

    Two errors with different names are a difference of wording. A case that delta-spark rejects and Tahoe carries out is an extension.
    """
    (case,) = [case for case in cases if case.id == difference.id]
    return case.expected.error is None or bool(difference.expected.error and case.expected.rows != difference.expected.rows)
