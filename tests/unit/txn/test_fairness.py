"""Writers that often lose ask others to wait: they do so within bounds, and nothing depends on it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import deltalake
import pyarrow as pa
import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CommitStateUnknown, StorageFailure
from tahoe.log import intents
from tahoe.store.log_store import Exists, LogStore
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import CrashingStore, SimulatedCrash, TracingStore, WrappedStore
from tahoe.txn import fairness
from tahoe.txn.commit import RetryPolicy

Answer = TypeVar("Answer")
DAY_MS = 86_400_000
ROW = pa.table({"id": [1]})


@dataclass
class CountingClock(SeededClock):
    """Records the total time slept."""

    start_ms: int = 1_700_000_000_000
    slept: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        super().__init__(7, self.start_ms)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        super().sleep(seconds)


class OvertakenStore(WrappedStore):
    """Another writer takes the version just before each of the first `times` conditional writes is sent."""

    def __init__(self, inner: LogStore, times: int) -> None:
        super().__init__(inner)
        self.times = times
        self.intents_seen: list[int] = []

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        if method == "put_if_absent" and self.times > 0:
            self.times -= 1
            self.intents_seen.append(len(intents_in(self.inner)))
            Table(self.inner.url, store=self.inner, clock=SeededClock(100 + self.times)).append(ROW)
        return run()


class StoreThatRefusesIntents(WrappedStore):
    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        if method in ("put", "delete", "head", "list_from") and "_tahoe_intent" in name:
            raise StorageFailure(f"403: {method} of '{name}'")
        return run()


@pytest.fixture(params=["memory", "folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table" if request.param == "memory" else str(tmp_path / "table"))


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> Iterator[None]:
    yield
    fairness._waited.clear()
    intents._known.clear()


def intents_in(store: LogStore) -> list[str]:
    return [entry.name for entry in store.walk("_delta_log") if "_tahoe_intent" in entry.name]


def table_at(store: LogStore, clock: SeededClock | None = None, policy: RetryPolicy | None = None) -> Table:
    return Table(store.url, store=store, clock=clock or SeededClock(), policy=policy)


def leave_an_intent(store: LogStore, who: str = "dead") -> str:
    name = intents.intent_name(store, who)
    store.put(name, b"")
    # As observed in a listing of another writer's commits.
    intents.notice(store, [entry for entry in store.walk("_delta_log") if entry.name == name])
    return name


def test_a_writer_asks_others_to_wait_after_three_losses_and_withdraws(store: LogStore) -> None:
    table_at(store).append(ROW)
    overtaken = OvertakenStore(store, 5)
    assert table_at(overtaken).append(ROW) == 6
    assert overtaken.intents_seen == [0, 0, 0, 1, 1]
    assert intents_in(store) == []
    assert intents.standing(store.url) == []


def test_a_writer_without_contention_neither_asks_nor_waits(store: LogStore) -> None:
    table_at(store).append(ROW)
    clock, tracing = CountingClock(), TracingStore(store)
    table = table_at(tracing, clock)
    table.append(ROW)
    assert clock.slept == 0
    about_intents = [call for call in tracing.calls if "_tahoe_intent" in call.name]
    # On a disk, where it costs no request, the folder of intents is listed.
    assert [call.method for call in about_intents] == (["list_from"] if store.asks_cheaply else [])


def test_a_writer_that_fails_withdraws_too(store: LogStore) -> None:
    table_at(store).append(ROW)

    class Refusing(OvertakenStore):
        def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
            if method == "get_many" and self.times == 0:
                raise StorageFailure("down")
            if method == "get" and self.times == 0:
                raise StorageFailure("down")
            return super()._call(method, name, run)

    with pytest.raises(CommitStateUnknown):
        table_at(Refusing(store, 5)).append(ROW)
    assert intents_in(store) == []


def test_an_intent_of_a_dead_writer_costs_others_one_bounded_wait(store: LogStore) -> None:
    table_at(store).append(ROW)
    leave_an_intent(store)
    clock = CountingClock()
    table = table_at(store, clock)
    assert table.append(ROW) == 1
    assert 0.3 < clock.slept <= 0.6
    waited = clock.slept
    for version in (2, 3, 4):
        assert table.append(ROW) == version
    assert clock.slept == waited


def seconds_waited(store: LogStore, end: str = "") -> float:
    """Return how long three commits wait for the intents of 20 dead writers, whose ids end so."""
    table_at(store).append(ROW)
    for number in range(20):
        leave_an_intent(store, f"dead-{number}{end}")
    clock = CountingClock()
    table = table_at(store, clock)
    for version in (1, 2, 3):
        assert table.append(ROW) == version
    return clock.slept


def test_many_intents_together_cost_one_patience(store: LogStore) -> None:
    assert seconds_waited(store) <= 0.6


def test_writers_that_take_seconds_are_waited_for_longer_and_once(store: LogStore) -> None:
    assert fairness.SLOW_SECONDS <= seconds_waited(store, intents.SLOW) <= fairness.SLOW_SECONDS + 0.6


@pytest.mark.parametrize("days", [-1, 1])
def test_a_dead_writer_s_intent_is_removed_whatever_the_clocks(store: LogStore, days: int) -> None:
    table_at(store).append(ROW)
    name = leave_an_intent(store)
    modified_ms = intents.standing(store.url)[0].modified_ms
    assert modified_ms is not None
    clock = CountingClock(modified_ms + days * DAY_MS)
    table = table_at(store, clock)
    table.append(ROW)
    assert store.head(name) is not None
    clock.sleep(fairness.EXPIRY_MS / 1000)
    if not store.asks_cheaply:  # without a listing it is not seen
        leave_an_intent_again = [entry for entry in store.walk("_delta_log") if entry.name == name]
        intents.notice(store, leave_an_intent_again)
    table.append(ROW)
    assert intents_in(store) == []


def test_an_intent_older_than_the_newest_commit_by_the_stores_own_time_is_removed_without_a_wait(store: LogStore) -> None:
    clock = CountingClock()
    turn = fairness.Turn(store, "me", clock, 0.5, 0.002)
    name = leave_an_intent(store)
    modified_ms = intents.standing(store.url)[0].modified_ms
    assert modified_ms is not None
    assert turn.wait_for_others(modified_ms + fairness.EXPIRY_MS + 1) is False
    assert (clock.slept, store.head(name)) == (0, None)


def test_of_two_requests_the_older_goes_first_and_does_not_wait(store: LogStore) -> None:
    clocks = [CountingClock(), CountingClock()]
    turns = [fairness.Turn(store, name, clock, 0.5, 0.002) for name, clock in zip("ab", clocks, strict=True)]
    for turn in turns:
        turn.ask()
    listed = [entry for entry in store.walk("_delta_log") if "_tahoe_intent" in entry.name]
    # Of equal age, as in a store with times in whole seconds.
    intents.notice(store, [type(entry)(entry.name, entry.size, 1_000) for entry in listed])
    first, second = turns
    if not store.asks_cheaply:
        assert first.wait_for_others(0) is False
        assert second.wait_for_others(0) is True
        assert (clocks[0].slept, clocks[1].slept > 0) == (0, True)
    first.withdraw()
    second.withdraw()
    assert intents_in(store) == []


def test_a_store_that_refuses_intents_makes_no_difference_and_no_noise(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    table_at(store).append(ROW)
    with caplog.at_level(logging.INFO):
        assert table_at(StoreThatRefusesIntents(OvertakenStore(store, 7))).append(ROW) == 8
    assert {record.name for record in caplog.records} == {"tahoe.observe.log_records"}  # the commits and the retries themselves
    assert table_at(store).check() == []


def test_a_writer_that_dies_at_any_call_of_a_lost_race_leaves_a_table_that_others_write(store: LogStore) -> None:
    for at in range(60):
        place = open_store(f"{store.url}-{at}")
        table_at(place).append(ROW)
        crashing = CrashingStore(OvertakenStore(place, 4), at, after=True)
        try:
            version = table_at(crashing).append(ROW)
        except SimulatedCrash:
            version = None
        survivor = table_at(place, CountingClock())
        before = survivor.version()
        assert survivor.append(ROW) == before + 1
        assert survivor.check() == []
        assert survivor.to_arrow().num_rows == before + 2
        if version is not None:
            assert at > 10
            return
    raise AssertionError("it always died")


def test_other_readers_ignore_an_intent(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "table"))
    table = table_at(store)
    table.append(ROW)
    # Both locations, though a disk store uses only one.
    store.put(f"{intents.PREFIX}x", b"")
    store.put(f"{intents.FOLDER}/x", b"")
    table.append(ROW)
    table.checkpoint()
    delta_rs_table = deltalake.DeltaTable(str(tmp_path / "table"))
    assert (delta_rs_table.version(), delta_rs_table.to_pyarrow_table().num_rows) == (1, 2)
    delta_rs_table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    delta_rs_table.cleanup_metadata()
    deltalake.write_deltalake(str(tmp_path / "table"), ROW, mode="append")
    assert store.head(f"{intents.PREFIX}x") is not None
    assert table.check() == []
    assert table.version() == 2


def test_a_taken_name_without_a_file_ends_as_unknown(store: LogStore) -> None:
    table_at(store).append(ROW)

    class Lying(WrappedStore):
        def put_if_absent(self, name: str, data: bytes) -> Exists:
            return Exists()

    with pytest.raises(CommitStateUnknown) as caught:
        table_at(Lying(store)).append(ROW)
    assert caught.value.resolve() is False
