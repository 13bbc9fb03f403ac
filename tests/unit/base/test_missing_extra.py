"""Names that need PySpark, in a process that does not have it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
sys.modules["pyspark"] = None
import tahoe
assert tahoe.Table
try:
    tahoe.{name}
except ImportError as error:
    assert isinstance(error, tahoe.Unsupported) and error.code == "TAHOE_LIBRARY_MISSING", error
    print(error)
"""


@pytest.mark.parametrize("name", ["DeltaTable", "enable", "configure_spark_with_delta_pip"])
def test_the_error_names_the_extra(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(name=name)], capture_output=True, text=True, check=True)
    assert f"tahoe.{name} needs PySpark" in done.stdout and "[spark]'" in done.stdout
