"""Conversions of whole tables: the Iceberg metadata in storage matches the Delta log."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from tahoe.base.exceptions import ForeignWriter
from tahoe.log.checksum_writer import checksum_of, write_checksum
from tahoe.log.files.commits import read_commit
from tahoe.log.files.paths import commit_name
from tahoe.protocol.actions import SetTransaction
from tahoe.testing.faulty_store import TracingStore
from tahoe.testing.iceberg_verifier import live_entries, newest_document, verify
from tahoe.testing.uniform_log import UNIFORM, DeltaLog
from tahoe.uniform.convert import converter
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.external.conversion_record import NAME


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


def test_the_first_conversion_shows_every_live_file(log):
    log.change(["a1", "a2", "b1"])
    log.change(["c1"], ["a1"])
    result = log.convert()
    assert (result.kind, result.version, result.snapshots, result.files_added) == ("full", 2, 1, 3)
    assert result.metadata_location == f"{log.store.url}/metadata/v2.metadata.json"
    assert verify(log.store) == 2


def test_commits_since_become_one_snapshot(log):
    log.change(["a1"])
    log.convert()
    log.change(["b1", "b2"])
    log.change(["c1"], ["b1", "a1"])
    log.change([], [])
    result = log.convert()
    assert (result.kind, result.snapshots, result.files_added, result.files_removed) == ("incremental", 1, 2, 1)
    assert verify(log.store) == 4
    assert newest_document(log.store)["snapshots"][-1]["summary"]["operation"] == "overwrite"


def test_each_commit_becomes_a_snapshot_if_configured():
    log = DeltaLog(configuration={"delta.universalformat.config.iceberg.snapshot-per-commit": "true"})
    log.convert()
    log.change(["a1"])
    log.change(["b1"], ["a1"], data_change=False)
    log.commit(SetTransaction("app", 1))
    log.change([], ["b1"])
    assert log.convert().snapshots == 3
    verify(log.store)
    operations = [(s["summary"]["delta-version"], s["summary"]["operation"]) for s in newest_document(log.store)["snapshots"]]
    assert operations == [("0", "append"), ("1", "append"), ("2", "replace"), ("4", "delete")]


def test_a_commit_without_files_moves_the_version_without_a_snapshot(log):
    log.change(["a1"])
    log.convert()
    log.commit(SetTransaction("app", 1))
    assert log.convert().snapshots == 0
    document = newest_document(log.store)
    assert (document["properties"]["delta-version"], len(document["snapshots"])) == ("2", 1)


def test_a_version_converted_before_is_left_as_it_is(log):
    log.change(["a1"])
    log.convert()
    before = {entry.name: log.store.get(entry.name) for entry in log.store.walk("metadata")}
    assert log.convert().kind == "none"
    assert log.convert(version=0).kind == "none", "an older target changes nothing"
    assert {entry.name: log.store.get(entry.name) for entry in log.store.walk("metadata")} == before


def test_two_processes_write_the_same_bytes(log):
    log.change(["a1", "b1"])
    log.convert()
    log.change(["c1"], ["a1"])
    log.convert()
    first = {
        entry.name: log.store.get(entry.name)
        for entry in log.store.walk("metadata")
        if "v2" in entry.name or "avro" in entry.name
    }
    for name in ("metadata/v2.metadata.json", "metadata/version-hint.text", NAME):
        log.store.delete(name)
    log.convert()
    assert first == {name: log.store.get(name) for name in first}


def test_a_gap_in_the_log_causes_a_rebuild(log):
    log.change(["a1", "a2"])
    log.convert()
    log.change(["b1"])
    log.change(["c1"], ["a1"])
    target = log.snapshot()
    target.files()
    log.store.delete(commit_name(2))
    result = Converter(DeltaSide(log.store, lambda at: log.snapshot(1), partial(read_commit, log.store))).convert(target)
    assert (result.kind, result.version) == ("full", 3)
    assert "commits after version 1" in result.reason
    paths = set(live_entries(log.store, newest_document(log.store)["snapshots"][-1]))
    assert paths == {f"{log.store.url}/{name}" for name in ("a2", "b1", "c1")}


def test_a_table_far_behind_is_rebuilt(log, monkeypatch):
    monkeypatch.setattr(converter, "MAX_PENDING_COMMITS", 2)
    log.change(["a1"])
    log.convert()
    for name in ("b1", "b2", "b3"):
        log.change([name])
    result = log.convert()
    assert result.kind == "full" and "3 versions behind" in result.reason
    assert verify(log.store) == 4


def test_uniform_off_and_on_again_is_rebuilt(log):
    log.change(["a1"])
    log.convert()
    off = {key: value for key, value in UNIFORM.items() if "universal" not in key}
    log.commit(replace(log.metadata, configuration=off))
    log.change(["b1"])
    log.commit(log.metadata)
    result = log.convert()
    assert result.kind == "full" and "UniForm was off at version 2" in result.reason
    assert verify(log.store) == 4


def test_a_conversion_reads_the_iceberg_side_once(log):
    """Before the new metadata: one listing, and one read each of the newest metadata file, the hint and the record. After it, a listing
    of the metadata files alone and the hint again: another conversion may have finished meanwhile."""
    log.change(["a1"])
    log.convert()
    log.change(["a2"])
    traced = TracingStore(log.store)
    log.convert(store=traced)
    calls = of_iceberg_side(traced)
    put = calls.index(("put_if_absent", "metadata/v2.metadata.json"))
    hint = ("get", "metadata/version-hint.text")
    assert [call for call in calls[:put] if not call[1].endswith(".avro")] == [
        ("get", NAME),
        ("list_from", "metadata"),
        ("get", "metadata/v1.metadata.json"),
        hint,
    ]
    assert calls[put + 1 :] == [hint, hint, ("put", hint[1]), ("list_from", "metadata"), ("put", NAME)]


def of_iceberg_side(traced: TracingStore) -> list[tuple[str, str]]:
    return [(call.method, call.name) for call in traced.calls if call.name.startswith("metadata") or call.name == NAME]


def test_another_writer_stops_conversion_until_a_rebuild(log):
    log.change(["a1"])
    log.convert()
    foreign = newest_document(log.store)
    foreign["properties"]["owner"] = "another engine"
    log.store.put("metadata/v2.metadata.json", json.dumps(foreign).encode())
    log.store.put("metadata/version-hint.text", b"2")
    log.change(["a2"])
    with pytest.raises(ForeignWriter, match=r"v2\.metadata\.json"):
        log.convert()
    result = log.convert(rebuild=True)
    assert (result.kind, result.version) == ("full", 2)
    assert result.metadata_location.endswith("/v3.metadata.json"), "the other writer's file is left alone"
    assert verify(log.store) == 2
    log.change(["a3"])
    assert log.convert().kind == "incremental"
    assert verify(log.store) == 3


def test_a_corrupt_manifest_list_is_repaired_by_a_rebuild(log):
    log.change(["a1"])
    log.convert()
    current = newest_document(log.store)["snapshots"][-1]["manifest-list"].removeprefix(f"{log.store.url}/")
    log.store.put(current, b"not avro")
    log.caches.clear()
    log.change(["a2"])
    assert log.convert().kind == "full"
    entries = live_entries(log.store, newest_document(log.store)["snapshots"][-1])
    assert len(entries) == 2


def test_totals_that_differ_from_the_table_s_checksum_are_repaired_by_a_rebuild(log):
    """A file that is added a second time as if it were new would be listed twice."""
    log.change(["a1", "a2"])
    log.convert()
    log.change(["a1", "b1"])
    snapshot = log.snapshot()
    write_checksum(log.store, 2, checksum_of(snapshot.state, snapshot.files(), snapshot.config))
    result = log.convert()
    assert result.kind == "full"
    assert "4 files" in result.reason
    assert verify(log.store) == 2
    snapshot = log.snapshot(log.change(["b2"]))
    write_checksum(log.store, 3, checksum_of(snapshot.state, snapshot.files(), snapshot.config))
    assert log.convert().kind == "incremental"
