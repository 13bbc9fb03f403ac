"""Events: the port to which operations report their results, and the observers of a process.

    operation ──observed("commit", url)──► Observer.begin ──► the operation runs ──► Event ──► log record, span, lineage

An operation opens `observed` around its work and records its result; `happened` reports something without a duration. Neither knows who
observes. Without an observer that is on, nothing is computed. An observer that fails is logged, and the operation continues.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tahoe.base.exceptions import TahoeError
from tahoe.base.log_fields import FieldValue, about

logger = logging.getLogger(__name__)

Fields = Mapping[str, FieldValue]


@dataclass(frozen=True, slots=True)
class Event:
    """One finished operation on a table, or something that happened during one.

    Args:
        name: such as ``commit``; docs/guide/testing-and-observing.md lists all names with their fields.
        table: the table's URL, without credentials.
        version: the version that was written, read or converted; None if there is none.
        fields: counts, sizes in bytes, and names. Never a value from a row, a condition or an option.
        duration_ms: None for something without a duration.
        error: the code of a Tahoe error, or the class of another one, if the operation failed.
        subject: the result itself, for observers in the layer of that result: a `tahoe.txn.commit.Committed` for a commit.
    """

    name: str
    table: str
    version: int | None = None
    fields: Fields = field(default_factory=dict)
    duration_ms: float | None = None
    error: str | None = None
    subject: object = field(default=None, repr=False)


Finish = Callable[[Event], None]
"""Receives the event of an operation that an observer has seen begin."""


class Observer(Protocol):
    """Receives the events of a process: from any thread, and so cheaply that operations need not care."""

    def is_on(self, name: str) -> bool:
        """Whether events of this name are observed now. Called for each operation."""

    def begin(self, name: str, table: str) -> Finish:
        """Note that an operation begins, and return the function for its event. That is called in the same thread."""

    def happened(self, event: Event) -> None:
        """Receive an event without a duration."""


class Observation:
    """The result of a running operation, recorded for its observers."""

    def __init__(self, name: str, table: str) -> None:
        self._name, self._table = name, table
        self._version: int | None = None
        self._fields: Callable[[], Fields] = dict
        self._subject: object = None

    def record(self, version: int | None, fields: Callable[[], Fields] = dict, subject: object = None) -> None:
        """Record the result.

        Args:
            fields: computes `Event.fields`; called once, after the operation, and only if it is observed.
        """
        self._version, self._fields, self._subject = version, fields, subject

    def event(self, duration_ms: float, error: str | None) -> Event:
        """Return the event of the finished operation."""
        fields: Fields = {}
        with _logged("compute the fields", self._name, self._table):
            fields = self._fields()
        return Event(self._name, self._table, self._version, fields, duration_ms, error, self._subject)


class _Unobserved(Observation):
    """The observation of an operation that nobody observes: keeps no result in memory."""

    def record(self, version: int | None, fields: Callable[[], Fields] = dict, subject: object = None) -> None:
        pass


_UNOBSERVED = _Unobserved("", "")
_observers: list[Observer] = []


def observe_with(*observers: Observer) -> None:
    """Add observers to the process, for all of its tables."""
    _observers.extend(observers)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Add an observer for the duration of the block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


@contextmanager
def observed(name: str, table: str) -> Iterator[Observation]:
    """Observe the operation in the block, which records its result in the `Observation`.

    Args:
        name: see `Event.name`.
        table: the table's URL.
    """
    observers = _observers_of(name, table)
    if not observers:
        yield _UNOBSERVED
        return
    observation, finishes = Observation(name, table), list[Finish]()
    for observer in observers:
        with _logged("begin", name, table):
            finishes.append(observer.begin(name, table))
    # Only reported, never decided by: so not of a `Clock`, which would advance differently with and without observers.
    started, error = time.perf_counter(), None
    try:
        yield observation
    except BaseException as raised:
        error = raised.code if isinstance(raised, TahoeError) else type(raised).__name__
        raise
    finally:
        event = observation.event(round((time.perf_counter() - started) * 1000, 3), error)
        for finish in reversed(finishes):
            with _logged("finish", name, table):
                finish(event)


def happened(name: str, table: str, version: int | None = None, **fields: FieldValue) -> None:
    """Report something without a duration, such as a lost race, to the observers of the process."""
    for observer in _observers_of(name, table):
        with _logged("receive the event", name, table):
            observer.happened(Event(name, table, version, fields))


def _observers_of(name: str, table: str) -> list[Observer]:
    observers = []
    for observer in _observers:
        # Called for each operation, also without observers that are on: `_logged` would take longer than the question.
        try:
            if observer.is_on(name):
                observers.append(observer)
        except Exception:
            logger.exception(_FAILED, name, table, "start", extra=about(table, event=name))
    return observers


_FAILED = "an observer of %s of %s failed to %s"


@contextmanager
def _logged(step: str, name: str, table: str) -> Iterator[None]:
    """Log an error of an observer instead of raising it: it must not fail the operation."""
    try:
        yield
    except Exception:
        logger.exception(_FAILED, name, table, step, extra=about(table, event=name))
