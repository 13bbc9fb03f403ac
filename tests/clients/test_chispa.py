"""chispa, which compares DataFrames in the tests of data pipelines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.child import needs, result

pytestmark = pytest.mark.clients


def test_frames_of_a_table_are_compared(tmp_path: Path) -> None:
    needs("chispa", "pyspark")
    assert result("with_chispa.py", tmp_path) == {"difference is reported": True}
