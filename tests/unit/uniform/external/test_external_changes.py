"""Traces of another writer, each detected by the state it contradicts."""

from __future__ import annotations

import json

import pytest

from tahoe.testing.iceberg_verifier import newest_document
from tahoe.testing.uniform_log import DeltaLog
from tahoe.uniform.external.conversion_record import ConversionRecord, read_record
from tahoe.uniform.external.external_changes import Finding, external_writer_error, find_external_changes
from tahoe.uniform.external.metadata_listing import list_metadata


@pytest.fixture
def log() -> DeltaLog:
    log = DeltaLog()
    log.change(["a1"])
    log.convert()
    log.change(["a2"])
    log.convert()
    return log


def kinds(log: DeltaLog, answers: dict[str, str | None] | None = None, record: ConversionRecord | None = None) -> list[str]:
    record = record or read_record(log.store)
    return [finding.kind for finding in find_external_changes(log.store, list_metadata(log.store), answers or {}, record)]


def test_tahoe_s_own_changes_are_not_reported(log: DeltaLog) -> None:
    assert kinds(log, {"c:a.b": f"{log.store.url}/metadata/v1.metadata.json", "new:a.b": None}) == []


def test_a_metadata_file_of_another_name_is_reported_with_its_snapshots(log: DeltaLog) -> None:
    theirs = newest_document(log.store)
    theirs["snapshots"].append(
        {"snapshot-id": 5, "summary": {"operation": "append", "added-records": "3", "engine-name": "other"}, "manifest-list": "x"}
    )
    log.store.put("metadata/00003-abc.metadata.json", json.dumps(theirs).encode())
    (finding,) = find_external_changes(log.store, list_metadata(log.store), {}, read_record(log.store))
    assert finding.kind == "metadata"
    assert "snapshot 5 (append by other: 3 rows added, 0 deleted)" in finding.sentence
    error = external_writer_error(log.store.url, [finding])
    assert (error.code, error.facts["snapshots"], error.facts["rows"]) == ("TAHOE_UNIFORM_FOREIGN_WRITER", [5], 3)
    assert kinds(log, record=ConversionRecord(2, {}, frozenset({finding.location}))) == [], (
        "repaired metadata is not reported any more"
    )


def test_missing_metadata_a_wrong_hint_and_moved_pointers_are_reported(log: DeltaLog) -> None:
    assert kinds(log, record=ConversionRecord(9)) == ["missing"]
    log.store.put("metadata/version-hint.text", b"17")
    assert kinds(log) == ["hint"]
    log.store.put("metadata/version-hint.text", b"")
    assert kinds(log) == []
    assert kinds(log, {"c:a.b": "file:///elsewhere/metadata/v1.metadata.json"}) == ["catalog"]
    assert kinds(log, {"c:a.b": None}, ConversionRecord(2, {"c:a.b": "x"})) == ["catalog"], "the entry was dropped"


def test_a_finding_is_a_value() -> None:
    assert Finding("hint", "l", "s") == Finding("hint", "l", "s", ())
