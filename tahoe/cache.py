"""What this process keeps of tables from one query to the next: how much, how often it was of use, and how to be rid of it.

    >>> tahoe.cache.report()
    [Kept(kind='deletion vectors', entries=12, bytes=48_210, hits=30, misses=12), Kept(kind='tables', entries=3, ...)]

What is kept is never asked whether it is still so: deletion vectors never change under their names, and a table kept here looks for newer
commits at each use. So nothing is lost by forgetting, and nothing is won but time by keeping.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar

from tahoe.argument_checks import checked_arguments
from tahoe.exceptions import InvalidRequest

__all__ = ["Kept", "clear", "is_kept", "keep", "limit", "report"]

Value = TypeVar("Value")

_DEFAULT_LIMIT = 1024**3
_MOST_GROWING = 128


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one kind.

    Args:
        entries: how many.
        bytes: that they hold; an estimate for what is no array of bytes.
        hits, misses: how often one was asked for and there, or had to be made, since the process began.
    """

    kind: str
    entries: int
    bytes: int
    hits: int
    misses: int


def report() -> list[Kept]:
    """What is kept, kind by kind."""
    return _CACHE.report()


def clear() -> None:
    """Forget everything."""
    _CACHE.clear()


@checked_arguments
def limit(bytes: int | None = None) -> int:
    """The most that is kept, in bytes; what was used least recently goes first.

    Args:
        bytes: the new limit; 0 keeps nothing but what was asked for last. None changes nothing.

    Returns:
        the limit that holds now; 1 GB where none was set.
    """
    if bytes is not None:
        if bytes < 0:
            raise InvalidRequest(f"The limit of tahoe.cache must be 0 or more bytes, found {bytes}.", code="DELTA_ILLEGAL_OPTION")
        _CACHE.set_limit(bytes)
    return _CACHE.limit


def keep(kind: str, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int], *, grows: bool = False) -> Value:
    """The value under a key, made if it is not kept. For Tahoe's own modules.

    Args:
        kind: what `report` calls it.
        make: may be called by two threads at once for one key; one of the two values is kept. What it raises is not kept.
        size: bytes that a value holds.
        grows: the value holds more as it is used, so its size is asked for again and again; of such values few are kept.
    """
    value: Value = _CACHE.keep((kind, key), make, size, grows)
    return value


def is_kept(kind: str, key: Hashable) -> bool:
    """Whether there is a value under a key. For Tahoe's own modules."""
    return _CACHE.is_kept((kind, key))


Place = tuple[str, Hashable]


@dataclass(slots=True)
class _Counts:
    hits: int = 0
    misses: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    value: Any
    size: Callable[[Any], int]
    at_first: int


@dataclass(slots=True)
class _Cache:
    limit: int = _DEFAULT_LIMIT
    _entries: OrderedDict[Place, _Entry] = field(default_factory=OrderedDict)
    _growing: OrderedDict[Place, None] = field(default_factory=OrderedDict)
    _at_first: int = 0
    _counts: dict[str, _Counts] = field(default_factory=dict)
    _lock: Any = field(default_factory=RLock)

    def keep(self, place: Place, make: Callable[[], Any], size: Callable[[Any], int], grows: bool) -> Any:
        with self._lock:
            counts = self._counts.setdefault(place[0], _Counts())
            entry = self._entries.get(place)
            if entry is not None:
                counts.hits += 1
                self._entries.move_to_end(place)
                if grows:
                    self._growing.move_to_end(place)
                return entry.value
            counts.misses += 1
        value = make()
        with self._lock:
            entry = self._entries.get(place)
            if entry is None:
                entry = _Entry(value, size, 0 if grows else size(value))
                self._add(place, entry, grows)
            return entry.value

    def is_kept(self, place: Place) -> bool:
        with self._lock:
            return place in self._entries

    def report(self) -> list[Kept]:
        with self._lock:
            found = []
            for kind, counts in sorted(self._counts.items()):
                sizes = [entry.size(entry.value) for (of, _), entry in self._entries.items() if of == kind]
                found.append(Kept(kind, len(sizes), sum(sizes), counts.hits, counts.misses))
            return found

    def clear(self) -> None:
        with self._lock:
            while self._entries:
                self._drop(next(iter(self._entries)))

    def set_limit(self, bytes: int) -> None:
        with self._lock:
            self.limit = bytes
            self._trim()

    def _add(self, place: Place, entry: _Entry, grows: bool) -> None:
        self._entries[place] = entry
        self._at_first += entry.at_first
        if grows:
            self._growing[place] = None
            if len(self._growing) > _MOST_GROWING:
                self._drop(next(iter(self._growing)))
        self._trim()

    def _drop(self, place: Place) -> None:
        self._at_first -= self._entries.pop(place).at_first
        self._growing.pop(place, None)

    def _trim(self) -> None:
        """The newest entry stays, whatever it holds: somebody uses it now."""
        grown = {place: self._entries[place].size(self._entries[place].value) for place in self._growing}
        total = self._at_first + sum(grown.values())
        while len(self._entries) > 1 and total > self.limit:
            place = next(iter(self._entries))
            total -= self._entries[place].at_first + grown.get(place, 0)
            self._drop(place)


_CACHE = _Cache()
