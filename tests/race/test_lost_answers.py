"""The answer to a commit is lost: the commit is in the log exactly once, and the caller gets the right result."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TypeVar

import pytest

from tahoe.api.table import Table
from tahoe.base.clock import SeededClock
from tahoe.base.exceptions import CommitStateUnknown, StorageFailure
from tahoe.store.log_store import LogStore, PutOutcome
from tahoe.store.object_store import open_store
from tahoe.testing.faulty_store import Call, FaultyStore, PutFault, WrappedStore
from tahoe.txn.commit import RetryPolicy
from tests.race.operations import BEFORE, OPERATIONS, SCHEMA, contents, prepared, rows

Answer = TypeVar("Answer")
FAULTS = [fault for fault in PutFault if fault is not PutFault.NONE]
POLICY = RetryPolicy(storage_attempts=3)


@pytest.fixture
def inner() -> LogStore:
    return open_store(f"memory://{uuid.uuid4()}/table")


def table_over(store: LogStore) -> Table:
    """A table whose waits take no time."""
    return Table(store.url, store=store, clock=SeededClock(start_ms=time.time_ns() // 1_000_000), policy=POLICY)


class BlindAfterCommit(FaultyStore):
    """Nothing can be read once the first conditional write was sent."""

    def _put_if_absent(self, call: Call, run: Callable[[], PutOutcome]) -> PutOutcome:
        outcome = super()._put_if_absent(call, run)
        self.reads_fail = True
        return outcome


class OvertakenStore(WrappedStore):
    """Lets another writer do something just before each of the first conditional writes is sent."""

    def __init__(self, inner: LogStore, *others: Callable[[], object]) -> None:
        super().__init__(inner)
        self._others = iter(others)

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        if method == "put_if_absent" and (other := next(self._others, None)) is not None:
            other()
        return run()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_fault_makes_no_difference_to_any_operation(inner: LogStore, name: str, fault: PutFault) -> None:
    prepared(inner)
    store = FaultyStore(inner, puts=[fault])
    assert OPERATIONS[name].run(table_over(store)) == 4
    assert [what for what, _ in store.injected] == [fault.value]
    actual = Table(inner.url, store=inner)
    assert actual.version() == 4
    assert contents(actual) == sorted(OPERATIONS[name].after)
    assert actual.check() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_makes_no_difference_to_the_making_of_a_table(inner: LogStore, fault: PutFault) -> None:
    store = FaultyStore(inner, puts=[fault])
    created = Table.create(
        inner.url, SCHEMA, partition_by=["part"], store=store, clock=SeededClock(start_ms=time.time_ns() // 1_000_000)
    )
    assert created.version() == 0
    assert created.append(rows("a", 1)) == 1
    assert contents(Table(inner.url, store=inner)) == [("a", 1)]
    assert created.check() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_makes_no_difference_to_an_append_that_makes_the_table(inner: LogStore, fault: PutFault) -> None:
    assert table_over(FaultyStore(inner, puts=[fault])).append(rows("a", 1)) == 0
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual), actual.check()) == (0, [("a", 1)], [])


@pytest.mark.parametrize("second", FAULTS)
@pytest.mark.parametrize("first", FAULTS)
def test_two_faults_in_a_row_make_no_difference_either(inner: LogStore, first: PutFault, second: PutFault) -> None:
    prepared(inner)
    assert table_over(FaultyStore(inner, puts=[first, second])).append(rows("a", 100)) == 4
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual), actual.check()) == (4, sorted(BEFORE | {("a", 100)}), [])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_and_a_winner_at_once_leave_one_commit_of_each(inner: LogStore, fault: PutFault) -> None:
    """The winner takes version 4 before our faulty write of it; ours goes behind it, once."""
    prepared(inner)
    other = Table(inner.url, store=inner)
    store = OvertakenStore(FaultyStore(inner, puts=[PutFault.NONE, fault]), lambda: other.append(rows("b", 500)))
    assert table_over(store).append(rows("a", 100)) == 5
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual)) == (5, sorted(BEFORE | {("b", 500), ("a", 100)}))
    assert actual.check() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_winner_right_behind_our_lost_commit_is_not_taken_for_it(inner: LogStore, fault: PutFault) -> None:
    """Our write of version 4 ends in the fault, and before we look or try again another writer has committed."""
    prepared(inner)
    other = Table(inner.url, store=inner)

    class ThenOvertaken(FaultyStore):
        def _put_if_absent(self, call: Call, run: Callable[[], PutOutcome]) -> PutOutcome:
            outcome = super()._put_if_absent(call, run)
            if len(self.injected) == 1 and not done:
                done.append(other.append(rows("b", 500)))
            return outcome

    done: list[int] = []
    version = table_over(ThenOvertaken(inner, puts=[fault])).append(rows("a", 100))
    landed = fault in (PutFault.ANSWER_LOST, PutFault.ANSWERED_TAKEN)
    assert (version, done) == ((4, [5]) if landed else (5, [4]))
    actual = Table(inner.url, store=inner)
    assert contents(actual) == sorted(BEFORE | {("b", 500), ("a", 100)})
    assert (100 in actual.to_arrow(version=4)["id"].to_pylist()) is landed
    assert actual.check() == []


@pytest.mark.parametrize("fault", [PutFault.ANSWER_LOST, PutFault.ANSWERED_TAKEN, PutFault.REQUEST_LOST])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_commit_that_cannot_be_read_back_is_unknown_and_resolved_when_it_can(
    inner: LogStore, name: str, fault: PutFault
) -> None:
    prepared(inner)
    store = BlindAfterCommit(inner, puts=[fault] * POLICY.storage_attempts)
    with pytest.raises(CommitStateUnknown) as caught:
        OPERATIONS[name].run(table_over(store))
    unknown = caught.value
    assert unknown.version == 4
    with pytest.raises(StorageFailure):
        unknown.resolve()

    store.reads_fail = False
    landed = fault is not PutFault.REQUEST_LOST
    assert unknown.resolve() is landed
    actual = Table(inner.url, store=inner)
    assert actual.version() == (4 if landed else 3)
    assert contents(actual) == sorted(OPERATIONS[name].after if landed else BEFORE)
    assert actual.check() == []
    if not landed:
        assert OPERATIONS[name].run(actual) == 4
        assert contents(actual) == sorted(OPERATIONS[name].after)
        assert actual.check() == []


def test_an_unknown_commit_whose_version_another_took_did_not_happen(inner: LogStore) -> None:
    prepared(inner)
    store = BlindAfterCommit(inner, puts=[PutFault.REQUEST_LOST] * POLICY.storage_attempts)
    with pytest.raises(CommitStateUnknown) as caught:
        table_over(store).append(rows("a", 100))
    store.reads_fail = False
    Table(inner.url, store=inner).append(rows("b", 500))
    assert caught.value.resolve() is False


def test_an_acknowledged_commit_is_acknowledged_though_nothing_can_be_read_any_more(inner: LogStore) -> None:
    prepared(inner)
    assert table_over(BlindAfterCommit(inner)).append(rows("a", 100)) == 4
    actual = Table(inner.url, store=inner)
    assert (contents(actual), actual.check()) == (sorted(BEFORE | {("a", 100)}), [])


@pytest.mark.parametrize("fault", [PutFault.REFUSED, PutFault.IN_FLIGHT])
def test_a_store_that_goes_on_refusing_is_reported_and_nothing_is_written(inner: LogStore, fault: PutFault) -> None:
    prepared(inner)
    store = FaultyStore(inner, puts=[fault] * 100)
    with pytest.raises(StorageFailure, match="nothing was written") as caught:
        table_over(store).append(rows("a", 100))
    assert not isinstance(caught.value, CommitStateUnknown)
    actual = Table(inner.url, store=inner)
    assert (actual.version(), contents(actual), actual.check()) == (3, sorted(BEFORE), [])
    assert actual.append(rows("a", 100)) == 4
