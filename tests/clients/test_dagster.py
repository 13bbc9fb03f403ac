"""Dagster assets with dagster-pyspark's resource, whose settings enable Delta."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import needs, result

pytestmark = pytest.mark.clients


def test_assets_write_and_read_tables(tmp_path: Path) -> None:
    needs("dagster", "dagster-pyspark", "pyspark")
    assert result("with_dagster.py", tmp_path, variables={"DAGSTER_DISABLE_TELEMETRY": "yes"}) == {"totals": [8, 16]}
