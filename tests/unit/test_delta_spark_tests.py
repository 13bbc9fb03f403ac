"""The runner of delta-spark's own tests (`scripts/delta_spark_tests.py`), on a generated clone, without a session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import unittest

from delta.tables import DeltaTable
from delta.testing.utils import DeltaTestCase

class Tests(unittest.TestCase):
    def test_ours_passes(self):
        assert DeltaTable.__module__ == "tahoe.tables" and DeltaTestCase.conf()

    def test_ours_fails(self):
        raise ValueError("on purpose")
"""


def test_outcomes_that_differ_from_the_list_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "python" / "delta" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_sql.py").write_text(TESTS)
    program = [sys.executable, str(ROOT / "scripts/delta_spark_tests.py"), "--checkout", str(tmp_path), "--only", "test_ours"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith(
        "1 of 2 passed; listed exceptions: 0; differences from the list: 1\ntest_sql.test_ours_fails: ValueError: on purpose\n"
    ), done.stdout + done.stderr
