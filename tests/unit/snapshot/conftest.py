"""A table in four parts, and reading it as large tables are read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.snapshot import scan


@pytest.fixture
def table(tmp_path):
    made = Table.create(
        tmp_path / "t", pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.int32())]), partition_by=["p"]
    )
    for part in range(4):
        made.append(pa.table({"id": range(part * 10, part * 10 + 10), "v": [f"v{i}" for i in range(10)], "p": [part] * 10}))
    return made


@pytest.fixture
def with_threads(monkeypatch):
    """Small tables are read as large ones are."""
    monkeypatch.setattr(scan, "_BYTES_WORTH_THREADS", 0)
    monkeypatch.setattr(scan, "_THREADS", 3)
