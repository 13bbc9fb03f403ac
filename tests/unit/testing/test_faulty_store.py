"""The faulty stores misbehave only as configured."""

from __future__ import annotations

import pytest

from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import StorageFailure
from tahoe.store.log_store import Created, Exists, InFlight, LogStore, Refused, Unanswered
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, CrashingStore, Faults, FaultyStore, PutFault, SimulatedCrash, TracingStore
from tahoe.testing.store_suite import LogStoreContract


@pytest.fixture
def inner(memory_url: str) -> LogStore:
    return open_store(memory_url)


class TestFaultyStoreWithoutFaults(LogStoreContract):
    @pytest.fixture
    def store(self, inner: LogStore) -> LogStore:
        return FaultyStore(inner)


class TestTracingStore(LogStoreContract):
    @pytest.fixture
    def store(self, inner: LogStore) -> LogStore:
        return TracingStore(inner)


def test_scripted_writes_follow_the_script_and_later_ones_succeed(inner: LogStore) -> None:
    store = FaultyStore(inner, puts=[*PutFault])
    outcomes = [store.put_if_absent(f"name-{fault.name}", b"x") for fault in PutFault]
    assert [type(outcome) for outcome in outcomes] == [Created, Unanswered, Exists, Unanswered, InFlight, Refused]
    assert [entry.name for entry in inner.list_from("")] == ["name-ANSWERED_TAKEN", "name-ANSWER_LOST", "name-NONE"]
    assert store.put_if_absent("name-NONE", b"y") == Exists()
    assert [fault for fault, _ in store.injected] == [fault.value for fault in PutFault if fault is not PutFault.NONE]


def _history(seed: int, url: str) -> tuple[list[str], list[object]]:
    faults = Faults(
        answer_lost=0.2,
        answered_taken=0.1,
        request_lost=0.1,
        in_flight=0.1,
        refused=0.1,
        read_failed=0.2,
        write_failed=0.3,
        listed_late=0.3,
    )
    inner = open_store(url)
    store = FaultyStore(inner, faults, seed=seed)
    seen: list[str] = []
    for number in range(60):
        seen.append(type(store.put_if_absent(f"log/{number:03d}", b"x")).__name__)
        for call in (lambda: store.put("object", b"x"), lambda: len(store.list_from("log")), lambda: store.head("object")):
            try:
                answer = call()
                seen.append(str(answer) if isinstance(answer, int) else "done")
            except StorageFailure:
                seen.append("failed")
    return seen, [fault for fault, _ in store.injected]


def test_a_seed_gives_the_same_faults_again_and_another_seed_gives_others(memory_url: str) -> None:
    first, injected = _history(7, memory_url)
    assert _history(7, f"{memory_url}-again") == (first, injected)
    assert _history(8, f"{memory_url}-other")[0] != first
    assert {"Created", "Unanswered", "InFlight", "Refused", "failed"} <= set(first)
    assert {"read failed", "write failed", "write done and the answer lost", "listed late"} <= set(injected)


def test_reads_fail_while_reads_fail_is_set(inner: LogStore) -> None:
    store = FaultyStore(inner)
    store.put("name", b"x")
    store.reads_fail = True
    for call in (lambda: store.get("name"), lambda: store.head("name"), lambda: store.list_from(""), lambda: store.walk()):
        with pytest.raises(StorageFailure):
            call()
    assert store.put_if_absent("other", b"x") == Created()
    store.reads_fail = False
    assert store.get("name") == b"x"


def test_waiting_advances_the_clock(inner: LogStore) -> None:
    clock = SeededClock()
    start = clock.now_ms()
    store = FaultyStore(inner, Faults(longest_wait_seconds=1000.0), clock=clock)
    for _ in range(10):
        store.head("name")
    assert 100_000 < clock.now_ms() - start < 10_000_000


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_happens_at_its_call_and_lasts(inner: LogStore, after: bool) -> None:
    store = CrashingStore(inner, at=1, after=after)
    store.put("first", b"x")
    with pytest.raises(SimulatedCrash):
        store.put("second", b"x")
    assert store.crashed_at == Call("put", "second")
    with pytest.raises(SimulatedCrash):
        store.put("third", b"x")
    assert [entry.name for entry in inner.list_from("")] == (["first", "second"] if after else ["first"])


def test_a_crash_passes_handlers_of_errors() -> None:
    assert issubclass(SimulatedCrash, BaseException)
    assert not issubclass(SimulatedCrash, Exception)


def test_a_trace_has_the_calls_in_order(inner: LogStore) -> None:
    store = TracingStore(inner)
    store.put_if_absent("a", b"x")
    store.get("a")
    store.list_from("folder", "x")
    assert store.calls == [Call("put_if_absent", "a"), Call("get", "a"), Call("list_from", "folder")]
