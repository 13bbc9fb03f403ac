"""How much goes into one batch (`maxFilesPerTrigger`, `maxBytesPerTrigger`): values, and what they become when files are taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["MOST_FILES", "UNLIMITED", "Limits", "Room"]

MOST_FILES = 1000
"""Of one batch, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """At most so many files, and about so many bytes; None for no limit. Both may be given."""

    files: int | None = None
    bytes: int | None = None

    @property
    def room(self) -> Room:
        """Of a batch that is empty yet."""
        return Room(self.files, self.bytes)


UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Room:
    """What still goes into a batch.

    The limit of bytes is soft: a file is taken while there is any room left, also one that is larger than it, so that no file is too
    large for every batch.
    """

    files: int | None
    bytes: int | None
    is_untouched: bool = True

    @property
    def is_full(self) -> bool:
        """Whether not even an empty file goes in."""
        return (self.files is not None and self.files <= 0) or (self.bytes is not None and self.bytes <= 0)

    def take(self, sizes: Iterable[int]) -> tuple[int, Room]:
        """How many of these files go in, one after another, and the room then; no further size is asked for than is needed.

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
        """Whether these files go in, which may not be parted, and the room then. Into an untouched room anything goes."""
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
