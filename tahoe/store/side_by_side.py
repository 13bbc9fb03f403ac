"""Runs independent requests and reads at the same time: each round of requests to an object store takes tens of milliseconds, and decoding
one file or column keeps one processor busy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from tahoe.store.log_store import LogStore

First = TypeVar("First")
Item = TypeVar("Item")
Second = TypeVar("Second")


def both(store: LogStore, first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Return the results of two calls, made at the same time where requests take long.

    If both raise, the error of `first` is raised, as when they are made in this order.
    """
    if store.asks_cheaply:
        return first(), second()
    with ThreadPoolExecutor(1, thread_name_prefix="tahoe-side-by-side") as pool:
        other = _started(pool, second)
        return first(), other.result()


def each(store: LogStore, call: Callable[[Item], First], items: Sequence[Item]) -> list[First]:
    """Return the results of a call for each item in their order, made at the same time where requests take long.

    If several raise, the error of the first item is raised.

    Args:
        call: harmless if made twice.
    """
    if store.asks_cheaply or len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(len(items), _MOST_AT_ONCE), thread_name_prefix="tahoe-side-by-side") as pool:
        return [other.result() for other in [_started(pool, partial(call, item)) for item in items]]


def _started(pool: ThreadPoolExecutor, call: Callable[[], First]) -> Future[First]:
    """Start a call in the pool, or make it here where no thread can start: at the end of the interpreter, or with too many threads."""
    try:
        return pool.submit(call)
    except RuntimeError:
        made: Future[First] = Future()
        try:
            made.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised by `result`
            made.set_exception(error)
        return made


def in_threads(store: LogStore, work: Callable[[First], Second], items: Sequence[First], size: int) -> Iterator[Second]:
    """Yield the result for each item in their order, computed in threads if that is faster. The first error is raised.

    All processors share much work; small files of a store whose requests take long are waited for at the same time.

    Args:
        size: the bytes that are read or written for all items.
    """
    waits = not store.asks_cheaply and size < _BYTES_AT_ONCE
    threads = min(len(items), _MOST_AT_ONCE if waits else os.cpu_count() or 1)
    if threads < 2 or (size < _BYTES_WORTH_THREADS and not waits):
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-in-threads") as pool:
        yield from pool.map(work, items)


def one_ahead(work: Callable[[First], Second], items: Iterable[First]) -> Iterator[Second]:
    """Yield the result for each item in their order; a thread computes the next one while the caller uses the last."""
    with ThreadPoolExecutor(1, thread_name_prefix="tahoe-one-ahead") as pool:
        computed: Future[Second] | None = None
        for item in items:
            following = _started(pool, partial(work, item))
            if computed is not None:
                yield computed.result()
            computed = following
        if computed is not None:
            yield computed.result()


_BYTES_WORTH_THREADS = 4 * 1024 * 1024
_BYTES_AT_ONCE = 32 * 1024 * 1024
_MOST_AT_ONCE = 64
