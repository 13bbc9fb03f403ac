"""Calls of catalogs, made behind the conversions as conversions are made behind commits: whoever needs an answer says how long to wait.

For each table and catalog one thread makes the calls, one after the other. A call that hangs holds up the calls of its own catalog alone.
When it has hung for `PATIENCE_SECONDS`, the calls of the next conversion are made by a new thread. That thread may hang for twice as long
before it is replaced in turn, so that few threads ever hang. What the old one does when it wakes up harms nothing: pointers are compared,
and moved forward only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

from tahoe.clock import SYSTEM_CLOCK, Clock
from tahoe.exceptions import StorageFailure, TahoeError
from tahoe.uniform.catalogs.catalog import Catalog, answering

__all__ = ["LOOK_SECONDS", "Asked", "CatalogCalls", "Pointer", "Trouble"]

LOOK_SECONDS = 1.0
"""How long a conversion waits for the catalogs to say where they point to before it goes on without them, and after it for its pointers
to be moved."""

PATIENCE_SECONDS = 60.0
"""How long one call may take before another thread makes those that wait behind it."""

ASK = "ask"
"""The kind of those calls that change nothing."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a catalog's pointer stays behind.

    Args:
        version: the Delta version that it was to show.
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
    """The calls of one catalog for one table: the one that is being made since `since_ms`, and those that wait."""

    waiting: list[_Call]
    patience_seconds: float
    running: _Call | None = None
    since_ms: int = 0

    @property
    def moves(self) -> bool:
        """Whether a call is among them that changes something."""
        return any(call is not None and call.kind != ASK for call in (self.running, *self.waiting))


_Key = tuple[str, str]


class CatalogCalls:
    """What is asked of catalogs and told them, by table and by the catalog's name, and how the last moves of their pointers ended.

    Args:
        clock: by which it is told how long a call has been hanging.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._changed = Condition()
        self._lanes: dict[_Key, _Lane] = {}
        self._outcomes: dict[_Key, Trouble | str] = {}

    def submit(self, table: str, catalog: str, kind: str, version: int, run: Callable[[], T]) -> Future[T]:
        """Have `run` called; returns at once. Of calls of one kind that wait, only the one of the newest version is made; all of them
        have its outcome."""
        key = table, catalog
        with self._changed:
            lane = self._lanes.get(key)
            if lane is not None and self._seconds(lane) <= lane.patience_seconds:
                return _queued(lane, kind, version, run).future
            waiting, patience = ([], PATIENCE_SECONDS) if lane is None else (lane.waiting, lane.patience_seconds * 2)
            lane = self._lanes[key] = _Lane(waiting, patience)
            call = _queued(lane, kind, version, run)
        try:
            Thread(target=self._work, args=(key, lane), name=f"tahoe-catalog {catalog}", daemon=True).start()
        except RuntimeError:  # the interpreter is about to exit and has no more threads to give: this one makes the call
            self._work(key, lane)
        return call.future

    def result(self, table: str, catalog: str, future: Future[T], seconds: float) -> T:
        """What a call gave; a catalog that has been silent for so long is not waited for again.

        Raises:
            StorageFailure: it does not answer.
        """
        with self._changed:
            # Notified whenever a call ends; one that hangs is known to after its own time, not after ours.
            self._changed.wait_for(future.done, max(seconds - self.silent_seconds(table, catalog), 0.0))
        if future.done():
            return future.result()
        raise _silent(catalog, self.silent_seconds(table, catalog))

    def silent_seconds(self, table: str, catalog: str) -> float:
        """How long the call that is being made has taken so far; 0.0 where none is."""
        with self._changed:
            lane = self._lanes.get((table, catalog))
            return 0.0 if lane is None else self._seconds(lane)

    def note(self, table: str, catalog: str, outcome: Trouble | str | None) -> None:
        """Remember how the last move of a pointer ended: the URL that it points to, or why it stays behind; None forgets it."""
        with self._changed:
            self._outcomes.pop((table, catalog), None)
            if outcome is not None:
                self._outcomes[table, catalog] = outcome

    def shown(self, table: str, catalog: str) -> str | None:
        """Where a pointer was moved by its last move; None where that failed, or there was none."""
        with self._changed:
            outcome = self._outcomes.get((table, catalog))
        return outcome if isinstance(outcome, str) else None

    def trouble(self, table: str, catalog: str) -> Trouble | None:
        """Why a pointer stays behind: it has not answered for a while, or how its last move failed; None when all is well."""
        seconds = self.silent_seconds(table, catalog)
        with self._changed:
            outcome = self._outcomes.get((table, catalog))
        known = outcome if isinstance(outcome, Trouble) else None
        if seconds > LOOK_SECONDS:
            return Trouble(-1 if known is None else known.version, _silent(catalog, seconds))
        return known

    def troubles(self, table: str) -> dict[str, Trouble]:
        """By the catalog's name, of all catalogs that are in trouble."""
        with self._changed:
            names = sorted({name for url, name in (*self._lanes, *self._outcomes) if url == table})
        return {name: trouble for name in names if (trouble := self.trouble(table, name)) is not None}

    def keep(self, table: str, catalogs: Iterable[str]) -> None:
        """Forget what is known of all other catalogs: the table is no longer kept in them."""
        kept = set(catalogs)
        with self._changed:
            self._outcomes = {key: outcome for key, outcome in self._outcomes.items() if key[0] != table or key[1] in kept}

    def drain(self, timeout: float, table: str | None = None) -> list[tuple[str, str]]:
        """Wait until no pointer is being moved and none is to be; what is left after `timeout` seconds, as (table, catalog).

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
                if self._lanes.get(key) is not lane:  # it hung for too long: another thread makes the calls that waited
                    return
                lane.running = lane.waiting.pop(0) if lane.waiting else None
                lane.since_ms = self._clock.now_ms()
                call = lane.running
                if call is None:
                    del self._lanes[key]
                    self._changed.notify_all()
                    return
            _make(call.future, call.run)
            with self._changed:
                self._changed.notify_all()

    def _seconds(self, lane: _Lane) -> float:
        return 0.0 if lane.running is None else (self._clock.now_ms() - lane.since_ms) / 1000


@dataclass(frozen=True, slots=True)
class Pointer:
    """One table's pointer in a catalog, and how it is reached.

    Args:
        table: the table's URL.
        calls: what makes the calls.
        here: in the calling thread, which waits as long as it takes. For a catalog that a caller hands over: it may be bound to its thread.
    """

    table: str
    catalog: Catalog
    calls: CatalogCalls
    here: bool = False

    @property
    def name(self) -> str:
        """The catalog's, for the status and for messages."""
        return self.catalog.name

    def ask(self) -> Future[str | None]:
        """Begin to ask where it points to."""
        return self._call(ASK, 0, self.catalog.load)

    def move(self, version: int, location: str, run: Callable[[Catalog], None], *, take_over: bool = False) -> Future[None]:
        """Begin to move it.

        Args:
            version: the Delta version that it will show; of moves that wait, the newest is made.
            location: where it will point to, or to something newer.
            run: what moves it.
            take_over: a move over what another writer left: none of the others takes its place.
        """
        if take_over:
            self.calls.note(self.table, self.name, None)
        return self._call("take over" if take_over else "move", version, lambda: self._noted(version, location, run))

    def shown(self) -> str | None:
        """Where this process has moved it last; None where it has not."""
        return self.calls.shown(self.table, self.name)

    def result(self, future: Future[T], seconds: float) -> T:
        """What it answered, within `seconds`. Raises `TahoeError` where it fails or does not answer."""
        return self.calls.result(self.table, self.name, future, seconds)

    def _call(self, kind: str, version: int, run: Callable[[], T]) -> Future[T]:
        def answered() -> T:
            with answering(self.name):
                return run()

        if not self.here:
            return self.calls.submit(self.table, self.name, kind, version, answered)
        future: Future[T] = Future()
        _make(future, answered)
        return future

    def _noted(self, version: int, location: str, run: Callable[[Catalog], None]) -> None:
        try:
            with answering(self.name):
                run(self.catalog)
        except TahoeError as error:
            self.calls.note(self.table, self.name, Trouble(version, error))
            raise
        self.calls.note(self.table, self.name, location)


class Asked:
    """Catalogs that are being asked, side by side, where they point to."""

    def __init__(self, pointers: Iterable[Pointer]) -> None:
        self._calls = [(pointer, pointer.ask()) for pointer in pointers]

    def answers(self, seconds: float) -> tuple[dict[str, str | None], dict[str, TahoeError]]:
        """By name, the answers of those that give one in time, and why the others give none."""
        answers: dict[str, str | None] = {}
        errors: dict[str, TahoeError] = {}
        for pointer, future in self._calls:
            try:
                answers[pointer.name] = pointer.result(future, seconds)
            except TahoeError as error:
                errors[pointer.name] = error
        return answers, errors


def _queued(lane: _Lane, kind: str, version: int, run: Callable[[], Any]) -> _Call:
    for call in lane.waiting:
        if call.kind == kind:
            if version >= call.version:
                call.version, call.run = version, run
            return call
    lane.waiting.append(_Call(kind, version, run))
    return lane.waiting[-1]


def _make(future: Future[T], run: Callable[[], T]) -> None:
    try:
        answer = run()
    except BaseException as error:  # noqa: BLE001 - whoever waits for the call raises it
        future.set_exception(error)
    else:
        future.set_result(answer)


def _silent(catalog: str, seconds: float) -> StorageFailure:
    return StorageFailure(
        f"The catalog {catalog} has not answered for {seconds:.0f} seconds; its pointer was not moved, as far as is known. Readers by "
        "path do not depend on it. Run table.uniform.sync() later.",
        code="TAHOE_ICEBERG_CATALOG_SILENT",
        catalog=catalog,
    )
