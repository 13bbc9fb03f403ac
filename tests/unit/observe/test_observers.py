"""The observers of a process that works with tables."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import sys
import pyarrow as pa
import tahoe
table = tahoe.Table(sys.argv[1])
table.append(pa.table({"id": [1, 2]}))
table.delete("id = 1")
from tahoe.base.events import _observers
print([type(observer).__name__ for observer in _observers])
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "openlineage", "requests")))
print("tahoe.observe.lineage_queue" in sys.modules)
"""


def test_observers_are_added_once_and_import_nothing_while_they_are_off(tmp_path) -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path / "t")], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['LogRecords', 'Spans', 'Lineage']", "[]", "False"]
