"""The verifier accepts UniForm's output, and detects differences from the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyroaring import BitMap64

from tahoe.store.object_store import open_store
from tahoe.testing.iceberg_verifier import dead_positions, live_entries, named_files, newest_document, verify
from tahoe.testing.uniform_log import V3, DeltaLog


@pytest.fixture
def log() -> DeltaLog:
    log = DeltaLog(configuration=V3)
    log.change(adds=["a/1", "a/2", "b/1"])
    log.mark({"a/1": (None, BitMap64([3, 5]))})
    log.convert()
    return log


def test_the_converted_files_and_rows_are_verified(log: DeltaLog) -> None:
    assert verify(log.store) == log.version
    document = newest_document(log.store)
    assert document is not None
    snapshot = document["snapshots"][-1]
    url = log.store.url
    assert set(live_entries(log.store, snapshot)) == {f"{url}/a/1", f"{url}/a/2", f"{url}/b/1"}
    assert dead_positions(log.store, snapshot) == {f"{url}/a/1": {3, 5}}
    there = {entry.name.removeprefix("metadata/") for entry in log.store.walk("metadata")}
    named = named_files(log.store)
    assert named <= there and any(name.endswith(".puffin") for name in named)


def test_a_table_that_was_never_converted_has_no_document() -> None:
    assert newest_document(open_store("memory://verifier/none")) is None


def change(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update({key: value})


def summary(key: str, value: str) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["snapshots"][-1]["summary"].update({key: value})


@pytest.mark.parametrize(
    "lie",
    [
        change("location", "memory://another/table"),
        change("last-sequence-number", 99),
        change("next-row-id", 1),
        change("current-snapshot-id", 7),
        summary("total-records", "1"),
        summary("total-position-deletes", "0"),
        summary("delta-version", "1"),
        lambda document: document["properties"].update({"delta-version": "0"}),
        lambda document: document["metadata-log"].append({"metadata-file": f"{document['location']}/metadata/none.json"}),
    ],
)
def test_a_document_that_differs_from_the_log_is_detected(log: DeltaLog, lie: Callable[[dict[str, Any]], None]) -> None:
    document = newest_document(log.store)
    assert document is not None
    lie(document)
    hint = int(log.store.get("metadata/version-hint.text"))
    log.store.put(f"metadata/v{hint}.metadata.json", json.dumps(document).encode())
    with pytest.raises(AssertionError):
        verify(log.store)
