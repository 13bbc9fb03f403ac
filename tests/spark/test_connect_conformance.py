"""The conformance cases over Spark Connect: the outcome of a classic session, except for those in connect_differences.toml."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.cases import Case, load_cases, load_differences, sample
from tests.conformance.connect import kind_of, load_connect_differences
from tests.conformance.engines import failure_of, runs_on_this_pyspark
from tests.spark.connect_server import remote, server_session

# A case compares rows and errors; a warning is neither.
pytestmark = pytest.mark.filterwarnings("ignore::tahoe.exceptions.TahoeWarning")

ONE_IN = 150
"""One case in this number is in the sample of `make test`."""

_CASES = load_cases()
_DIFFERENCES = load_differences()
_ON_CONNECT = load_connect_differences()


def test_each_difference_is_of_a_case() -> None:
    assert _ON_CONNECT.keys() <= {case.id for case in _CASES}


@pytest.mark.every_case
@pytest.mark.parametrize("case", sample(_CASES, ONE_IN), ids=lambda case: case.id)
@pytest.mark.usefixtures("spark")
def test_a_case_of_the_sample(connect: Any, tmp_path: Path, case: Case) -> None:
    _check(connect, tmp_path, case)


@pytest.fixture(scope="module")
def connect_for_all(tmp_path_factory: pytest.TempPathFactory, java_options: str) -> Iterator[Any]:
    """A session of a server with memory for the queries of all streams, which Spark keeps for an hour (`test_connect_memory.py`)."""
    with server_session(tmp_path_factory.mktemp("server"), java_options, "8g") as session:
        yield session


@pytest.mark.soak
@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.id)
@pytest.mark.usefixtures("spark")
def test_a_case(connect_for_all: Any, tmp_path: Path, case: Case) -> None:
    _check(connect_for_all, tmp_path, case)


def _check(connect: Any, folder: Path, case: Case) -> None:
    if not runs_on_this_pyspark(case):
        pytest.skip(f"needs PySpark {'.'.join(map(str, case.pyspark))}")
    classic = _DIFFERENCES.get(case.id)
    expected = case.expected if classic is None or classic.pending else classic.expected
    with remote():
        failure = failure_of(connect, case, expected, folder / "case")
    listed = _ON_CONNECT.get(case.id)
    if listed is None:
        assert failure is None, failure
    else:
        assert failure, "it does as a classic session: remove it from connect_differences.toml"
        assert kind_of(failure) == listed.kind, failure
