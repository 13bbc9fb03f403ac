"""Runs independent requests and reads at the same time: each round of requests to an object store takes tens of milliseconds, and decoding
one file or column keeps one processor busy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tahoe.store.log_store import LogStore

First = TypeVar("First")
Second = TypeVar("Second")


def both(store: LogStore, first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Return the results of two calls, made at the same time where requests take long.

    If both raise, the error of `first` is raised, as when they are made in this order.
    """
    if store.asks_cheaply:
        return first(), second()
    with ThreadPoolExecutor(1, thread_name_prefix="tahoe-side-by-side") as pool:
        other = pool.submit(second)
        return first(), other.result()


def in_threads(work: Callable[[First], Second], items: Sequence[First], size: int) -> Iterator[Second]:
    """Yield the result for each item in their order, computed on all processors if that is faster. The first error is raised.

    Args:
        size: the bytes that are read or written for all items.
    """
    threads = min(len(items), os.cpu_count() or 1)
    if threads < 2 or size < _BYTES_WORTH_THREADS:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="tahoe-in-threads") as pool:
        yield from pool.map(work, items)


_BYTES_WORTH_THREADS = 4 * 1024 * 1024
