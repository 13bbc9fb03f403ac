"""Which cases `make test` runs of a test with many."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

from tests.conftest import MARKS_OF_CASES

ROOT = Path(__file__).parents[2]
_TESTS = """
import pytest
from tests.sampling import sampled

@pytest.mark.parametrize("number", range(10))
def test_many(number): pass

@pytest.mark.every_case
@pytest.mark.parametrize("number", range(10))
def test_every(number): pass

@pytest.mark.parametrize("number", range(3))
def test_few(number): pass

def test_one(): pass

@pytest.mark.long
def test_long(): pass

@pytest.mark.parametrize("number", sampled(range(20), 2))
def test_a_sample(number): pass

@pytest.mark.spark
def test_one_on_spark(): pass

@pytest.mark.spark
def test_another_on_spark(): pass

@pytest.mark.spark
def test_third_on_spark(): pass

@pytest.mark.spark
@pytest.mark.own_jvm
def test_own_jvm(): pass

@pytest.mark.spark
@pytest.mark.parametrize("number", range(3))
def test_few_on_spark(number): pass

@pytest.mark.spark
@pytest.mark.parametrize("number", range(30))
def test_many_on_spark(number): pass

@pytest.mark.spark
@pytest.mark.parametrize("number", sampled(range(20), 2))
def test_a_sample_on_spark(number): pass
"""


def cases(folder: Path, mark: str, **variables: str) -> set[str]:
    """The names of the cases that pytest selects, with the repository's configuration."""
    (folder / "test_numbers.py").write_text(_TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
    ]
    command += ["--confcutdir", str(folder), "-p", "tests.conftest", "-m", mark, str(folder)]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": "", **variables}, check=True)
    return {line.rpartition("::")[2] for line in outcome.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("seed", ["0", pytest.param("100", marks=pytest.mark.long)])
def test_a_sample_and_the_rest_are_all_cases(tmp_path: Path, seed: str) -> None:
    in_test, in_soak = (cases(tmp_path, mark, TAHOE_SAMPLE_CASES="1", TAHOE_SAMPLE_SEED=seed) for mark in ("not soak", "soak"))
    assert not in_test & in_soak
    assert len(in_test | in_soak) == 10 + 10 + 3 + 1 + 1 + 20 + 4 + 3 + 30 + 20
    tests = {case.partition("[")[0] for case in in_soak | in_test}
    on_spark = {test for test in tests if test.endswith("on_spark")}
    assert tests - {case.partition("[")[0] for case in in_test} == {
        "test_long",
        *on_spark - {"test_one_on_spark", "test_a_sample_on_spark"},
    }


def test_cases_on_spark_and_of_samples_are_fewer(tmp_path: Path) -> None:
    actual = Counter(case.partition("[")[0] for case in cases(tmp_path, "not soak", TAHOE_SAMPLE_CASES="1"))
    assert actual == {
        "test_many": 1,
        "test_every": 10,
        "test_few": 1,
        "test_one": 1,
        "test_a_sample": 5,
        "test_one_on_spark": 1,
        "test_own_jvm": 1,
        "test_a_sample_on_spark": 4,
    }


def test_pytest_itself_runs_all_cases(tmp_path: Path) -> None:
    """And so do `make test-versions` and `make test-versions-sample`."""
    assert len(cases(tmp_path, "not soak")) == 10 + 10 + 3 + 1 + 1 + 10 + 4 + 3 + 30 + 10


OF_OTHER_COMMANDS = {"jvm", "readers", "clients"}
"""Marks of cases that other commands run, with the environment that these need."""


def marks_of_commands() -> Iterator[str]:
    """The expressions that select the cases of `make test` with and without Spark, and those of `make soak`."""
    processes = re.findall(r'(--ignore=)?tests/unit -m "(.+?)" "\$@"', (ROOT / "scripts/run_tests.sh").read_text())
    in_unit = {marks for is_ignored, marks in processes if not is_ignored}
    elsewhere = [marks for is_ignored, marks in processes if is_ignored]
    assert in_unit < set(elsewhere)  # the tests without Spark, by folders; those on Spark are in no folder of unit tests
    yield from elsewhere
    yield from re.findall(r"PYTEST\) -m (soak)$", (ROOT / "Makefile").read_text(), re.MULTILINE)


def selects(command: Expression, marks: frozenset[str]) -> bool:
    """Whether the command's expression selects a case with these marks."""
    return command.evaluate(lambda name, **_: name in marks)


def test_each_case_runs_in_one_process_of_make_test_or_in_make_soak(request: pytest.FixtureRequest) -> None:
    """Of all cases that this run of pytest collected: `make test` collects those of unit tests here, pytest without arguments all."""
    commands = [Expression.compile(marks) for marks in marks_of_commands()]
    assert len(commands) == 3
    actual = request.config.stash[MARKS_OF_CASES]
    runs = {case: sum(selects(command, marks) for command in commands) for case, marks in actual.items()}
    of_others = {case for case, marks in actual.items() if marks & OF_OTHER_COMMANDS and "soak" not in marks}
    assert {case: count for case, count in runs.items() if count != (case not in of_others)} == {}
