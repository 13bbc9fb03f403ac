"""The handle: status, sync and wait; a slow or failing conversion never affects the writer."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest

from tahoe.base.clock import SYSTEM_CLOCK, SeededClock
from tahoe.base.exceptions import ForeignWriter, InvalidRequest, StorageFailure
from tahoe.base.progress import Reported
from tahoe.log.files.commits import read_commit
from tahoe.testing.faulty_store import TracingStore
from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.uniform_log import UNIFORM, DeltaLog
from tahoe.uniform.convert.conversion import DeltaSide
from tahoe.uniform.convert.converter import Converter
from tahoe.uniform.external.conversion_record import NAME, ConversionRecord, write_record
from tahoe.uniform.handle import UniformHandle, after_commit
from tahoe.uniform.runtime import UniformRuntime

SECONDS = 120
"""Long enough that only a failing test times out."""


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


def side(log: DeltaLog) -> DeltaSide:
    return DeltaSide(log.store, log.snapshot, partial(read_commit, log.store))


RUNTIME = UniformRuntime()


def handle(log: DeltaLog) -> UniformHandle:
    return UniformHandle(side(log), RUNTIME)


def committed(log: DeltaLog) -> None:
    """Run the hook of the transaction layer after a commit."""
    hook = after_commit(side(log), RUNTIME)
    hook(SimpleNamespace(version=log.version, snapshot=log.snapshot()))


def test_a_commit_is_shown_soon(log):
    log.change(["a1"])
    committed(log)
    status = handle(log).wait(timeout=SECONDS)
    assert (status.iceberg_version, status.lag_versions, status.lag_seconds, status.last_error) == (1, 0, 0.0, None)
    assert verify(log.store) == 1


def test_status_reports_how_far_behind_the_iceberg_side_is(log):
    before = handle(log).status()
    assert (before.enabled, before.delta_version, before.iceberg_version, before.metadata_location) == (True, 0, None, None)
    assert before.lag_versions is None
    handle(log).sync()
    log.change(["a1"])
    log.change(["a2"])
    status = handle(log).status()
    assert (status.delta_version, status.iceberg_version, status.lag_versions) == (2, 0, 2)
    assert status.lag_seconds >= 0
    assert status.metadata_location == f"{log.store.url}/metadata/v0.metadata.json"
    assert status.snapshot_id == newest_document(log.store)["current-snapshot-id"]
    assert not status.is_converting


def test_a_conversion_in_the_background_reports_its_progress(log, monkeypatch):
    reports = {}
    monkeypatch.setattr(RUNTIME, "progress", lambda table: nullcontext(reports.setdefault(table, Reported())))
    log.change(["a1"])
    committed(log)
    assert RUNTIME.queue.drain(SECONDS, log.store.url)
    assert reports[log.store.url].reports[-1] == ("files converted", 1, 1)


def test_status_reads_the_iceberg_side_once(log):
    log.change(["a1"])
    log.convert()
    traced = TracingStore(log.store)
    UniformHandle(DeltaSide(traced, log.snapshot, partial(read_commit, traced)), RUNTIME).status()
    assert sorted((call.method, call.name) for call in traced.calls) == [
        ("get", NAME),
        ("get", "metadata/v1.metadata.json"),
        ("get", "metadata/version-hint.text"),
        ("list_from", "metadata"),
    ]


def test_commits_during_a_slow_conversion_become_one_snapshot(log, monkeypatch):
    started, go_on, real = Event(), Event(), Converter.convert
    monkeypatch.setattr(Converter, "convert", lambda *a, **k: (started.set(), go_on.wait(SECONDS), real(*a, **k))[-1])
    log.change(["a1"])
    committed(log)
    assert started.wait(SECONDS)
    for number in range(5):
        log.change([f"b{number}"])
        committed(log)
    assert handle(log).status().is_converting
    go_on.set()
    handle(log).wait(6, timeout=SECONDS)
    assert verify(log.store) == 6
    assert [s["summary"]["delta-version"] for s in newest_document(log.store)["snapshots"]] == ["1", "6"]


def test_an_error_is_reported_by_status_and_log_until_a_conversion_succeeds(log, caplog):
    log.change(["a1"])
    log.convert()
    log.store.put("metadata/v1.metadata.json", b"{}")
    log.change(["a2"])
    with caplog.at_level(logging.ERROR):
        committed(log)
        assert RUNTIME.queue.drain(SECONDS, log.store.url)
    assert f"version 2 of {log.store.url}" in caplog.text
    status = handle(log).status()
    assert status.last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"
    assert status.iceberg_version is None
    handle(log).sync(rebuild=True)
    assert handle(log).status().last_error is None


def test_waiting_for_a_version_that_failed_says_why(log):
    log.commit(log.add("a1").__class__("a1", {"col-2": "a"}, 1, 1, True, None))
    committed(log)
    with pytest.raises(StorageFailure, match=r"version 1: the conversion failed: .*a1 has no number of records"):
        handle(log).wait(timeout=SECONDS)


def test_waiting_too_long_says_so(log):
    with pytest.raises(StorageFailure, match="does not show version 0: 0 seconds have passed"):
        handle(log).wait(timeout=0)


def test_sync_refuses_a_table_without_uniform():
    plain = {key: "none" if key.endswith("mode") else "" for key in UNIFORM}
    log = DeltaLog(configuration={**plain, "delta.enableIcebergCompatV2": "false", "delta.columnMapping.maxColumnId": "2"})
    with pytest.raises(InvalidRequest, match="UniForm is not enabled"):
        handle(log).sync()
    assert not handle(log).status().enabled


def test_a_commit_to_a_table_without_uniform_starts_nothing():
    log = DeltaLog(configuration={"delta.universalFormat.enabledFormats": ""})
    committed(log)
    assert not RUNTIME.queue.is_busy(log.store.url)
    assert newest_document(log.store) is None


def test_a_failing_catalog_is_reported_by_sync_and_status(log):
    class Broken:
        name = "broken"

        def load(self):
            raise StorageFailure("The catalog broken does not answer.")

        def commit(self, old, new):
            raise AssertionError

    log.change(["a1"])
    with pytest.raises(StorageFailure, match="does not answer"):
        handle(log).sync(catalog=Broken())
    status = handle(log).status()
    assert (status.iceberg_version, status.last_error.message) == (1, "The catalog broken does not answer.")


class Late:
    """A catalog that answers after the timeout."""

    name, swaps = "late:a.b", True

    def __init__(self, location):
        self.location, self.silent, self.moves = location, Event(), []

    def load(self):
        assert self.silent.wait(SECONDS)
        return self.location

    def commit(self, old, new):
        self.moves.append((old, new))
        return True


@pytest.mark.parametrize("location", ["file:///elsewhere/metadata/00001-theirs.metadata.json", None])
def test_another_writer_s_change_in_a_slow_catalog_is_detected_before_its_pointer_moves(monkeypatch, location):
    """The table's own folder shows no trace of it: the metadata is elsewhere, or the entry was dropped."""
    log = DeltaLog(configuration={"delta.universalFormat.config.iceberg.catalogs": "late:a.b"})
    late = Late(location)
    monkeypatch.setattr(RUNTIME.catalogs, "named", lambda name: late)
    monkeypatch.setattr("tahoe.uniform.convert.converter.LOOK_SECONDS", 0.01)
    write_record(log.store, ConversionRecord(catalogs={"late:a.b": f"{log.store.url}/metadata/v0.metadata.json"}))
    log.change(["a1"])
    with pytest.raises(StorageFailure, match=r"late:a\.b has not answered"):
        handle(log).sync(timeout=0.01)
    assert verify(log.store) == 1, "readers by path do not wait"
    late.silent.set()
    assert RUNTIME.drain(SECONDS, SECONDS, log.store.url) == []
    assert late.moves == []
    status = handle(log).status()
    assert status.last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"
    assert status.iceberg_version == 1
    log.change(["a2"])
    with pytest.raises(ForeignWriter, match=r"late:a\.b"):
        handle(log).sync()
    assert verify(log.store) == 1, "nothing is converted while it is known"
    assert late.moves == []


def test_nothing_is_deleted_while_a_catalog_points_to_metadata_of_another(monkeypatch):
    """Metadata elsewhere may build on ours, and reference manifests that ours no longer references."""
    short = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    log = DeltaLog(configuration={"delta.universalFormat.config.iceberg.catalogs": "late:a.b", **short})
    late = Late(None)
    late.silent.set()
    monkeypatch.setattr(RUNTIME.catalogs, "named", lambda name: late)
    log.change(["a1"])
    monkeypatch.setattr("tahoe.uniform.convert.converter.LATELY_MS", 0)  # no reader is late
    handle(log).sync()
    write_record(log.store, ConversionRecord(number=1))
    log.change(["a2"])
    handle(log).sync()
    before = {entry.name for entry in log.store.walk("metadata")}
    SYSTEM_CLOCK.sleep(0.01)  # commits of one millisecond would expire together
    answers = iter([None, "file:///elsewhere/metadata/00001-theirs.metadata.json"])
    write_record(log.store, ConversionRecord(number=2))
    monkeypatch.setattr(late, "load", lambda: next(answers))  # changed between the read and the move
    log.commit(log.remove("a1"), log.add("b1"))
    with pytest.raises(ForeignWriter, match="elsewhere"):
        handle(log).sync()
    assert verify(log.store) == 3
    assert len(newest_document(log.store)["snapshots"]) == 2, "a snapshot has expired"
    assert before <= {entry.name for entry in log.store.walk("metadata")}


def test_the_clock_is_an_argument(log):
    assert UniformHandle(replace(side(log), clock=SeededClock(1)), RUNTIME).sync().version == 0
