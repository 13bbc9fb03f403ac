"""Calls to catalogs, made in the background like conversions; a caller that needs an answer passes a timeout.

Each table and catalog has one thread that makes its calls in turn. A call that hangs delays only the calls to its own catalog. After it
has hung for `PATIENCE_SECONDS`, a new thread makes the calls of the next conversion. That thread may hang for twice as long before it is
replaced in turn, so that few threads ever hang. If the old thread wakes up, it does no harm: pointers are compared, and only move
forward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

from tahoe.base.clock import SYSTEM_CLOCK, Clock
from tahoe.base.exceptions import StorageFailure, TahoeError
from tahoe.uniform.catalogs.catalog import Catalog, translated_errors

LOOK_SECONDS = 1.0
"""How long a conversion waits for the catalogs to report their pointers before it continues without them, and afterwards for its
own pointers to be moved."""

PATIENCE_SECONDS = 60.0
"""How long one call may take before another thread makes the calls queued behind it."""

ASK = "ask"
"""The kind of call that changes nothing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PointerFailure:
    """Why a catalog's pointer is out of date.

    Args:
        version: the Delta version that it should show.
    """

    version: int
    error: TahoeError


@dataclass(slots=True)
class _Call:
    kind: str
    version: int
    run: Callable[[], Any]
    future: Future[Any] = field(default_factory=Future)


@dataclass(slots=True)
class _Lane:
    """The calls to one catalog for one table: the call running since `since_ms`, and the queue."""

    waiting: list[_Call]
    patience_seconds: float
    running: _Call | None = None
    since_ms: int = 0

    @property
    def moves(self) -> bool:
        """Whether a running or queued call changes something."""
        return any(call is not None and call.kind != ASK for call in (self.running, *self.waiting))


_Key = tuple[str, str]


class CatalogCalls:
    """Calls to catalogs, by table and catalog name, and the outcomes of the last moves of their pointers.

    Args:
        clock: measures how long a call has been running.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._changed = Condition()
        self._lanes: dict[_Key, _Lane] = {}
        self._outcomes: dict[_Key, PointerFailure | str] = {}

    def submit(self, table: str, catalog: str, kind: str, version: int, run: Callable[[], T]) -> Future[T]:
        """Queue `run`; returns at once. Of queued calls of one kind, only the call for the newest version is made, and all of them get
        its outcome."""
        key = table, catalog
        with self._changed:
            lane = self._lanes.get(key)
            if lane is not None and self._seconds(lane) <= lane.patience_seconds:
                return _enqueue(lane, kind, version, run).future
            waiting, patience = ([], PATIENCE_SECONDS) if lane is None else (lane.waiting, lane.patience_seconds * 2)
            lane = self._lanes[key] = _Lane(waiting, patience)
            call = _enqueue(lane, kind, version, run)
        try:
            Thread(target=self._work, args=(key, lane), name=f"tahoe-catalog {catalog}", daemon=True).start()
        except RuntimeError:  # the interpreter is about to exit and cannot start threads: this thread makes the call
            self._work(key, lane)
        return call.future

    def result(self, table: str, catalog: str, future: Future[T], seconds: float) -> T:
        """Return the result of a call; a catalog that has already been silent for that long is not waited for again.

        Raises:
            StorageFailure: the catalog does not answer.
        """
        with self._changed:
            # Notified whenever a call ends; a call that hangs is measured by its own start, not by ours.
            self._changed.wait_for(future.done, max(seconds - self.silent_seconds(table, catalog), 0.0))
        if future.done():
            return future.result()
        raise _silent_error(catalog, self.silent_seconds(table, catalog))

    def silent_seconds(self, table: str, catalog: str) -> float:
        """Return how long the running call has taken so far; 0.0 if there is none."""
        with self._changed:
            lane = self._lanes.get((table, catalog))
            return 0.0 if lane is None else self._seconds(lane)

    def note(self, table: str, catalog: str, outcome: PointerFailure | str | None) -> None:
        """Record the outcome of the last move of a pointer: the URL that it points to, or the failure; None clears it."""
        with self._changed:
            self._outcomes.pop((table, catalog), None)
            if outcome is not None:
                self._outcomes[table, catalog] = outcome

    def shown(self, table: str, catalog: str) -> str | None:
        """Return the URL to which the last move set a pointer; None if it failed or there was none."""
        with self._changed:
            outcome = self._outcomes.get((table, catalog))
        return outcome if isinstance(outcome, str) else None

    def failure(self, table: str, catalog: str) -> PointerFailure | None:
        """Return why a pointer is out of date: its catalog has been silent for a while, or its last move failed; None if there is no
        error."""
        seconds = self.silent_seconds(table, catalog)
        with self._changed:
            outcome = self._outcomes.get((table, catalog))
        recorded = outcome if isinstance(outcome, PointerFailure) else None
        if seconds > LOOK_SECONDS:
            return PointerFailure(-1 if recorded is None else recorded.version, _silent_error(catalog, seconds))
        return recorded

    def failures(self, table: str) -> dict[str, PointerFailure]:
        """Return the failures by catalog name."""
        with self._changed:
            names = sorted({name for url, name in (*self._lanes, *self._outcomes) if url == table})
        return {name: failure for name in names if (failure := self.failure(table, name)) is not None}

    def keep(self, table: str, catalogs: Iterable[str]) -> None:
        """Clear the state of all other catalogs: the table is no longer registered in them."""
        names = set(catalogs)
        with self._changed:
            self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if key[0] != table or key[1] in names}

    def drain(self, timeout: float, table: str | None = None) -> list[tuple[str, str]]:
        """Wait until no pointer is being moved or queued; return those left after `timeout` seconds, as (table, catalog).

        Args:
            table: wait for this table alone.
        """

        def left() -> list[tuple[str, str]]:
            return [key for key, lane in self._lanes.items() if lane.moves and (table is None or key[0] == table)]

        with self._changed:
            self._changed.wait_for(lambda: not left(), timeout)
            return left()

    def _work(self, key: _Key, lane: _Lane) -> None:
        while True:
            with self._changed:
                if self._lanes.get(key) is not lane:  # it hung for too long: another thread makes the queued calls
                    return
                lane.running = lane.waiting.pop(0) if lane.waiting else None
                lane.since_ms = self._clock.now_ms()
                call = lane.running
                if call is None:
                    del self._lanes[key]
                    self._changed.notify_all()
                    return
            _resolve(call.future, call.run)
            with self._changed:
                self._changed.notify_all()

    def _seconds(self, lane: _Lane) -> float:
        return 0.0 if lane.running is None else (self._clock.now_ms() - lane.since_ms) / 1000


@dataclass(frozen=True, slots=True)
class Pointer:
    """One table's pointer in a catalog.

    Args:
        table: the table's URL.
        calls: makes the calls.
        here: make calls in the calling thread, without a timeout. For a catalog passed by a caller: it may be bound to its thread.
    """

    table: str
    catalog: Catalog
    calls: CatalogCalls
    here: bool = False

    @property
    def name(self) -> str:
        """The catalog's name, for the status and for messages."""
        return self.catalog.name

    def ask(self) -> Future[str | None]:
        """Start reading where it points to."""
        return self._call(ASK, 0, self.catalog.load)

    def move(self, version: int, location: str, run: Callable[[Catalog], None], *, take_over: bool = False) -> Future[None]:
        """Start moving it.

        Args:
            version: the Delta version that it will show; of queued moves, the newest is made.
            location: the new location; the pointer ends there or at a newer one.
            run: moves the pointer.
            take_over: the move replaces another writer's pointer; no other queued move replaces this one.
        """
        if take_over:
            self.calls.note(self.table, self.name, None)
        return self._call("take over" if take_over else "move", version, lambda: self._move_and_record(version, location, run))

    def shown(self) -> str | None:
        """Return where this process last moved it; None if it has not."""
        return self.calls.shown(self.table, self.name)

    def result(self, future: Future[T], seconds: float) -> T:
        """Return the answer within `seconds`. Raises `TahoeError` if the call fails or the catalog does not answer."""
        return self.calls.result(self.table, self.name, future, seconds)

    def _call(self, kind: str, version: int, run: Callable[[], T]) -> Future[T]:
        def answered() -> T:
            with translated_errors(self.name):
                return run()

        if not self.here:
            return self.calls.submit(self.table, self.name, kind, version, answered)
        future: Future[T] = Future()
        _resolve(future, answered)
        return future

    def _move_and_record(self, version: int, location: str, run: Callable[[Catalog], None]) -> None:
        try:
            with translated_errors(self.name):
                run(self.catalog)
        except TahoeError as error:
            self.calls.note(self.table, self.name, PointerFailure(version, error))
            raise
        self.calls.note(self.table, self.name, location)


class CatalogQueries:
    """Concurrent queries of several catalogs for their pointers."""

    def __init__(self, pointers: Iterable[Pointer]) -> None:
        self._calls = [(pointer, pointer.ask()) for pointer in pointers]

    def answers(self, seconds: float) -> tuple[dict[str, str | None], dict[str, TahoeError]]:
        """Return the answers that arrive in time, and the errors of the other catalogs, by name."""
        answers: dict[str, str | None] = {}
        errors: dict[str, TahoeError] = {}
        for pointer, future in self._calls:
            try:
                answers[pointer.name] = pointer.result(future, seconds)
            except TahoeError as error:
                errors[pointer.name] = error
        return answers, errors


def _enqueue(lane: _Lane, kind: str, version: int, run: Callable[[], object]) -> _Call:
    for call in lane.waiting:
        if call.kind == kind:
            if version >= call.version:
                call.version, call.run = version, run
            return call
    lane.waiting.append(_Call(kind, version, run))
    return lane.waiting[-1]


def _resolve(future: Future[T], run: Callable[[], T]) -> None:
    try:
        result = run()
    except BaseException as error:  # noqa: BLE001 - the caller of `result` raises it
        future.set_exception(error)
    else:
        future.set_result(result)


def _silent_error(catalog: str, seconds: float) -> StorageFailure:
    return StorageFailure(
        f"The catalog {catalog} has not answered for {seconds:.0f} seconds; its pointer was not moved, as far as is known. Readers by "
        "path do not depend on it. Run table.uniform.sync() later.",
        code="TAHOE_ICEBERG_CATALOG_SILENT",
        catalog=catalog,
    )
