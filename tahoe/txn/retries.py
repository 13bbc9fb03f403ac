"""Operations that are repeated after a conflict with another writer, because they depend only on the newest version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tahoe.base.exceptions import DeltaConcurrentModificationException

T = TypeVar("T")

ATTEMPTS = 5


def retried(attempt: Callable[[], T]) -> T:
    """Return the result of `attempt`, which begins a transaction on the newest version and commits it; after a conflict it is called again.

    Raises `DeltaConcurrentModificationException`: other writers committed first in all of `ATTEMPTS` attempts.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except DeltaConcurrentModificationException:
            continue  # the next attempt reads the changes of the other writer
    return attempt()
