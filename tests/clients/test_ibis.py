"""ibis with its PySpark backend, which creates, fills and replaces tables by name, and reads and writes them by path."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import ENABLED, needs, result

pytestmark = pytest.mark.clients


def test_tables_are_created_changed_replaced_and_exported(tmp_path: Path) -> None:
    needs("ibis-framework", "pyspark")
    assert result("with_ibis.py", tmp_path, variables=ENABLED) == {
        "by day": [{"day": "a", "total": 1.5}, {"day": "b", "total": 8.0}],
        "format": "delta",
        "partition columns": ["day"],
        "exported": [3, 4],
        "replaced": 3,
        "operations": ["CREATE OR REPLACE TABLE AS SELECT", "DELETE", "WRITE", "CREATE TABLE AS SELECT"],
        "left": [],
    }
