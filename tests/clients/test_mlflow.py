"""MLflow's datasets: the version of a Delta table is recorded with a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import ENABLED, needs, result

pytestmark = pytest.mark.clients


def test_a_run_records_the_versions_of_its_tables(tmp_path: Path) -> None:
    needs("mlflow", "pyspark")
    assert result("with_mlflow.py", tmp_path, variables=ENABLED) == {
        "path": {"version": 1, "type": "delta_table", "rows": 7},
        "name": {"version": 2, "type": "delta_table", "rows": 1},
        "version": {"version": "0", "type": "delta_table", "rows": 5},
        "frame": {"version": 1, "type": "delta_table", "rows": 7},
    }
