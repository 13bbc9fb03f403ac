"""Threads that take turns at every store call, in an order drawn from a seed: a reproducible race.

    interleaver = Interleaver(seed)
    tables = [Table(path, store=SteppedStore(store, interleaver)) for _ in range(3)]
    interleaver.run([lambda table=table: table.append(rows) for table in tables])

Between two store calls a thread runs alone, so the order of the calls, which is all that matters for a log, depends only on the seed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from tahoe.base.clock import SeededClock
from tahoe.store.log_store import LogStore
from tahoe.testing.faulty_store import WrappedStore

__all__ = ["Interleaver", "SteppedStore"]

Answer = TypeVar("Answer")


class Interleaver:
    """Runs tasks in threads, one at a time, and switches between them where they `step`.

    Args:
        seed: determines which task continues at each step.

    Attributes:
        turns: the tasks that continued, as positions in the list of tasks.
    """

    def __init__(self, seed: int) -> None:
        self.turns: list[int] = []
        self._chance = SeededClock(seed)
        self._changed = threading.Condition()
        self._live: set[int] = set()
        self._waiting: set[int] = set()
        self._chosen: int | None = None
        self._me = threading.local()

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run all tasks to their end, then raise the first error, if any."""

        def run_task(number: int, task: Callable[[], None]) -> None:
            self._me.number = number
            try:
                self.step()
                task()
            finally:
                self._leave(number)

        self._live = set(range(len(tasks)))
        in_threads([partial(run_task, number, task) for number, task in enumerate(tasks)])

    def step(self) -> None:
        """Wait for the turn. A thread outside the tasks continues at once."""
        number: int | None = getattr(self._me, "number", None)
        if number is None:
            return
        with self._changed:
            self._waiting.add(number)
            self._choose()
            self._changed.wait_for(lambda: self._chosen == number)
            self._chosen = None
            self._waiting.discard(number)

    def _leave(self, number: int) -> None:
        with self._changed:
            self._live.discard(number)
            self._choose()

    def _choose(self) -> None:
        """Choose a task once every unfinished task waits; until then one is still running."""
        if self._chosen is None and self._waiting and self._waiting == self._live:
            waiting = sorted(self._waiting)
            self._chosen = waiting[int(self._chance.random() * len(waiting))]
            self.turns.append(self._chosen)
            self._changed.notify_all()


class SteppedStore(WrappedStore):
    """Lets another task of the interleaver continue before each call."""

    def __init__(self, inner: LogStore, interleaver: Interleaver) -> None:
        super().__init__(inner)
        self._interleaver = interleaver

    def _call(self, method: str, name: str, run: Callable[[], Answer]) -> Answer:
        self._interleaver.step()
        return run()


def in_threads(tasks: Sequence[Callable[[], None]]) -> None:
    """Run each task in a thread of its own; when all have ended, raise the first error."""
    errors: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
