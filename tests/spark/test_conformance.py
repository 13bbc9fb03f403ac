"""Cases after delta-spark's Scala suites give delta-spark's results, except for those in differences.toml, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import Case, load_cases, load_differences, sample
from tests.conformance.engines import failure_of, runs_on_this_pyspark

# A case compares rows and errors; a warning is neither.
pytestmark = pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")

ONE_IN = 75
"""One case in this number is in the sample of `make test`."""

_CASES = load_cases()
_DIFFERENCES = load_differences()


@pytest.mark.every_case
@pytest.mark.parametrize("case", sample(_CASES, ONE_IN), ids=lambda case: case.id)
def test_a_case_of_the_sample(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    _check(spark, tmp_path, case)


@pytest.mark.soak
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
def test_a_case(spark: SparkSession, tmp_path: Path, case: Case) -> None:
    _check(spark, tmp_path, case)


def _check(spark: SparkSession, folder: Path, case: Case) -> None:
    """The case has delta-spark's outcome; a listed difference has the listed outcome, or, while it is pending, any other."""
    if not runs_on_this_pyspark(case):
        pytest.skip(f"needs PySpark {'.'.join(map(str, case.pyspark))}")
    difference = _DIFFERENCES.get(case.id)
    if difference is None:
        failure = failure_of(spark, case, case.expected, folder / "case")
        assert failure is None, failure
    elif difference.pending:
        assert failure_of(spark, case, case.expected, folder / "case"), "it passes: remove the pending entry in differences.toml"
    else:
        failure = failure_of(spark, case, difference.expected, folder / "case")
        assert failure is None, f"{failure}\ndifferences.toml: {difference.reason}"
        assert failure_of(spark, case, case.expected, folder / "case"), (
            "it does as delta-spark: remove the entry in differences.toml"
        )
