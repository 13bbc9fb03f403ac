"""The handle: status, sync, wait; and that a slow or broken conversion never reaches the writer."""

from __future__ import annotations

import logging
from functools import partial
from threading import Event
from types import SimpleNamespace

import pytest

from tahoe.clock import SYSTEM_CLOCK
from tahoe.exceptions import InvalidRequest, StorageFailure
from tahoe.log.reader import read_commit
from tahoe.uniform import queue
from tahoe.uniform.status import UniformHandle, after_commit
from tests.unit.uniform.deltalog import UNIFORM, DeltaLog
from tests.unit.uniform.verifier import newest_document, verify


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


def handle(log: DeltaLog) -> UniformHandle:
    return UniformHandle(log.store, log.snapshot, partial(read_commit, log.store))


def committed(log: DeltaLog) -> None:
    """What the transaction layer does after a commit."""
    hook = after_commit(log.store, log.snapshot, partial(read_commit, log.store))
    hook(SimpleNamespace(version=log.version, snapshot=log.snapshot()))


def test_a_commit_is_shown_soon(log):
    log.change(["a1"])
    committed(log)
    found = handle(log).wait(timeout=20)
    assert (found.iceberg_version, found.lag_versions, found.lag_seconds, found.last_error) == (1, 0, 0.0, None)
    assert verify(log.store) == 1


def test_status_tells_how_far_behind_the_iceberg_side_is(log):
    before = handle(log).status()
    assert (before.enabled, before.delta_version, before.iceberg_version, before.metadata_location) == (True, 0, None, None)
    assert before.lag_versions is None
    handle(log).sync()
    log.change(["a1"])
    log.change(["a2"])
    found = handle(log).status()
    assert (found.delta_version, found.iceberg_version, found.lag_versions) == (2, 0, 2)
    assert found.lag_seconds >= 0
    assert found.metadata_location == f"{log.store.url}/metadata/v0.metadata.json"
    assert found.snapshot_id == newest_document(log.store)["current-snapshot-id"]
    assert not found.is_converting


def test_commits_during_a_slow_conversion_become_one_snapshot(log, monkeypatch):
    from tahoe.uniform import status

    started, go_on, real = Event(), Event(), status.convert
    monkeypatch.setattr(status, "convert", lambda *a, **k: (started.set(), go_on.wait(20), real(*a, **k))[-1])
    log.change(["a1"])
    committed(log)
    assert started.wait(20)
    for number in range(5):
        log.change([f"b{number}"])
        committed(log)
    assert handle(log).status().is_converting
    go_on.set()
    handle(log).wait(6, timeout=20)
    assert verify(log.store) == 6
    assert [s["summary"]["delta-version"] for s in newest_document(log.store)["snapshots"]] == ["1", "6"]


def test_an_error_stays_with_the_status_and_the_log_until_a_conversion_succeeds(log, caplog):
    log.change(["a1"])
    log.convert()
    log.store.put("metadata/v1.metadata.json", b"{}")
    log.change(["a2"])
    with caplog.at_level(logging.ERROR):
        committed(log)
        assert queue.QUEUE.drain(20, log.store.url)
    assert f"version 2 of {log.store.url}" in caplog.text
    found = handle(log).status()
    assert found.last_error.code == "TAHOE_UNIFORM_FOREIGN_WRITER"
    assert found.iceberg_version is None
    handle(log).sync(rebuild=True)
    assert handle(log).status().last_error is None


def test_waiting_for_a_version_that_failed_says_why(log):
    log.commit(log.add("a1").__class__("a1", {"col-2": "a"}, 1, 1, True, None))
    committed(log)
    with pytest.raises(StorageFailure, match=r"version 1: the conversion failed: .*a1 has no number of records"):
        handle(log).wait(timeout=20)


def test_waiting_too_long_says_so(log):
    with pytest.raises(StorageFailure, match="does not show version 0: 0 seconds have passed"):
        handle(log).wait(timeout=0)


def test_sync_refuses_a_table_that_does_not_ask_for_uniform():
    plain = {key: "none" if key.endswith("mode") else "" for key in UNIFORM}
    log = DeltaLog(configuration={**plain, "delta.enableIcebergCompatV2": "false", "delta.columnMapping.maxColumnId": "2"})
    with pytest.raises(InvalidRequest, match="does not ask for UniForm"):
        handle(log).sync()
    assert not handle(log).status().enabled


def test_a_commit_to_a_table_without_uniform_starts_nothing():
    log = DeltaLog(configuration={"delta.universalFormat.enabledFormats": ""})
    committed(log)
    assert not queue.QUEUE.is_busy(log.store.url)
    assert newest_document(log.store) is None


def test_a_catalog_that_fails_is_told_by_sync_and_status(log):
    class Broken:
        name = "broken"

        def load(self):
            raise StorageFailure("The catalog broken does not answer.")

        def commit(self, old, new):
            raise AssertionError

    log.change(["a1"])
    with pytest.raises(StorageFailure, match="does not answer"):
        handle(log).sync(catalog=Broken())
    found = handle(log).status()
    assert (found.iceberg_version, found.last_error.message) == (1, "The catalog broken does not answer.")


def test_the_clock_is_an_argument(log):
    assert UniformHandle(log.store, log.snapshot, partial(read_commit, log.store), SYSTEM_CLOCK).sync().version == 0
