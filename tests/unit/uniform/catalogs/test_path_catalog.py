"""The version hint for readers by path."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from tahoe.store.object_store import open_store
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.catalogs.catalog import advance
from tahoe.uniform.catalogs.path_catalog import HINT, PathCatalog


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    log = DeltaLog(open_store(tmp_path / "a table"))
    log.change(["a1", "b1"])
    return log


def test_an_empty_hint_is_replaced(log):
    log.store.put("metadata/version-hint.text", b"")
    log.convert()
    assert PathCatalog(log.store).load() == f"{log.store.url}/metadata/v1.metadata.json"


def test_a_conversion_that_writes_the_hint_late_does_not_move_it_back(log, monkeypatch):
    put, late, newer_is_done = log.store.put, Event(), Event()

    def delayed(path: str, data: bytes) -> None:
        if path == HINT and data == b"1":
            late.set()
            newer_is_done.wait(0.3)
        put(path, data)

    monkeypatch.setattr(log.store, "put", delayed)
    older = Thread(target=advance, args=(PathCatalog(log.store), f"{log.store.url}/metadata/v1.metadata.json", log.store.url))
    older.start()
    assert late.wait(10)
    advance(PathCatalog(log.store), f"{log.store.url}/metadata/v2.metadata.json", log.store.url)
    newer_is_done.set()
    older.join()
    assert log.store.get(HINT) == b"2"
