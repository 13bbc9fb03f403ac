"""Runs independent requests to a store at the same time: each round of requests to an object store takes tens of milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
        other = pool.submit(second)
        return first(), other.result()


def each(store: LogStore, call: Callable[[Item], First], items: Sequence[Item]) -> list[First]:
    """Return the results of a call for each item in their order, made at the same time where requests take long.

    If several raise, the error of the first item is raised; the other calls were made or are not made any more.
    """
    if store.asks_cheaply or len(items) < 2:
        return [call(item) for item in items]
    with ThreadPoolExecutor(min(len(items), _MOST_AT_ONCE), thread_name_prefix="tahoe-side-by-side") as pool:
        return list(pool.map(call, items))


_MOST_AT_ONCE = 64
