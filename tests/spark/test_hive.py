"""A Hive metastore: processes find tables that other processes created by name. A real Derby and real processes, so it is one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("hive_life.py")
MANAGED = {"type": "MANAGED", "provider": "delta", "columns": 0, "partitions": 0}
EXTERNAL = {**MANAGED, "type": "EXTERNAL"}


def reported_by(step: str, folder: Path) -> dict:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), step, str(folder)], capture_output=True, text=True, env=environment, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[-1].removeprefix("TOLD "))


@pytest.mark.own_jvm
@pytest.mark.long
def test_tables_are_found_by_name_in_another_process_with_the_same_metastore(tmp_path):
    made = reported_by("write", tmp_path)
    assert made == {"warehouse": ["built", "like", "managed", "other", "renamed"], "kept": True}
    actual = reported_by("read", tmp_path)
    assert actual["tables"] == ["adopted", "built", "external", "like", "managed", "other", "renamed", "seen"]
    four = [[0], [1], [2], [3]]
    assert actual["rows"] == {
        "managed": [[1, "a"], [2, "b"], [3, "c"]],
        "external": four,
        "adopted": four,
        "renamed": [*four, [4]],
        "built": [],
        "like": [],
        "seen": [[2, "b"], [3, "c"]],
    }
    assert actual["entries"] == {
        **{name: {**MANAGED, "location": name} for name in ("managed", "renamed", "built", "like")},
        **{name: {**EXTERNAL, "location": "at a place"} for name in ("external", "adopted")},
    }
    assert actual["columns"] == {
        **{name: ["id", "day"] for name in ("managed", "like", "seen")},
        **{name: ["id"] for name in ("external", "adopted", "renamed")},
        "built": ["x"],
    }
    assert actual["history"] == ["CREATE OR REPLACE TABLE AS SELECT", "CREATE TABLE AS SELECT"]
