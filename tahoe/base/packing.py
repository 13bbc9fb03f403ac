"""Groups of limited size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def packed(items: Iterable[T], size_of: Callable[[T], int], most: int, most_items: int | None = None) -> Iterator[list[T]]:
    """Yield the items in groups, in their order; an item that exceeds the limit is a group of its own.

    Args:
        most: the limit of the sum of a group's sizes, in the unit of `size_of`.
        most_items: the limit of a group's items; None for no limit.
    """
    group: list[T] = []
    size = 0
    for item in items:
        more = size_of(item)
        if group and (size + more > most or len(group) == most_items):
            yield group
            group, size = [], 0
        group.append(item)
        size += more
    if group:
        yield group
