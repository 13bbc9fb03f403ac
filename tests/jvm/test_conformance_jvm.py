"""delta-spark meets the expectations of the conformance cases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.conformance.cases import Case, load_cases
from tests.conformance.engines import DELTA_SPARK, PYSPARK, failure_of
from tests.jvm.conftest import SETTINGS, SPARING, session_with_jars

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def delta_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of delta-spark's newest release."""
    if not pyspark.__version__.startswith(PYSPARK):
        pytest.skip(f"the cases are validated on PySpark {PYSPARK}x, found {pyspark.__version__}: run `make interop`")
    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse"))}
    yield from session_with_jars("tahoe-conformance", SETTINGS | SPARING | DELTA_SPARK | warehouse)


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.id)
def test_delta_spark_meets_the_expectation(delta_spark: SparkSession, tmp_path: Path, case: Case) -> None:
    failure = failure_of(delta_spark, case, case.expected, tmp_path / "case")
    assert failure is None, failure
