"""Great Expectations over Spark: a folder of a Delta table as an asset, and DataFrames of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import needs, result

pytestmark = pytest.mark.clients


def test_a_table_is_validated_as_a_directory_and_as_a_frame(tmp_path: Path) -> None:
    needs("great-expectations", "pyspark")
    assert result("with_great_expectations.py", tmp_path) == {
        "newest": [True, 5],
        "first": [False, 5],
        "frame": [True, 5],
        "unexpected in version 0": 4,
    }
