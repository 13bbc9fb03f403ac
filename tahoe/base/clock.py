"""The only source of time, unique names and random numbers, so that any race can be replayed from a seed."""

from __future__ import annotations

import time
import uuid
from typing import Protocol


class Clock(Protocol):
    """Time, waiting, identifiers and random numbers for the rest of Tahoe."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def uuid(self) -> str:
        """A new random UUID in its 36-character text form."""

    def random(self) -> float:
        """A number in [0, 1)."""


class SystemClock:
    """The machine's own time and randomness."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch, in UTC, by the machine's clock."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Block this thread for the given number of seconds."""
        time.sleep(seconds)

    def uuid(self) -> str:
        """A random UUID (version 4), in its usual spelling."""
        return str(uuid.uuid4())

    def random(self) -> float:
        """A number in [0, 1) from the process's generator."""
        import random  # 2 ms, and few processes need it

        return random.random()


class SeededClock:
    """A clock that advances only when called, with reproducible random numbers, for tests and simulation.

    Args:
        seed: the same seed produces the same names and numbers.
        start_ms: the time before the first call of `now_ms`; each call advances it by one millisecond.
    """

    def __init__(self, seed: int = 0, start_ms: int = 1_700_000_000_000) -> None:
        import random

        self._random = random.Random(seed)
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch: one more than at the last call."""
        self._now_ms += 1
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        """Advance the time by the given number of seconds, without waiting."""
        self._now_ms += round(seconds * 1000)

    def uuid(self) -> str:
        """The next UUID (version 4) of the seed."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def random(self) -> float:
        """The next number in [0, 1) of the seed."""
        return self._random.random()


SYSTEM_CLOCK = SystemClock()
