"""Stores that wrap a store and misbehave on purpose, reproducibly for the same seed.

FaultyStore     loses answers and requests, refuses, fails, lists late, waits: at random from a seed, or by a script
CrashingStore   dies before or after its n-th call, and stays dead
TracingStore    records its calls
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from io import BytesIO
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa

from tahoe.base.clock import SYSTEM_CLOCK, Clock, SeededClock
from tahoe.base.exceptions import StorageFailure
from tahoe.store.log_store import Coordination, Entry, Exists, InFlight, LogStore, PutOutcome, Refused, StoreOver, Unanswered

__all__ = ["Call", "CrashingStore", "Faults", "FaultyStore", "PutFault", "SimulatedCrash", "TracingStore", "WrappedStore"]

Answer = TypeVar("Answer")


class SimulatedCrash(BaseException):
    """The process has crashed. Not an `Exception`, so that no handler of the code under test catches it."""


class WrappedStore(StoreOver):
    """A store that forwards every call to another; subclasses override `_call`.

    Args:
        inner: the wrapped store.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    @property
    def coordination(self) -> Coordination:
        """See `LogStore.coordination`."""
        return self.inner.coordination

    def list_from(self, folder: str, start: str = "") -> list[Entry]:
        """See `LogStore.list_from`."""
        return self._call("list_from", folder, lambda: self.inner.list_from(folder, start))

    def names_from(self, folder: str, start: str = "") -> list[str]:
        """See `LogStore.names_from`."""
        return self._call("list_from", folder, lambda: self.inner.names_from(folder, start))

    def walk(self, folder: str = "") -> Iterator[Entry]:
        """See `LogStore.walk`."""
        return iter(self._call("walk", folder, lambda: list(self.inner.walk(folder))))

    def get(self, name: str) -> bytes:
        """See `LogStore.get`."""
        return self._call("get", name, lambda: self.inner.get(name))

    def get_many(self, names: list[str]) -> list[bytes]:
        """See `LogStore.get_many`."""
        return self._call("get_many", names[0] if names else "", lambda: self.inner.get_many(names))

    def head(self, name: str) -> Entry | None:
        """See `LogStore.head`."""
        return self._call("head", name, lambda: self.inner.head(name))

    def open_input(self, name: str) -> pa.NativeFile:
        """See `LogStore.open_input`."""
        return self._call("open_input", name, lambda: self.inner.open_input(name))

    def put(self, name: str, data: bytes) -> None:
        """See `LogStore.put`."""
        self._call("put", name, lambda: self.inner.put(name, data))

    @contextlib.contextmanager
    def open_output(self, name: str) -> Iterator[BinaryIO]:
        """See `LogStore.open_output`: one `put` at the end."""
        file = BytesIO()
        yield file
        self.put(name, file.getvalue())

    def put_if_absent(self, name: str, data: bytes) -> PutOutcome:
        """See `LogStore.put_if_absent`."""
        return self._call("put_if_absent", name, lambda: self.inner.put_if_absent(name, data))

    def delete(self, name: str) -> None:
        """See `LogStore.delete`."""
        self._call("delete", name, lambda: self.inner.delete(name))

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        """Do one call. `run` does it in the inner store, and may be called at most once."""
        return run()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a store: the method, and its name, folder or first of several names."""

    method: str
    name: str


class TracingStore(WrappedStore):
    """Records its calls in `calls`, in the order in which they begin."""

    def __init__(self, inner: LogStore) -> None:
        super().__init__(inner)
        self.calls: list[Call] = []

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        self.calls.append(Call(method, name))
        return run()


class CrashingStore(WrappedStore):
    """Crashes at one call: raises `SimulatedCrash` there and at every later call, as a dead process writes nothing more.

    Args:
        inner: the wrapped store.
        at: the number of the fatal call, from 0.
        after: crash after the call instead of before it.
    """

    def __init__(self, inner: LogStore, at: int, *, after: bool) -> None:
        super().__init__(inner)
        self.at = at
        self.after = after
        self.crashed_at: Call | None = None
        self._count = 0
        self._lock = threading.Lock()

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        with self._lock:
            number = self._count
            self._count += 1
        if self.crashed_at is not None:
            raise SimulatedCrash(f"dead since {self.crashed_at}")
        if number != self.at:
            return run()
        if self.after:
            with contextlib.suppress(Exception):  # a dead process does not see the error of the call
                run()
        self.crashed_at = Call(method, name)
        raise SimulatedCrash(f"{'after' if self.after else 'before'} call {number}, {method} of '{name}'")


class PutFault(Enum):
    """The outcome of a faulty conditional write."""

    NONE = "done and answered"
    ANSWER_LOST = "done, and the answer lost"
    ANSWERED_TAKEN = "done, and answered as taken, as by a client below that repeated the request"
    REQUEST_LOST = "not done, and no answer"
    IN_FLIGHT = "refused, for another write of the name is under way"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Faults:
    """Probabilities of faults, from 0 to 1.

    Args:
        answer_lost, answered_taken, request_lost, in_flight, refused: outcomes of a conditional write (see `PutFault`).
        read_failed: a read raises `StorageFailure`.
        write_failed: a put or delete raises `StorageFailure`, in half of the cases after it succeeded.
        listed_late: a listing lacks the last one to three entries.
        longest_wait_seconds: every call first waits a random part of this.
    """

    answer_lost: float = 0.0
    answered_taken: float = 0.0
    request_lost: float = 0.0
    in_flight: float = 0.0
    refused: float = 0.0
    read_failed: float = 0.0
    write_failed: float = 0.0
    listed_late: float = 0.0
    longest_wait_seconds: float = 0.0


class FaultyStore(WrappedStore):
    """Injects the scripted faults in `puts` first, then random ones from `faults`.

    Args:
        inner: the wrapped store.
        faults: the probabilities.
        seed: the same seed and the same calls in the same order give the same faults.
        puts: the outcomes of the first conditional writes; random faults follow.
        clock: used to wait.

    Attributes:
        reads_fail: while True, every read and listing raises `StorageFailure`.
        injected: the faults injected so far.
    """

    def __init__(
        self,
        inner: LogStore,
        faults: Faults = Faults(),
        *,
        seed: int = 0,
        puts: Iterable[PutFault] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        super().__init__(inner)
        self.faults = faults
        self.reads_fail = False
        self.injected: list[tuple[str, Call]] = []
        self._puts = iter(puts)
        self._chance = SeededClock(seed)
        self._clock = clock
        self._lock = threading.Lock()

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        call = Call(method, name)
        if self.faults.longest_wait_seconds:
            self._clock.sleep(self._random() * self.faults.longest_wait_seconds)
        if method == "put_if_absent":
            return cast(Answer, self._put_if_absent(call, cast(Callable[[], PutOutcome], run)))
        if method in ("put", "delete"):
            return self._write(call, run)
        if self.reads_fail or self._happens(self.faults.read_failed):
            raise self._failure("read failed", call)
        answer = run()
        if method == "list_from" and self._happens(self.faults.listed_late):
            self.injected.append(("listed late", call))
            return cast(Answer, cast(list[Any], answer)[: -1 - int(self._random() * 3)])
        return answer

    def _put_if_absent(self, call: Call, run: Callable[[], PutOutcome]) -> PutOutcome:
        fault = self._put_fault()
        if fault is not PutFault.NONE:
            self.injected.append((fault.value, call))
        match fault:
            case PutFault.NONE:
                return run()
            case PutFault.ANSWER_LOST:
                run()
                return Unanswered("the answer was lost")
            case PutFault.ANSWERED_TAKEN:
                run()
                return Exists()
            case PutFault.REQUEST_LOST:
                return Unanswered("the request was lost")
            case PutFault.IN_FLIGHT:
                return InFlight("another write of this name is under way")
            case PutFault.REFUSED:
                return Refused("the store is busy")

    def _put_fault(self) -> PutFault:
        with self._lock:
            scripted = next(self._puts, None)
        if scripted is not None:
            return scripted
        draw, bound = self._random(), 0.0
        for probability, fault in (
            (self.faults.answer_lost, PutFault.ANSWER_LOST),
            (self.faults.answered_taken, PutFault.ANSWERED_TAKEN),
            (self.faults.request_lost, PutFault.REQUEST_LOST),
            (self.faults.in_flight, PutFault.IN_FLIGHT),
            (self.faults.refused, PutFault.REFUSED),
        ):
            bound += probability
            if draw < bound:
                return fault
        return PutFault.NONE

    def _write(self, call: Call, run: Callable[[], Answer]) -> Answer:
        if not self._happens(self.faults.write_failed):
            return run()
        if self._happens(0.5):
            run()
            raise self._failure("write done and the answer lost", call)
        raise self._failure("write failed", call)

    def _failure(self, fault: str, call: Call) -> StorageFailure:
        self.injected.append((fault, call))
        return StorageFailure(
            f"{fault}: {call.method} of '{call.name}' in {self.url}. Try again.", table=self.url, file=call.name
        )

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._random() < probability

    def _random(self) -> float:
        with self._lock:
            return self._chance.random()
