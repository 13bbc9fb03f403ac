"""The cache of table data between queries of this process: its size, its hits, its limit, and how to clear it.

    >>> tahoe.cache.report()
    [Kept(kind='deletion vectors', entries=12, bytes=48_210, hits=30, misses=12), Kept(kind='tables', entries=3, ...)]

Entries never become stale: deletion vectors never change under their names, and a cached table checks for newer commits at each use. So
clearing the cache costs only time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, TypeVar

from tahoe.base.argument_checks import checked_arguments
from tahoe.base.exceptions import InvalidRequest

Value = TypeVar("Value")

_DEFAULT_LIMIT = 1024**3
_MOST_GROWING = 128


@dataclass(frozen=True, slots=True)
class Kept:
    """The cached entries of one kind.

    Args:
        entries: their number.
        bytes: their size; an estimate for values that are not byte arrays.
        hits: the number of lookups that found an entry, since the process started.
        misses: the number of lookups that had to compute it.
    """

    kind: str
    entries: int
    bytes: int
    hits: int
    misses: int


def report() -> list[Kept]:
    """Return the size and the hits of the cache for each kind."""
    return _CACHE.report()


def clear() -> None:
    """Remove all entries."""
    _CACHE.clear()


@checked_arguments
def limit(bytes: int | None = None) -> int:
    """Set and return the maximum size in bytes; the least recently used entries are removed first.

    Args:
        bytes: the new limit; 0 keeps only the last used entry. None changes nothing.

    Returns:
        the current limit; 1 GB by default.
    """
    if bytes is not None:
        if bytes < 0:
            raise InvalidRequest(f"The limit of tahoe.cache must be 0 or more bytes, found {bytes}.", code="DELTA_ILLEGAL_OPTION")
        _CACHE.set_limit(bytes)
    return _CACHE.limit


def keep(kind: str, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int], *, grows: bool = False) -> Value:
    """Return the value of a key, computed if it is not cached. For Tahoe's own modules.

    Args:
        kind: its name in `report`.
        make: computes the value. Two threads may call it at once for the same key; one of the values is cached. Errors are not cached.
        size: returns the bytes of a value.
        grows: the value grows when it is used, so its size is computed repeatedly; only a few such values are cached.
    """
    value: Value = _CACHE.keep((kind, key), make, size, grows)
    return value


def is_kept(kind: str, key: Hashable) -> bool:
    """Whether a key is cached. For Tahoe's own modules."""
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

    def keep(self, place: Place, make: Callable[[], object], size: Callable[[Any], int], grows: bool) -> Any:
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
            kinds = []
            for kind, counts in sorted(self._counts.items()):
                sizes = [entry.size(entry.value) for (of, _), entry in self._entries.items() if of == kind]
                kinds.append(Kept(kind, len(sizes), sum(sizes), counts.hits, counts.misses))
            return kinds

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
        """Remove entries until the limit is met. The newest entry stays, whatever its size, because it is in use."""
        grown = {place: self._entries[place].size(self._entries[place].value) for place in self._growing}
        total = self._at_first + sum(grown.values())
        while len(self._entries) > 1 and total > self.limit:
            place = next(iter(self._entries))
            total -= self._entries[place].at_first + grown.get(place, 0)
            self._drop(place)


_CACHE = _Cache()
