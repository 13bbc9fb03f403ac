from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tahoe.cli.shell.startup import import_anything, import_little
import_little()
import pyarrow as pa
assert pa.array([1, None]).null_count == 1
assert not {"numpy", "pandas"} & set(sys.modules)
import_anything()
import numpy, pandas
"""


def test_short_commands_start_without_numpy_and_pandas() -> None:
    assert subprocess.run([sys.executable, "-c", PROGRAM], check=False).returncode == 0
