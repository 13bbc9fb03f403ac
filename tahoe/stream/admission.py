"""Limits for the size of a batch (`maxFilesPerTrigger`, `maxBytesPerTrigger`), as values that shrink as files are taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

MOST_FILES = 1000
"""The default limit of a batch."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A maximum number of files, and an approximate number of bytes; None for no limit."""

    files: int | None = None
    bytes: int | None = None

    @property
    def room(self) -> Room:
        """The room in an empty batch."""
        return Room(self.files, self.bytes)


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Room:
    """The remaining room in a batch.

    The limit of bytes is soft: a file is taken while there is any room left, even if it is larger than the room, so that no file is too
    large for every batch.
    """

    files: int | None
    bytes: int | None
    is_untouched: bool = True

    @property
    def is_full(self) -> bool:
        """Whether not even an empty file fits."""
        return (self.files is not None and self.files <= 0) or (self.bytes is not None and self.bytes <= 0)

    def take(self, sizes: Iterable[int]) -> tuple[int, Room]:
        """Return how many of these files fit, in order, and the remaining room; reads no more sizes than necessary.

        Args:
            sizes: in bytes.
        """
        taken, room = 0, self
        for size in sizes:
            if room.is_full:
                break
            taken, room = taken + 1, room._less(1, size)
        return taken, room

    def take_together(self, sizes: list[int]) -> tuple[bool, Room]:
        """Return whether these files, which must not be split, fit, and the remaining room. An untouched room accepts anything."""
        left = self._less(len(sizes), sum(sizes))
        over = (left.files is not None and left.files < 0) or (left.bytes is not None and left.bytes < 0)
        if not sizes:
            return True, self
        return (True, left) if self.is_untouched or not over else (False, self)

    def _less(self, files: int, size: int) -> Room:
        return replace(
            self,
            files=None if self.files is None else self.files - files,
            bytes=None if self.bytes is None else self.bytes - size,
            is_untouched=False,
        )
