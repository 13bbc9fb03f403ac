"""The runner of delta-spark's own tests (`scripts/delta_spark_tests.py`), on a clone that is made here, without a session."""

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
    def test_ours_holds(self):
        assert DeltaTable.__module__ == "tahoe.tables" and DeltaTestCase.conf()

    def test_ours_fails(self):
        raise ValueError("as told")
"""


def test_outcomes_that_the_list_does_not_say_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "python" / "delta" / "tests"
    folder.mkdir(parents=True)
    (folder / "test_sql.py").write_text(TESTS)
    program = [sys.executable, str(ROOT / "scripts/delta_spark_tests.py"), "--checkout", str(tmp_path), "--only", "test_ours"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(program, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.endswith(
        "1 of 2 passed; left for a reason: 0; other than the list says: 1\ntest_sql.test_ours_fails: ValueError: as told\n"
    ), done.stdout + done.stderr
