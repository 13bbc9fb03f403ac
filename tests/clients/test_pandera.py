"""pandera's models for PySpark over DataFrames of Delta tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import ENABLED, needs, result

pytestmark = pytest.mark.clients


def test_a_model_validates_the_rows_and_columns_of_a_version(tmp_path: Path) -> None:
    needs("pandera", "pyspark")
    assert result("with_pandera.py", tmp_path, variables=ENABLED) == {
        "newest": {"DATA": ["greater_than_or_equal_to(0)"]},
        "version 0": {},
        "misspelled": {"SCHEMA": ["column_in_dataframe"]},
    }
