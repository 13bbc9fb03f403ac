"""dlt's filesystem destination with Delta tables, which Spark changes between dlt's loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import ENABLED, needs, result

pytestmark = pytest.mark.clients


def test_dlt_and_spark_write_one_table_in_turns(tmp_path: Path) -> None:
    needs("dlt", "deltalake", "pyspark")
    rows = [[1, 10], [2, 22], [4, 40]]
    actual = result("with_dlt.py", tmp_path, variables={**ENABLED, "RUNTIME__DLTHUB_TELEMETRY": "false"})
    assert actual.pop("operations")[1:3] == ["UPDATE", "DELETE"]
    assert actual == {"dlt": rows, "spark": rows, "evolved": [[9, "new"]], "replaced": [5]}
