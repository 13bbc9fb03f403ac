"""Which cases `make test` runs of a test with many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_TESTS = """
import pytest

@pytest.mark.parametrize("number", range(10))
def test_many(number): pass

@pytest.mark.every_case
@pytest.mark.parametrize("number", range(10))
def test_every(number): pass

@pytest.mark.parametrize("number", range(3))
def test_few(number): pass

def test_one(): pass
"""


def counts(folder: Path, mark: str, **variables: str) -> str:
    """The summary of pytest, with the repository's configuration."""
    (folder / "test_numbers.py").write_text(_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    command += ["--confcutdir", str(folder), "-p", "tests.conftest", "-m", mark, str(folder)]
    outcome = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"PATH": "", **variables}, check=False)
    return outcome.stdout.splitlines()[-1].rpartition(" in ")[0]


@pytest.mark.parametrize(
    ("mark", "seed", "expected"),
    [
        ("not soak", "0", "17 passed, 7 deselected"),
        ("soak", "0", "7 passed, 17 deselected"),
        ("not soak", "3", "16 passed, 8 deselected"),
    ],
)
def test_a_sample_and_the_rest_are_all_cases(tmp_path: Path, mark: str, seed: str, expected: str) -> None:
    assert counts(tmp_path, mark, TAHOE_SAMPLE_CASES="1", TAHOE_SAMPLE_SEED=seed) == expected


def test_pytest_itself_runs_all_cases(tmp_path: Path) -> None:
    assert counts(tmp_path, "not soak") == "24 passed"
