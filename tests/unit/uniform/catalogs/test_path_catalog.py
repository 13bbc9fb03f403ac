"""The hint of readers that go by path."""

from __future__ import annotations

from pathlib import Path

import pytest

from tahoe.store.object_store import open_store
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.path_catalog import PathCatalog


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    found = DeltaLog(open_store(tmp_path / "a table"))
    found.change(["a1", "b1"])
    return found


def test_an_empty_hint_is_written_anew(log):
    log.store.put("metadata/version-hint.text", b"")
    log.convert()
    assert PathCatalog(log.store).load() == f"{log.store.url}/metadata/v1.metadata.json"
