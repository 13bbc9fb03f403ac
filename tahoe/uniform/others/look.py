"""What lies in a table's folder ``metadata`` at one moment: listed once, and its newest metadata file read and checked once.

Whether another writer was there, how far the Iceberg side is, and what the next conversion goes on from are all answered by the same look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tahoe.exceptions import CorruptTable, ForeignWriter, NotFound
from tahoe.store.log_store import LogStore
from tahoe.uniform.formats import metadata as documents
from tahoe.uniform.formats.metadata_files import FOLDER, metadata_name, metadata_number, open_metadata

__all__ = ["Current", "Look", "look_at", "newest_metadata", "newest_number"]

_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Current:
    """The newest metadata file: its number, its URL and what it holds."""

    number: int
    location: str
    document: dict[str, Any]

    @property
    def version(self) -> int:
        """The Delta version that it speaks of."""
        return documents.converted_version(self.document)


@dataclass(frozen=True, slots=True)
class Look:
    """The folder as it was found.

    Args:
        names: of all files in it.
        numbers: of the files named ``v<N>.metadata.json``, whoever wrote them; the highest first.
        newest: the one of the highest number; None where there is none, or where it is not as Tahoe wrote it.
        wrong: what is wrong with that one.
    """

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    newest: Current | None = None
    wrong: ForeignWriter | CorruptTable | None = None

    @property
    def number(self) -> int | None:
        """The highest number of any metadata file."""
        return self.numbers[0] if self.numbers else None

    def current(self) -> Current | None:
        """The newest metadata file; None where there is none. Raises what is wrong with it."""
        if self.wrong is not None:
            raise self.wrong
        return self.newest


def look_at(store: LogStore) -> Look:
    """One listing, and one read where there is metadata."""
    attempt = 1
    while True:
        names = tuple(store.names_from(FOLDER))
        numbers = tuple(sorted(_numbers(names), reverse=True))
        if not numbers:
            return Look(names, numbers)
        try:
            return Look(names, numbers, _opened(store, numbers[0]))
        except (ForeignWriter, CorruptTable) as error:
            return Look(names, numbers, wrong=error)
        except NotFound:  # expired by another conversion since it was listed
            if attempt == _ATTEMPTS:
                raise
            attempt += 1


def newest_number(store: LogStore) -> int | None:
    """The highest number of any metadata file, whoever wrote it; by a listing of those files alone."""
    return max(_numbers(store.names_from(FOLDER, "v")), default=None)


def newest_metadata(store: LogStore, number: int | None = None) -> Current | None:
    """The newest metadata file, None where there is none. Raises `ForeignWriter` where it is not as Tahoe wrote it.

    Args:
        number: the file's number, where it is known.
    """
    number = newest_number(store) if number is None else number
    return None if number is None else _opened(store, number)


def _opened(store: LogStore, number: int) -> Current:
    name = metadata_name(number)
    location = f"{store.url}/{name}"
    return Current(number, location, open_metadata(store.get(name), location))


def _numbers(names: Iterable[str]) -> Iterator[int]:
    return (number for name in names if name.endswith(".metadata.json") and (number := metadata_number(name)) is not None)
