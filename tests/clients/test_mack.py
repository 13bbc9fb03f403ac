"""mack's own tests, which its packages do not contain: `make clients MACK=DIR` takes them from a clone of github.com/MrPowers/mack."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.clients.child import ENABLED, needs, start

pytestmark = pytest.mark.clients

_BYTES = "compares the sizes of Parquet files with those that the PySpark of its lock file, 3.5.0, writes"
EXPECTED_FAILURES = {"test_delta_file_sizes": _BYTES, "test_show_delta_file_sizes": _BYTES}
"""The tests that fail for a reason in mack, with the reason."""


def test_its_tests_pass_except_those_that_fail_because_of_mack(tmp_path: Path) -> None:
    needs("mack", "chispa", "pyspark")
    checkout = os.environ.get("TAHOE_TEST_MACK")
    if not checkout:
        pytest.skip("mack's packages contain no tests: name a clone of github.com/MrPowers/mack with `make clients MACK=DIR`")
    shutil.copytree(Path(checkout) / "tests", tmp_path / "tests")
    outcome = start(
        [sys.executable, "-m", "pytest", "tests", "--junit-xml=outcome.xml", "-p", "no:cacheprovider"],
        tmp_path,
        variables=ENABLED,
    )
    assert (tmp_path / "outcome.xml").exists(), outcome.stdout[-3000:] + outcome.stderr[-3000:]
    cases = list(ElementTree.parse(tmp_path / "outcome.xml").iter("testcase"))
    failed = {
        case.get("name"): first_line(case) for case in cases if case.find("failure") is not None or case.find("error") is not None
    }
    assert failed.keys() == EXPECTED_FAILURES.keys(), failed
    assert len(cases) == 30


def first_line(case: ElementTree.Element) -> str:
    return " ".join(str(part.get("message")) for part in case if part.tag in ("failure", "error"))[:500]
