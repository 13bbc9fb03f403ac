"""The end of a conversion under races, storage failures and crashes."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import StorageFailure, TahoeError
from tahoe.store.log_store import Refused, Unanswered
from tahoe.testing.faulty_store import CrashingStore, Faults, FaultyStore, SimulatedCrash, TracingStore, WrappedStore
from tahoe.testing.iceberg_verifier import newest_document, verify
from tahoe.testing.uniform_log import DeltaLog
from tests.sampling import sampled


@pytest.fixture
def log() -> DeltaLog:
    return DeltaLog()


def test_the_hint_never_goes_back(log):
    log.change(["a1"])
    log.change(["a2"])
    log.convert()
    log.convert(version=1)
    assert log.store.get("metadata/version-hint.text") == b"2"


class Racing(WrappedStore):
    """Runs another conversion once, just before our metadata file is put."""

    def __init__(self, inner, other) -> None:
        super().__init__(inner)
        self.other = other

    def put_if_absent(self, name, data):
        other, self.other = self.other, None
        if other is not None:
            other()
        return super().put_if_absent(name, data)


@pytest.mark.parametrize("winner", [2, 3, 4])
def test_a_conversion_that_loses_the_race_continues_from_the_winner(log, winner):
    log.change(["a1"])
    log.convert()
    log.change(["b1"], ["a1"])
    log.change(["c1"])
    log.change(["d1"], ["b1"])
    racing = Racing(log.store, lambda: log.convert(version=winner))
    log.convert(version=3, store=racing)
    assert verify(log.store) == max(winner, 3)
    log.convert()
    assert verify(log.store) == 4


class Overtaken:
    """A catalog whose first answer is on its way while another conversion registers the table."""

    name, swaps = "c:a.b", True

    def __init__(self, other) -> None:
        self.location, self.other = None, other

    def load(self):
        answer, other, self.other = self.location, self.other, None
        if other is not None:
            other()
        return answer

    def commit(self, old, new):
        if old != self.location:
            return False
        self.location = new
        return True


def test_a_catalog_s_answer_that_is_older_than_a_concurrent_conversion_is_no_external_change(log):
    log.change(["a1"])
    log.convert()
    log.change(["b1"])
    catalog = Overtaken(lambda: log.convert(version=1, catalogs=[catalog]))
    log.convert(catalogs=[catalog])
    assert catalog.location == f"{log.store.url}/metadata/v2.metadata.json"
    assert verify(log.store) == 2


def test_converters_side_by_side_end_with_the_newest_version(log):
    log.change(["a0"])
    threads = []
    for number in range(1, 6):
        log.change([f"a{number}"], [f"a{number - 1}"])
    errors = []

    def run(version: int) -> None:
        try:
            log.convert(version=version)
        except TahoeError as error:
            errors.append(error)

    for version in (1, 3, 6, 2, 6, 5):
        threads.append(threading.Thread(target=run, args=(version,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    log.convert()
    assert verify(log.store) == 6


def crash_points() -> int:
    log = DeltaLog()
    log.change(["a1", "b1"])
    log.convert()
    log.change(["c1"], ["a1"])
    traced = TracingStore(log.store)
    log.convert(store=traced)
    return len(traced.calls)


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_point_is_repaired_by_the_next_conversion(after):
    for at in range(crash_points()):
        log = DeltaLog()
        log.change(["a1", "b1"])
        log.convert()
        log.change(["c1"], ["a1"])
        with suppress(SimulatedCrash):
            log.convert(store=CrashingStore(log.store, at, after=after))
        assert verify(log.store) in (1, 2), "readers see the old version or the new one"
        log.change(["d1"])
        log.convert()
        assert verify(log.store) == 3
        assert newest_document(log.store)["snapshots"][-1]["summary"]["total-data-files"] == "3"


class Losing(WrappedStore):
    """Carries out each put-if-absent without answering, or refuses it."""

    def __init__(self, inner, outcome) -> None:
        super().__init__(inner)
        self.outcome = outcome

    def put_if_absent(self, name, data):
        if isinstance(self.outcome, Unanswered):
            super().put_if_absent(name, data)
        return self.outcome


def test_a_lost_answer_is_read_back(log):
    log.change(["a1"])
    result = log.convert(store=Losing(log.store, Unanswered("timeout")), clock=SeededClock())
    assert result.version == 1
    assert verify(log.store) == 1


def test_a_refusal_is_an_error_that_says_so(log):
    log.change(["a1"])
    with pytest.raises(StorageFailure, match="slow down"):
        log.convert(store=Losing(log.store, Refused("slow down")), clock=SeededClock())
    assert newest_document(log.store) is None


@pytest.mark.parametrize("seed", sampled(range(12), 3))
def test_flaky_storage_never_shows_readers_a_wrong_table(seed):
    log = DeltaLog()
    faults = Faults(answer_lost=0.2, answered_taken=0.1, request_lost=0.1, refused=0.1, read_failed=0.05, write_failed=0.1)
    faulty = FaultyStore(log.store, faults, seed=seed)
    clock = SeededClock(seed)
    for number in range(8):
        log.change([f"a{number}"], [f"a{number - 2}"] if number > 1 else [])
        with suppress(StorageFailure):
            log.convert(store=faulty, clock=clock)
        if newest_document(log.store) is not None:
            verify(log.store)
    log.convert()
    assert verify(log.store) == 8
