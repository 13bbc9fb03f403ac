"""Counts the sequential rounds of requests of an operation: requests that are under way together are one round."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from obstore.store import MemoryStore

from tahoe.store.log_store import Entry, LogStore, PutOutcome
from tahoe.store.object_store import Clients, ObjectLogStore

Answer = TypeVar("Answer")

QUIET_SECONDS = 0.02
"""No new request for this long: all that can be sent are under way. On a slow machine a round may count as two, never two as one."""


class RoundsStore(ObjectLogStore):
    """An object store in memory whose requests are answered in rounds, all that wait at once.

    Args:
        objects: the contents, shared with other stores.
    """

    def __init__(self, objects: MemoryStore, url: str = "s3://bucket/table") -> None:
        super().__init__(url, Clients(objects, objects, honour_conditions=True), prefix="table", options={})
        self.rounds = 0
        self.requests: list[str] = []
        self._gate = threading.Condition()
        self._arrivals = 0
        self._counting = False

    def __reduce__(self) -> tuple[Callable[..., LogStore], tuple[str, dict[str, str]]]:
        raise TypeError("a store in memory cannot be sent to another process")

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the rounds of the requests inside; other requests are not counted."""
        self.rounds, self.requests, self._counting = 0, [], True
        try:
            yield
        finally:
            self._counting = False

    def _ask(self, verb: str, name: str, request: Callable[[], Answer]) -> Answer:
        if verb != "list":  # counted by page
            self._wait(f"{verb} {name}")
        return super()._ask(verb, name, request)

    def _pages(self, folder: str, offset: str | None) -> Iterator[list[Entry]]:
        pages = super()._pages(folder, offset)
        while True:
            self._wait(f"list {folder}")
            page = next(pages, None)
            if page is None:
                return
            yield page
            if len(page) < 1000:
                return

    def _create(self, key: str, data: bytes) -> PutOutcome:
        self._wait(f"create {key}")
        return super()._create(key, data)

    def _wait(self, request: str) -> None:
        """Wait until no further request arrives; the first that notices ends the round for all."""
        if not self._counting:
            return
        with self._gate:
            self.requests.append(request)
            self._arrivals += 1
            round_number = self.rounds
            while self.rounds == round_number:
                arrivals = self._arrivals
                self._gate.wait(QUIET_SECONDS)
                if self.rounds == round_number and arrivals == self._arrivals:
                    self.rounds += 1
                    self._gate.notify_all()


def fewest_rounds(measure: Callable[[], Mapping[str, int]], limits: Mapping[str, int], attempts: int = 3) -> dict[str, int]:
    """Return the rounds of each operation, the fewest of some attempts: another attempt follows while an operation is above its limit."""
    fewest: dict[str, int] = {}
    for _ in range(attempts):
        for name, rounds in measure().items():
            fewest[name] = min(rounds, fewest.get(name, rounds))
        if all(fewest[name] <= limits[name] for name in fewest):
            break
    return fewest
