"""Counts the sequential rounds of requests of an operation, by simulation: each request takes one unit of time.

A thread pool is replaced by one that runs each task at once, in the caller's thread, and computes when its threads would have started and
ended it. The count therefore depends on the code only, not on the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, TypeVar
from unittest.mock import patch

from obstore.store import MemoryStore

from tahoe.store.log_store import Entry, PutOutcome
from tahoe.store.object_store import Clients, ObjectLogStore

Answer = TypeVar("Answer")
_PAGE = 1_000


@dataclass
class Rounds:
    """The simulated time, and the requests with the rounds in which they were sent."""

    now: int = 0
    requests: list[tuple[int, str]] = field(default_factory=list)


class RoundsStore(ObjectLogStore):
    """An object store in memory whose requests take one unit of the simulated time."""

    def __init__(self, url: str = "s3://bucket/table") -> None:
        objects = MemoryStore()
        super().__init__(url, Clients(objects, objects, honour_conditions=True), prefix="table", options={})
        self._rounds = Rounds()

    @contextmanager
    def counted(self) -> Iterator[Rounds]:
        """Simulate the thread pools of Tahoe inside, and count the rounds of this store's requests."""
        self._rounds = rounds = Rounds()

        def simulated(max_workers: int | None = None, **_: object) -> _SimulatedPool:
            return _SimulatedPool(rounds, max_workers or 8)

        modules = [module for name, module in list(sys.modules.items()) if name.startswith("tahoe.")]
        with contextmanager(_patched)(modules, simulated):
            yield rounds

    def _ask(self, verb: str, name: str, request: Callable[[], Answer]) -> Answer:
        if verb != "list":  # counted by page
            self._send(f"{verb} {name}")
        return super()._ask(verb, name, request)

    def _pages(self, folder: str, offset: str | None) -> Iterator[list[Entry]]:
        pages = super()._pages(folder, offset)
        while True:
            self._send(f"list {folder}")
            page = next(pages, None)
            if page is not None:
                yield page
            if page is None or len(page) < _PAGE:
                return

    def _create(self, key: str, data: bytes) -> PutOutcome:
        self._send(f"create {key}")
        return super()._create(key, data)

    def _send(self, request: str) -> None:
        self._rounds.now += 1
        self._rounds.requests.append((self._rounds.now, request))


def _patched(modules: Iterable[object], simulated: Callable[..., _SimulatedPool]) -> Iterator[None]:
    """Replace the thread pools that the modules have imported."""
    patches = [patch.object(m, "ThreadPoolExecutor", simulated) for m in modules if hasattr(m, "ThreadPoolExecutor")]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


class _SimulatedFuture(Future[Any]):
    """The result of a task, which is available at a simulated time."""

    def __init__(self, rounds: Rounds) -> None:
        super().__init__()
        self._rounds = rounds
        self.ended = 0

    def result(self, timeout: float | None = None) -> Any:
        self._rounds.now = max(self._rounds.now, self.ended)
        return super().result(timeout)


class _SimulatedPool(ThreadPoolExecutor):
    """Runs each task at once; the next thread that would be free is the one that runs it."""

    def __init__(self, rounds: Rounds, threads: int) -> None:
        super().__init__(threads)
        self._rounds = rounds
        self._free = [rounds.now] * threads

    def submit(self, task: Callable[..., Answer], /, *args: Any, **kwargs: Any) -> Future[Answer]:
        submitted, future = self._rounds.now, _SimulatedFuture(self._rounds)
        self._rounds.now = max(submitted, heappop(self._free))
        try:
            future.set_result(task(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the future has it
            future.set_exception(error)
        future.ended = self._rounds.now
        heappush(self._free, future.ended)
        self._rounds.now = submitted
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if wait:
            self._rounds.now = max(self._rounds.now, *self._free)
        super().shutdown(wait, cancel_futures=cancel_futures)
